"""What tells of a scheduling attempt: pod conditions, bindings, events and log lines.

Source: kube-scheduler ``schedule_one.go`` (handleSchedulingFailure, bind), read at the
versions that each pattern names; wordings in facts/formats.md §2.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tracekit.model.objects import JSON, ObjectRevision

__all__ = [
    "VERDICT_WORDS",
    "EventTime",
    "StateVerdict",
    "VerdictFold",
    "VerdictLine",
    "scheduled_condition",
    "verdict_line",
]

VERDICT_WORDS = (
    "Unable to schedule ",
    "Successfully bound pod to node",
    " is bound successfully on node",
    "Error scheduling ",
)
_MOST_NODES = 10**9
_CONDITION_VERDICTS = {"Unschedulable": "unschedulable", "SchedulerError": "error"}
_STRUCTURED = {
    "Unable to schedule pod; no fit; waiting": "unschedulable",
    "Unable to schedule pod; no nodes are registered to the cluster; waiting": "unschedulable",
    "Unable to schedule pod, possibly due to node not found; waiting": "unschedulable",
    "Unable to schedule pod belonging to a pod group; waiting": "unschedulable",  # 1.36
    "Error scheduling pod; retrying": "error",
    "Successfully bound pod to node": "bound",
    "pod is bound successfully on node": "bound",  # builds of 1.19 before its release
}
_NO_NODES = "no nodes available to schedule pods"
# 1.7-1.9 "NS NAME", 1.13-1.18 "NS/NAME"; "possibly due to node not found" up to 1.20.
_NO_FIT = re.compile(
    r"Unable to schedule (\S+?)[ /](\S+): "
    r"(?:(?:no fit|possibly due to node not found): (?P<words>.*?)"
    r"|no nodes are registered to the cluster)(?:; waiting)?$",
    re.S,
)
_ERROR = re.compile(r"Error scheduling (\S+?)[ /]([^:\s]+): (?P<words>.*?)(?:; retrying)?$", re.S)
_BOUND = re.compile(  # 1.15-1.18
    r"pod ([^/\s]+)/(\S+) is bound successfully on node \"?([^\",\s]+)\"?"
    r"(?:, (\d+) nodes evaluated, (\d+) nodes were found feasible)?"
)


@dataclass(frozen=True, slots=True)
class StateVerdict:
    """A verdict that the stream holds: a condition's message or a binding."""

    namespace: str
    pod: str
    uid: str
    revision: int
    verdict: str
    message: str
    node: str | None


@dataclass(frozen=True, slots=True)
class EventTime:
    """One time at which a FailedScheduling or Scheduled event says it happened, in µs UTC."""

    namespace: str
    pod: str
    uid: str
    at_us: int
    error_us: int
    verdict: str
    message: str
    node: str | None = None


@dataclass(frozen=True, slots=True)
class VerdictLine:
    """One verdict line of a scheduler log; time in µs of the log's own yearless clock."""

    source_id: str
    record_no: int
    stamp_us: int | None
    namespace: str
    pod: str
    verdict: str
    message: str
    node: str | None
    evaluated: int | None
    feasible: int | None


def scheduled_condition(pod: Mapping[str, JSON] | None) -> Mapping[str, JSON]:
    """Return the PodScheduled condition of a pod, or an empty mapping."""
    conditions = ((pod or {}).get("status") or {}).get("conditions") or ()
    return next((c for c in conditions if c.get("type") == "PodScheduled"), {})


class VerdictFold:
    """Folds pod changes into each new Unschedulable message and each binding.

    A message counts when it differs from the last one of the same uid: the scheduler
    does not write the same words twice.

    Source: ``schedule_one.go`` updatePod, which patches only a changed condition.
    """

    def __init__(self) -> None:
        self.verdicts: list[StateVerdict] = []
        self._last: dict[str, str] = {}

    def add(self, change: ObjectRevision) -> None:
        """Take in one change; those of other kinds and deletes say nothing."""
        if change.kind != "Pod" or change.operation == "DELETE" or change.object is None:
            return
        condition = scheduled_condition(change.object)
        verdict = _CONDITION_VERDICTS.get(condition.get("reason", ""))
        if condition.get("status") == "False" and verdict:
            message = condition.get("message", "")
            if self._last.get(change.uid) != message:
                self._last[change.uid] = message
                self.verdicts.append(_of(change, verdict, message, None))
        node = _node(change.object)
        if node and _was_bound_now(change):
            self.verdicts.append(_of(change, "bound", "", node))


def _of(change: ObjectRevision, verdict: str, message: str, node: str | None) -> StateVerdict:
    return StateVerdict(
        change.namespace, change.name, change.uid, change.revision, verdict, message, node
    )


def _node(pod: Mapping[str, JSON]) -> str | None:
    return (pod.get("spec") or {}).get("nodeName") or None


def _was_bound_now(change: ObjectRevision) -> bool:
    before = change.previous
    if before is None or (before.get("metadata") or {}).get("uid") != change.uid:
        return False
    return not _node(before)


def verdict_line(
    row: Mapping[str, Any], fields: Callable[[str], Mapping[str, Any]]
) -> VerdictLine | None:
    """Read a row of ``log_lines`` as a verdict; None when it is none.

    Args:
        row: source_id, record_no, stamp_us, message, structured and raw.
        fields: Parses the key=value pairs of a structured record.
    """
    if row["structured"]:
        return _structured(row, fields)
    for pattern, verdict in ((_NO_FIT, "unschedulable"), (_ERROR, "error")):
        if match := pattern.search(row["message"]):
            return _line(row, (match[1], match[2]), verdict, match["words"] or _NO_NODES)
    if match := _BOUND.search(row["message"]):
        counts = (_number(match[4]), _number(match[5]))
        return _line(row, (match[1], match[2]), "bound", "", match[3], counts)
    return None


def _structured(
    row: Mapping[str, Any], fields: Callable[[str], Mapping[str, Any]]
) -> VerdictLine | None:
    verdict = _STRUCTURED.get(row["message"])
    if verdict is None:
        return None
    pairs = fields(row["raw"])
    namespace, _, name = str(pairs.get("pod", "")).rpartition("/")
    counts = (
        _number(pairs.get("evaluatedNodes", pairs.get("evaluated nodes"))),
        _number(pairs.get("feasibleNodes", pairs.get("feasible nodes"))),
    )
    node = str(pairs["node"]) if verdict == "bound" and "node" in pairs else None
    words = _NO_NODES if "no nodes are registered" in row["message"] else row["message"]
    message = "" if verdict == "bound" else str(pairs.get("err") or words)
    return _line(row, (namespace, name), verdict, message, node, counts)


def _line(
    row: Mapping[str, Any],
    pod: tuple[str, str],
    verdict: str,
    message: str,
    node: str | None = None,
    counts: tuple[int | None, int | None] = (None, None),
) -> VerdictLine:
    return VerdictLine(
        row["source_id"], row["record_no"], row["stamp_us"], *pod, verdict, message, node, *counts
    )


def _number(value: Any) -> int | None:
    try:
        number = int(value)
    except (TypeError, ValueError):
        return None
    return number if abs(number) < _MOST_NODES else None
