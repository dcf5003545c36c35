"""The cluster at one point, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from tracekit.cli.screen import GUTTER, counted, grid, paragraph

__all__ = ["state_text"]

_GIB = 1 << 30
_EVERYDAY = ("cpu", "memory", "pods", "ephemeral-storage")


def state_text(state: Mapping[str, Any], error_seconds: float | None, width: int) -> Iterator[str]:
    """Yield the lines that show nodes, then pods.

    Args:
        state: A state of ``Trace.state_at``.
        error_seconds: Bound on the error of its time; None when it is not known.
        width: Columns of the screen.
    """
    yield f"revision {state['revision']}, {_time(state['at'], error_seconds)}"
    nodes, pods = state["nodes"], state["pods"]
    yield ""
    yield from _nodes(nodes, width)
    yield ""
    for lines in grid(
        ("pod", "phase", "node"),
        [(f"{p['namespace']}/{p['name']}", p["phase"] or "–", p["node"] or "–") for p in pods],
        width,
        frozenset(),
    ):
        yield from lines
    yield ""
    yield f"{counted(len(nodes), 'node')}, {counted(len(pods), 'pod')}"


def _time(at: datetime | None, error_seconds: float | None) -> str:
    if at is None:
        return "time unknown"
    bound = "" if error_seconds is None else f" ± {error_seconds:.3f} s"
    return f"{at:%Y-%m-%dT%H:%M:%S.%f}Z estimated{bound}"


def _nodes(nodes: Sequence[Mapping[str, Any]], width: int) -> Iterator[str]:
    rows = grid(
        ("node", "zone", "state", "cpu", "of", "GiB", "of", "pods", "of"),
        [_node(node) for node in nodes],
        width,
        frozenset(range(3, 9)),
    )
    yield from next(rows)
    for node, lines in zip(nodes, rows, strict=True):
        yield from lines
        for words in _notes(node):
            yield from paragraph(words, width, first=GUTTER * 2)


def _node(node: Mapping[str, Any]) -> tuple[str, ...]:
    words = ["Ready" if node["ready"] else "NotReady"]
    if node["unschedulable"]:
        words.append("cordoned")
    offered, asked = node["allocatable"], node["requested"]
    return (
        node["name"],
        node["zone"] or "–",
        ",".join(words),
        *(f"{source.get('cpu', 0):,}m" for source in (asked, offered)),
        *(f"{source.get('memory', 0) / _GIB:.1f}" for source in (asked, offered)),
        *(f"{source.get('pods', 0):,}" for source in (asked, offered)),
    )


def _notes(node: Mapping[str, Any]) -> Iterator[str]:
    """Tell what does not fit into a row: other resources that pods asked for, and taints."""
    offered, asked = node["allocatable"], node["requested"]
    others = [
        f"{name} {asked.get(name, 0):,} of {offered.get(name, 0):,}"
        for name in sorted({*offered, *asked})
        if name not in _EVERYDAY and (offered.get(name) or asked.get(name))
    ]
    if others:
        yield ", ".join(others)
    for taint in node["taints"]:
        value = f"={taint['value']}" if taint.get("value") else ""
        yield f"taint {taint['key']}{value}:{taint['effect']}"
