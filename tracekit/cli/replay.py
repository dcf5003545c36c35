"""``tracekit replay``: build the derived tables, one pod's life, the cluster at a point."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracekit.cli.options import (
    Format,
    chosen,
    cluster_option,
    output_option,
    show_lines,
    store_option,
    warn,
    warn_when_stale,
    write_rows,
)
from tracekit.cli.screen import counted, screen_width
from tracekit.errors import UsageError

if TYPE_CHECKING:
    from tracekit.pipeline.trace import Trace

__all__ = ["replay"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    """What was asked for besides the store."""

    pod: str | None
    uid: str | None
    diff: str
    at: str | None
    output: Format | None


@click.command(
    short_help="Build the derived tables; show a pod's life or a past state.",
    epilog="""\b
Examples:
  tracekit replay
  tracekit replay default/web-0
  tracekit replay default/web-0 --diff full
  tracekit replay --at 4711
  tracekit replay --at 2026-12-01T16:05:00Z -o json
""",
)
@click.argument("pod", required=False, metavar="[NS/POD]")
@click.option("--uid", default=None, help="One incarnation of a reused name.")
@click.option(
    "--diff",
    type=click.Choice(["none", "fields", "full"]),
    default="fields",
    show_default=True,
    help="How much of each change to show.",
)
@click.option("--at", default=None, metavar="REVISION|TIME", help="The cluster at that point.")
@store_option
@cluster_option
@output_option
def replay(store: Path, cluster: str | None, **wish: Any) -> None:
    """Build the derived tables, or show one pod's life or the cluster at a point.

    A pod's life is each of its revisions with stage, node, time and what changed. The
    cluster at a point is its nodes and pods as they stood at a revision or time.
    """
    import tracekit

    trace = tracekit.open(store, cluster=cluster)
    wished = _Wish(**wish)
    if wished.at is not None:
        _show_state(trace, wished.at, wished.output)
    elif wished.pod is not None:
        _show_pod(trace, wished)
    else:
        _build(trace)


def _build(trace: Trace) -> None:
    summary = trace.replay()
    if not summary.fresh:
        click.echo("nothing new since the last replay", err=True)
        return
    for name, rows in summary.rows.items():
        click.echo(f"{name:<20}{counted(rows, 'row'):>14}", err=True)


def _show_pod(trace: Trace, wish: _Wish) -> None:
    from tracekit.cli.pod_life import life_rows, life_text

    namespace, slash, name = str(wish.pod).partition("/")
    if not slash or not name:
        raise UsageError(f"{wish.pod!r} names no pod", todo="write it as NAMESPACE/POD")
    life = trace.pod(namespace, name, uid=wish.uid)
    warn_when_stale(trace)
    if chosen(wish.output) == "table":
        show_lines(life_text(life, wish.diff, screen_width()))
        return
    write_rows(
        life_rows(life, wish.diff), wish.output, frozenset({"changed", "heartbeats", "patch"})
    )


def _show_state(trace: Trace, at: str, output: Format | None) -> None:
    import orjson

    if chosen(output) not in ("table", "json", "jsonl"):
        raise UsageError(f"--at has no {output} form", todo="use -o table, json or jsonl")
    point = _point(at)
    state = trace.state_at(point)
    warn_when_stale(trace)
    if isinstance(point, int) and point != state["revision"]:
        warn(f"revision {point} is not in the record; the newest before it is shown")
    last = trace.last_revision
    if not isinstance(point, int) and state["revision"] == last and point > state["at"]:
        warn(f"the record ends at revision {last}; what stood then is shown")
    if chosen(output) == "table":
        from tracekit.cli.state_table import state_text

        error = trace.revision_time(state["revision"])["at_error_seconds"]
        show_lines(state_text(state, error, screen_width()))
        return
    style = orjson.OPT_INDENT_2 if chosen(output) == "json" else 0
    click.echo(orjson.dumps(_with_text_time(state), option=style).decode())


def _point(text: str) -> int | datetime:
    if text.isdecimal():
        return int(text)
    from tracekit.cli.times import parse_time

    return parse_time(text)


def _with_text_time(state: Mapping[str, Any]) -> dict[str, Any]:
    at = state["at"]
    return {**state, "at": None if at is None else at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
