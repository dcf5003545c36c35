"""``tracekit ls``, ``get`` and ``diff``: the raw record, as an etcd helper shows it."""

from __future__ import annotations

from pathlib import Path

import click

from tracekit.cli.options import (
    Format,
    chosen,
    cluster_option,
    output_option,
    store_option,
    warn,
    write_rows,
)

__all__ = ["diff", "get", "ls"]


@click.command(epilog="\b\nExamples:\n  tracekit ls\n  tracekit ls /registry/pods/default/\n")
@click.argument("prefix", default="")
@store_option
@cluster_option
@output_option
def ls(prefix: str, store: Path, cluster: str | None, output: Format | None) -> None:
    """List the etcd keys in the store."""
    import tracekit

    keys = tracekit.open(store, cluster=cluster).keys(prefix)
    if chosen(output) == "table":
        keys = keys.select("key", "kind", "changes", "last_revision", "deleted")
    write_rows(keys, output)


@click.command(
    epilog="""\b
Examples:
  tracekit get /registry/pods/default/web-0
  tracekit get /registry/minions/node-1 --revision 4711
"""
)
@click.argument("key")
@click.option("--revision", type=int, default=None, help="State that stood at this revision.")
@click.option("--version", type=int, default=None, help="State with this etcd version.")
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
@click.argument("first", metavar="REV", type=int)
@click.argument("second", metavar="REV", type=int)
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
    columns = {
        "op": [c["op"] for c in changes],
        "path": [c["path"] for c in changes],
        "old": [_text(orjson.dumps(c["old"]), c["op"] == "add") for c in changes],
        "new": [_text(orjson.dumps(c["new"]), c["op"] == "remove") for c in changes],
    }
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String()))
    write_rows(frame, output, frozenset({"old", "new"}))


def _text(value: bytes, absent: bool) -> str | None:
    return None if absent else value.decode()
