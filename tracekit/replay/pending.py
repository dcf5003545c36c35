"""Stretches of a pod's waiting, with the kind and the cause of each.

A stretch is half-open in revisions, split when kind or cause changes (its count of nodes is
the one it began with), and closed at bind
(or start, for ``starting``), delete, a terminal phase, or the last revision (then open).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tracekit.model.objects import JSON, ObjectRevision
from tracekit.replay.evidence import scheduled_condition
from tracekit.replay.messages import FILTER_ORDER, ParsedReason, parse_verdict
from tracekit.replay.stages import has_started, is_gated, is_terminal, node_name

__all__ = ["PendingFold", "PendingSpell", "main_reason"]


@dataclass(frozen=True, slots=True)
class PendingSpell:
    """One stretch; revisions from (included) and to (not included)."""

    namespace: str
    pod: str
    uid: str
    from_revision: int
    to_revision: int
    open: bool
    kind: str
    cause: str
    nodes_blocked: int | None


@dataclass(slots=True)
class _Waiting:
    change: ObjectRevision
    why: tuple[str, str, int | None]

    def goes_on(self, why: tuple[str, str, int | None] | None, uid: str) -> bool:
        """Tell whether it still waits for the same, on however many nodes."""
        return why is not None and why[:2] == self.why[:2] and uid == self.change.uid


def main_reason(reasons: Sequence[ParsedReason]) -> ParsedReason | None:
    """Return the reason that blocks most nodes; in a tie the earlier filter's."""

    def rank(reason: ParsedReason) -> tuple[int, int]:
        known = reason.plugin in FILTER_ORDER
        place = FILTER_ORDER.index(reason.plugin) if known else len(FILTER_ORDER)
        return (-(reason.nodes or 0), place)

    return min(reasons, key=rank, default=None)


class PendingFold:
    """Folds pod changes, ascending, into stretches of waiting."""

    def __init__(self) -> None:
        self._waiting: dict[str, _Waiting] = {}
        self._spells: list[PendingSpell] = []

    def add(self, change: ObjectRevision) -> None:
        """Take in one change; those of other kinds change nothing."""
        if change.kind != "Pod":
            return
        why = None if change.operation == "DELETE" else _why(change.object or {})
        running = self._waiting.get(change.key)
        if running and not running.goes_on(why, change.uid):
            self._spells.append(_spell(running, change.revision, is_open=False))
            del self._waiting[change.key]
        if why and change.key not in self._waiting:
            self._waiting[change.key] = _Waiting(change, why)

    def spells(self, last_revision: int) -> list[PendingSpell]:
        """Return all stretches; those still open end at the last revision."""
        still = (_spell(running, last_revision, is_open=True) for running in self._waiting.values())
        return [*self._spells, *still]


def _spell(running: _Waiting, to_revision: int, *, is_open: bool) -> PendingSpell:
    change = running.change
    return PendingSpell(
        change.namespace,
        change.name,
        change.uid,
        change.revision,
        to_revision,
        is_open,
        *running.why,
    )


def _why(pod: Mapping[str, JSON]) -> tuple[str, str, int | None] | None:
    if is_terminal(pod):
        return None
    if node_name(pod):
        return None if has_started(pod) else ("starting", "starting", None)
    if is_gated(pod):
        return ("gated", "gated", None)
    condition = scheduled_condition(pod)
    if condition.get("status") == "False" and condition.get("reason") == "Unschedulable":
        reason = main_reason(parse_verdict(condition.get("message", "")).reasons)
        if reason is None:
            return ("unschedulable", condition.get("message") or "unknown", None)
        return ("unschedulable", reason.reason, reason.nodes)
    if condition.get("status") == "False" and condition.get("reason") == "SchedulerError":
        return ("error", "error", None)
    return ("not_tried", "not_tried", None)
