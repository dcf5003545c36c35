"""The cluster at one point, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tracekit.cli.output import plain_text

__all__ = ["state_text"]

_GIB = 1 << 30


def state_text(state: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that show nodes, then pods, of a state of ``Trace.state_at``."""
    at = state["at"]
    when = f"{at:%Y-%m-%d %H:%M:%S.%f}Z (estimated)" if at else "time unknown"
    yield f"revision {state['revision']}  {when}"
    yield ""
    yield from _grid(
        ("NODE", "ZONE", "STATE", "CPU", "MEMORY GiB", "PODS", "TAINTS"),
        [_node(node) for node in state["nodes"]],
    )
    yield ""
    yield from _grid(
        ("NAMESPACE", "POD", "PHASE", "NODE"),
        [(p["namespace"], p["name"], p["phase"] or "–", p["node"] or "–") for p in state["pods"]],
    )


def _node(node: Mapping[str, Any]) -> tuple[str, ...]:
    words = ["Ready" if node["ready"] else "NotReady"]
    if node["unschedulable"]:
        words.append("cordoned")
    offered, asked = node["allocatable"], node["requested"]
    return (
        node["name"],
        node["zone"] or "–",
        ",".join(words),
        f"{asked.get('cpu', 0)}m/{offered.get('cpu', 0)}m",
        f"{asked.get('memory', 0) / _GIB:.1f}/{offered.get('memory', 0) / _GIB:.1f}",
        f"{asked.get('pods', 0)}/{offered.get('pods', 0)}",
        " ".join(_taint(t) for t in node["taints"]) or "–",
    )


def _taint(taint: Mapping[str, str]) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint['key']}{value}:{taint['effect']}"


def _grid(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    cells = [heads, *([plain_text(cell) for cell in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(heads))]
    for row in cells:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
