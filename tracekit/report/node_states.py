"""Node states over time, folded from the changes that ``node_changes`` lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tracekit.report.fields import Row, instant, text

__all__ = ["NodeSpan", "natural_order", "node_spans", "state_at_end"]

_DIGITS = re.compile(r"(\d+)")
_TAINT_KEY = re.compile(r"[A-Za-z0-9][\w./-]*")


@dataclass(frozen=True, slots=True)
class NodeSpan:
    """A stretch in which a node was ``cordoned``, ``tainted``, ``not_ready`` or ``gone``.

    Attributes:
        begin, end: Microseconds since the epoch; an open end is None.
        detail: The taint, or what the change said.
    """

    node: str
    kind: str
    begin: int
    end: int | None
    detail: str


def natural_order(name: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key that puts ``node-2`` before ``node-10``."""
    return tuple((0, int(p), "") if p.isdigit() else (1, 0, p) for p in _DIGITS.split(name) if p)


_OPENS = {
    "cordoned": "cordoned",
    "taint_added": "tainted",
    "not_ready": "not_ready",
    "deleted": "gone",
}
_CLOSES = {
    "uncordoned": ("cordoned",),
    "taint_removed": ("tainted",),
    "ready": ("not_ready",),
    "registered": ("gone",),
    "deleted": ("cordoned", "tainted", "not_ready"),
}


def node_spans(rows: Iterable[Row]) -> list[NodeSpan]:
    """Fold changes into spans, ordered by node and start.

    The taint ``node.kubernetes.io/unschedulable`` is the cordon itself and makes no span of
    its own, nor do the other ``node.kubernetes.io`` taints, which repeat Ready.

    Args:
        rows: Rows of ``node_changes`` in revision order.

    Source: kubernetes pkg/controller/nodelifecycle, the taints it sets by itself.
    """
    running: dict[tuple[str, str, str], NodeSpan] = {}
    spans: list[NodeSpan] = []
    for row in rows:
        at, node = instant(row, "at"), text(row, "node")
        if at is None:
            continue
        _close(running, spans, row, at)
        for kind, detail in _opened(text(row, "change"), text(row, "detail")):
            if not (kind == "tainted" and "node.kubernetes.io/" in detail):
                key = (node, kind, _subject(kind, detail))
                running.setdefault(key, NodeSpan(node, kind, at, None, detail))
    spans.extend(running.values())
    return sorted(spans, key=lambda s: (natural_order(s.node), s.begin, s.kind, s.detail))


def _opened(change: str, detail: str) -> Iterable[tuple[str, str]]:
    """Yield the states a change begins; a registered node tells its own in ``detail``."""
    if change in _OPENS:
        yield _OPENS[change], detail
    if change != "registered":
        return
    for part in detail.split("; "):
        if part == "cordoned":
            yield "cordoned", part
        elif part.startswith("ready: ") and not part.startswith("ready: True"):
            yield "not_ready", part.removeprefix("ready: ")
        elif part.startswith("taints: "):
            yield from (("tainted", taint) for taint in part.removeprefix("taints: ").split(", "))


def _close(
    running: dict[tuple[str, str, str], NodeSpan], spans: list[NodeSpan], row: Row, at: int
) -> None:
    change, node, detail = text(row, "change"), text(row, "node"), text(row, "detail")
    kinds = _CLOSES.get(change, ())
    for key in [k for k in running if k[0] == node and k[1] in kinds]:
        if change == "taint_removed" and key[2] != _subject("tainted", detail):
            continue
        span = running.pop(key)
        spans.append(NodeSpan(span.node, span.kind, span.begin, at, span.detail))


def _subject(kind: str, detail: str) -> str:
    """Return what tells one taint from another on a node: its key."""
    match = _TAINT_KEY.search(detail) if kind == "tainted" else None
    return match[0] if match else ""


def state_at_end(spans: Iterable[NodeSpan]) -> Mapping[str, str]:
    """Return each node's state at the end in words; a node without any is open."""
    words: dict[str, list[str]] = {}
    for span in spans:
        blocks = span.kind != "tainted" or "PreferNoSchedule" not in span.detail
        if span.end is None and blocks:
            said = span.kind.replace("_", " ")
            if said not in words.setdefault(span.node, []):
                words[span.node].append(said)
    return {node: ", ".join(sorted(said)) for node, said in words.items()}
