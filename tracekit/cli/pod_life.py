"""One pod's life, as rows and as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

import orjson

from tracekit.cli.screen import (
    GUTTER,
    counted,
    padded,
    paragraph,
    plain_text,
    shorten,
    shorten_middle,
)

if TYPE_CHECKING:
    import polars as pl

    from tracekit.pipeline.views import PodLife

__all__ = ["life_rows", "life_text"]

_HEADS = ("revision", "time", "±s", "stage", "phase", "node")
_NUMBERS = frozenset({0, 2})
_INDENT = " " * 4
_NODE_AT_LEAST = 12
_WAITS = 4
_POINTER_LINES = 2
_VALUE_LINES = 4
_BEST = 4
_TOTAL = "Total"
_SCHEDULER = "default-scheduler"
_PATHS = {
    "scheduler": "bound by the scheduler to",
    "preset": "created with its node set, past the scheduler, to",
    "static": "a static pod of the kubelet on",
}


def life_rows(life: PodLife, diff: str) -> pl.DataFrame:
    """Return the pod's revisions; ``diff`` none, fields or full decides the columns."""
    dropped = {"none": ["changed", "heartbeats", "patch"], "fields": ["patch"], "full": []}[diff]
    return life["pod_revisions"].drop(dropped)


def life_text(life: PodLife, diff: str, width: int) -> Iterator[str]:
    """Yield the lines that tell each incarnation, oldest first.

    Args:
        life: What ``Trace.pod`` returned.
        diff: How much of each change to show: none, fields or full.
        width: Columns of the screen.
    """
    total = life["pods"].height
    for number, pod in enumerate(life["pods"].iter_rows(named=True), 1):
        if number > 1:
            yield ""
        which = f" ({number} of {total})" if total > 1 else ""
        yield plain_text(f"{pod['namespace']}/{pod['pod']}{which}  uid {pod['uid']}")
        yield from _summary(life, pod, width)
        yield from _revisions(life, pod["uid"], diff, width)
        yield from _ending(life, pod["uid"], width)


def _of(frame: pl.DataFrame, uid: str) -> list[dict[str, Any]]:
    return frame.filter(frame["uid"] == uid).to_dicts()


def _summary(life: PodLife, pod: Mapping[str, Any], width: int) -> Iterator[str]:
    placed = f"{_PATHS[pod['path']]} {pod['node']}" if pod["path"] else "never bound"
    failed = [a for a in _of(life["attempts"], pod["uid"]) if a["verdict"] != "bound"]
    tries = counted(len(failed), "failed attempt") if failed else "no failed attempt"
    yield from paragraph(f"{pod['workload']} · {placed} · {tries} known", width)
    waits = [w for w in _of(life["pending"], pod["uid"]) if w["kind"] != "starting"]
    told = [w for w in waits if w["kind"] != "not_tried" or len(waits) == 1]
    for wait in told[:_WAITS]:
        yield from paragraph(_wait(wait), width, rest=_INDENT)
    if len(told) > _WAITS:
        yield f"… waited {counted(len(told) - _WAITS, 'more time')}, see the query pending"
    if len(waits) > 1 and all(w["seconds"] is not None for w in waits):
        still = ", and still waits" if waits[-1]["open"] else ""
        yield f"waited {sum(w['seconds'] for w in waits):,.3f} s for a node in all{still}"
    if not failed and not pod["path"] and pod["scheduler_name"] not in (None, _SCHEDULER):
        yield from paragraph(
            f"it asks for the scheduler {pod['scheduler_name']}, of which the "
            "record has no verdict",
            width,
        )
    yield from _choice(life, pod["uid"], width)


def _choice(life: PodLife, uid: str, width: int) -> Iterator[str]:
    """Say from how many nodes the scheduler chose, and by which scores, where a log tells."""
    for attempt in _of(life["attempts"], uid):
        if attempt["verdict"] != "bound" or attempt["nodes_feasible"] is None:
            continue
        words = (
            f"chosen from {counted(attempt['nodes_feasible'], 'feasible node')} "
            f"of {attempt['nodes_evaluated']} tried"
        )
        scores = life["node_scores"]
        mine = scores.filter(scores["attempt_id"] == attempt["attempt_id"]).to_dicts()
        totals = {s["node"]: s["score"] for s in mine if s["plugin"] == _TOTAL}
        best = sorted(totals.items(), key=lambda item: (-item[1], item[0]))
        if best:
            words += "; scores: " + ", ".join(f"{node} {score}" for node, score in best[:_BEST])
        if len(best) > _BEST:
            words += f" … {len(best) - _BEST} more, see the query node_scores"
        yield from paragraph(words, width, rest=_INDENT)


def _wait(wait: Mapping[str, Any]) -> str:
    lasted = "for a time unknown" if wait["seconds"] is None else f"{wait['seconds']:,.3f} s"
    cause = "" if wait["cause"] == wait["kind"] else f": {wait['cause']}"
    nodes = f" ({counted(wait['nodes_blocked'], 'node')})" if wait["nodes_blocked"] else ""
    still = ", still waiting" if wait["open"] else ""
    return f"waited {lasted} {wait['kind']}{cause}{nodes}{still}"


