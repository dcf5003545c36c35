"""One pod's life, as rows and as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import orjson

from tracekit.cli.output import plain_text

if TYPE_CHECKING:
    import polars as pl

    from tracekit.pipeline.views import PodLife

__all__ = ["life_rows", "life_text"]

_PATCH_WIDTH = 400


def life_rows(life: PodLife, diff: str) -> pl.DataFrame:
    """Return the pod's revisions; ``diff`` none, fields or full decides the columns."""
    dropped = {"none": ["changed", "heartbeats", "patch"], "fields": ["patch"], "full": []}[diff]
    return life["pod_revisions"].drop(dropped)


def life_text(life: PodLife, diff: str) -> Iterator[str]:
    """Yield the lines that tell each incarnation, oldest first."""
    for number, pod in enumerate(life["pods"].iter_rows(named=True), 1):
        if number > 1:
            yield ""
        yield from _incarnation(life, pod, number, life["pods"].height)
        yield from _revisions(life, pod["uid"], diff)
        yield from _ending(life, pod["uid"])


def _incarnation(
    life: PodLife, pod: Mapping[str, Any], number: int, total: int
) -> Iterator[str]:
    which = f" ({number} of {total})" if total > 1 else ""
    yield plain_text(f"{pod['namespace']}/{pod['pod']}{which}  uid {pod['uid']}")
    attempts = _of(life["attempts"], pod["uid"])
    failed = [a for a in attempts if a["verdict"] != "bound"]
    placed = {
        "scheduler": "bound by the scheduler",
        "preset": "created with its node set by hand",
        "static": "a static pod of its kubelet",
    }.get(pod["path"] or "", "never bound")
    where = f" to {pod['node']}" if pod["node"] else ""
    yield plain_text(f"workload {pod['workload']} · {placed}{where} · "
                     f"{len(failed)} failed attempts known")


def _of(frame: pl.DataFrame, uid: str) -> list[dict[str, Any]]:
    return frame.filter(frame["uid"] == uid).to_dicts()


def _revisions(life: PodLife, uid: str, diff: str) -> Iterator[str]:
    messages = {a["revision"]: a["message"] for a in _of(life["attempts"], uid) if a["revision"]}
    for row in _of(life["pod_revisions"], uid):
        at = f"{row['at']:%H:%M:%S.%f}"[:-3] if row["at"] else "time unknown"
        doubt = f"±{row['at_error_seconds']:.3f}s" if row["at_error_seconds"] is not None else ""
        words = [f"rev {row['revision']:>8}", f"{at} {doubt:<9}", f"{row['stage']:<13}",
                 f"{row['phase'] or '–':<9}", row["node"] or "–"]
        if row["writer"]:
            words.append(f"by {row['writer']}")
        yield plain_text("  ".join(words)).rstrip()
        if row["stage"] == "unschedulable" and messages.get(row["revision"]):
            yield plain_text(f"    {messages[row['revision']]}")
        yield from _difference(row, diff)


def _difference(row: Mapping[str, Any], diff: str) -> Iterator[str]:
    if diff == "fields":
        pointers: Sequence[str] = orjson.loads(row["changed"] or "[]")
        if pointers and row["version"] != 1:
            shown = " ".join(pointers[:6])
            more = f" … {len(pointers) - 6} more" if len(pointers) > 6 else ""
            yield plain_text(f"    {shown}{more}")
    elif diff == "full":
        for step in orjson.loads(row["patch"] or "[]"):
            value = orjson.dumps(step.get("value")).decode() if "value" in step else ""
            cut = "…" if len(value) > _PATCH_WIDTH else ""
            yield plain_text(f"    {step['op']:<8}{step['path']} {value[:_PATCH_WIDTH]}{cut}")


def _ending(life: PodLife, uid: str) -> Iterator[str]:
    for move in _of(life["moves"], uid):
        words = f"left {move['node']}: {move['cause']} ({move['certainty']}) — {move['detail']}"
        if move["replacement_pod"]:
            words += f"; replaced by {move['replacement_pod']} on {move['replacement_node'] or '–'}"
        yield plain_text(words)
