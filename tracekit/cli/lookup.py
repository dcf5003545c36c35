"""``tracekit ls``, ``get`` and ``diff``: the raw record, as an etcd helper shows it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from tracekit.cli.options import (
    Format,
    chosen,
    cluster_option,
    output_option,
    show_lines,
    store_option,
    warn,
    write_rows,
)
from tracekit.cli.screen import (
    GUTTER,
    columns_of,
    counted,
    padded,
    paragraph,
    plain_text,
    screen_width,
    shorten,
)

__all__ = ["diff", "get", "ls"]

_VALUE_LINES = 6


@click.command(epilog="\b\nExamples:\n  tracekit ls\n  tracekit ls /registry/pods/default/\n")
@click.argument("prefix", default="")
@store_option
@cluster_option
@output_option
def ls(prefix: str, store: Path, cluster: str | None, output: Format | None) -> None:
    """List the etcd keys in the store.

    With each key: its newest revision and how often it changed in the record.
    """
    import tracekit

    keys = tracekit.open(store, cluster=cluster).keys(prefix)
    if chosen(output) == "table":
        show_lines(_key_lines(keys.to_dicts(), screen_width()))
        words = counted(keys.height, "key")
        click.echo(f"({words}; last is the newest revision, × the changes)", err=True)
    else:
        write_rows(keys, output)


def _key_lines(keys: Sequence[Mapping[str, Any]], width: int) -> Iterator[str]:
    """Yield a line a key, or two: a key is there to be copied, so it is never cut."""
    rows = [("last", "×", "key", "")]
    for key in keys:
        ended = "(deleted)" if key["deleted"] else ""
        rows.append((str(key["last_revision"]), str(key["changes"]), plain_text(key["key"]), ended))
    widths = [max(len(row[i]) for row in rows) for i in range(2)]
    for row in rows:
        facts = GUTTER.join(padded(row[i], widths[i], right=True) for i in range(2))
        if columns_of(facts) + len(GUTTER) + columns_of(row[2]) + 1 + len(row[3]) <= width:
            yield f"{facts}{GUTTER}{row[2]} {row[3]}".rstrip()
        else:
            yield f"{facts}{GUTTER}{row[3]}".rstrip()
            yield GUTTER + row[2]


@click.command(
    epilog="""\b
Examples:
  tracekit get /registry/pods/default/web-0
  tracekit get /registry/minions/node-1 --revision 4711
"""
)
@click.argument("key")
@click.option(
    "--revision",
    type=click.IntRange(1),
    default=None,
    metavar="N",
    help="State that stood at this revision.",
)
@click.option(
    "--version",
    type=click.IntRange(1),
    default=None,
    metavar="N",
    help="State with this etcd version.",
)
@click.option("--uid", default=None, help="Incarnation; the newest by default.")
@store_option
@cluster_option
def get(
    key: str,
    revision: int | None,
    version: int | None,
    uid: str | None,
    store: Path,
    cluster: str | None,
) -> None:
    """Show one stored object as Kubernetes JSON."""
    import orjson

    import tracekit

    trace = tracekit.open(store, cluster=cluster)
    found = trace.get(key, revision=revision, version=version, uid=uid)
    click.echo(orjson.dumps(found.object, option=orjson.OPT_INDENT_2).decode())
    if revision is None and found.deleted_revision is not None:
        warn(f"this is the last state before it was deleted at revision {found.deleted_revision}")


@click.command(epilog="\b\nExamples:\n  tracekit diff /registry/pods/default/web-0 4700 4711\n")
@click.argument("key")
@click.argument("first", metavar="REV", type=click.IntRange(1))
@click.argument("second", metavar="REV", type=click.IntRange(1))
@store_option
@cluster_option
@output_option
def diff(
    key: str, first: int, second: int, store: Path, cluster: str | None, output: Format | None
) -> None:
    """List the fields of a key that differ between two revisions."""
    import orjson
    import polars as pl

    import tracekit

    changes = tracekit.open(store, cluster=cluster).diff(key, first, second)
    rows = [
        {
            "op": change["op"],
            "path": change["path"],
            "old": None if change["op"] == "add" else orjson.dumps(change["old"]).decode(),
            "new": None if change["op"] == "remove" else orjson.dumps(change["new"]).decode(),
        }
        for change in changes
    ]
    if chosen(output) == "table":
        for row in rows:
            show_lines(_change_lines(row, screen_width()))
        click.echo(f"({counted(len(rows), 'change')})", err=True)
        return
    schema = dict.fromkeys(("op", "path", "old", "new"), pl.String())
    write_rows(pl.DataFrame(rows, schema=schema), output, frozenset({"old", "new"}))


def _change_lines(row: Mapping[str, str | None], width: int) -> Iterator[str]:
    yield from paragraph(f"{row['op']} {row['path'] or '/'}", width, rest="    ")
    for mark, value in (("  - ", row["old"]), ("  + ", row["new"])):
        if value is not None:
            room = (width - len(mark)) * _VALUE_LINES
            text = plain_text(value)
            hidden = len(text) - room
            more = f" ({hidden:,} more, all with -o json)" if hidden > 0 else ""
            yield from paragraph(shorten(text, room) + more, width, first=mark)