def _revisions(life: PodLife, uid: str, diff: str, width: int) -> Iterator[str]:
    rows = _of(life["pod_revisions"], uid)
    messages = {
        a["revision"]: a["message"]
        for a in _of(life["attempts"], uid)
        if a["revision"] is not None and a["verdict"] != "bound"
    }
    yield _clock_words(rows)
    lines = _aligned([_HEADS, *_cells(rows)], width)
    yield next(lines)
    for row, line in zip(rows, lines, strict=True):
        yield line
        if row["stage"] == "nominated" and (node := _nominated(row["patch"])):
            yield f"{_INDENT}nominated to {plain_text(node)}"
        if messages.get(row["revision"]):
            yield from paragraph(messages[row["revision"]], width, first=_INDENT)
        yield from _change(row, diff, width)


def _nominated(patch: str | None) -> str | None:
    steps = orjson.loads(patch or "[]")
    values = (s.get("value") for s in steps if s["path"] == "/status/nominatedNodeName")
    return next((str(value) for value in values if value), None)


def _days(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return sorted({f"{row['at']:%Y-%m-%d}" for row in rows if row["at"]})


def _clock_words(rows: Sequence[Mapping[str, Any]]) -> str:
    days = _days(rows)
    if not days:
        return "no time is known"
    day = days[0] if len(days) == 1 else f"{days[0]} to {days[-1]}"
    told = (
        "estimated, off by ±s at most"
        if any(row["at_certainty"] == "estimated" for row in rows)
        else "observed"
    )
    return f"{day}, UTC; times are {told}"


def _cells(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    day = "" if len(_days(rows)) == 1 else "%m-%d "
    for row in rows:
        yield (
            str(row["revision"]),
            f"{row['at']:{day}%H:%M:%S.%f}"[:-3] if row["at"] else "unknown",
            _seconds(row["at_error_seconds"]),
            row["stage"],
            row["phase"] or "–",
            row["node"] or "–",
        )


def _seconds(error: float | None) -> str:
    if error is None:
        return "–"
    return f"{error:.3f}" if error < 10 else f"{error:,.0f}"


def _aligned(rows: Sequence[tuple[str, ...]], width: int) -> Iterator[str]:
    """Align the cells; a node name too long for what is left loses its middle."""
    cells = [[plain_text(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(_HEADS))]
    room = max(width - sum(widths[:-1]) - len(GUTTER) * (len(_HEADS) - 1), _NODE_AT_LEAST)
    for row in cells:
        row[-1] = shorten_middle(row[-1], room)
        texts = [padded(row[i], widths[i], right=i in _NUMBERS) for i in range(len(_HEADS) - 1)]
        yield GUTTER.join([*texts, row[-1]])


def _change(row: Mapping[str, Any], diff: str, width: int) -> Iterator[str]:
    writer = f"by {row['writer']}" if row["writer"] else ""
    pointers = orjson.loads(row["changed"] or "[]") if diff == "fields" else []
    if row["version"] == 1 or not pointers:
        if writer:
            yield plain_text(_INDENT + writer)
    else:
        yield from _fields(pointers, writer, width)
    if diff == "full":
        for step in orjson.loads(row["patch"] or "[]"):
            yield from _step(step, width)


def _fields(pointers: Sequence[str], writer: str, width: int) -> Iterator[str]:
    """List the changed fields, those of one parent together, in a line or two."""
    words = [f"{writer}:" if writer else "changed:"]
    room = (width - len(_INDENT)) * _POINTER_LINES - len("… 999 more")
    left = len(pointers)
    for text, size in _siblings(pointers):
        if len(" ".join([*words, text])) > room:
            break
        words.append(text)
        left -= size
    if left == len(pointers):  # not even the first fits
        words.append(shorten_middle(pointers[0], room - len(words[0])))
        left -= 1
    if left:
        words.append(f"… {left} more")
    yield from paragraph(" ".join(words), width, first=_INDENT)


def _siblings(pointers: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Write neighbours of one parent as ``/status/{hostIP,podIP}``."""
    for parent, group in groupby(pointers, key=lambda pointer: pointer.rpartition("/")[0]):
        names = [pointer.rpartition("/")[2] for pointer in group]
        inside = names[0] if len(names) == 1 else "{" + ",".join(names) + "}"
        yield f"{parent}/{inside}", len(names)


def _step(step: Mapping[str, Any], width: int) -> Iterator[str]:
    value = f" {orjson.dumps(step['value']).decode()}" if "value" in step else ""
    room = (width - len(_INDENT)) * _VALUE_LINES
    text = plain_text(f"{step['op']} {step['path'] or '/'}{value}")
    hidden = len(text) - room
    shown = shorten(text, room) + (f" ({hidden:,} more, all with -o json)" if hidden > 0 else "")
    yield from paragraph(shown, width, first=_INDENT, rest=_INDENT + "  ")


def _ending(life: PodLife, uid: str, width: int) -> Iterator[str]:
    for move in _of(life["moves"], uid):
        words = f"left {move['node']}: {move['cause']} ({move['certainty']}) — {move['detail']}"
        if move["replacement_pod"]:
            words += f"; replaced by {move['replacement_pod']} on {move['replacement_node'] or '–'}"
        yield from paragraph(words, width, rest=_INDENT)
