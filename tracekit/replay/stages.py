"""Which step of its life a pod took with one revision.

A revision often changes several things at once; its stage is the most advanced of them in
the order of ``STAGES``, and ``updated`` when it is none of them (contract.md, stage).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = [
    "STAGES",
    "condition",
    "has_started",
    "is_gated",
    "is_ready",
    "is_terminal",
    "is_terminating",
    "node_name",
    "phase",
    "pod_stage",
    "unschedulable_message",
]

STAGES = (
    "created",
    "gated",
    "unschedulable",
    "nominated",
    "bound",
    "started",
    "ready",
    "updated",
    "terminating",
    "succeeded",
    "failed",
    "deleted",
)

_Object = Mapping[str, Any]
_EMPTY: _Object = {}
_TERMINAL = {"Succeeded": "succeeded", "Failed": "failed"}


def _status(pod: _Object) -> _Object:
    return pod.get("status") or _EMPTY


def condition(pod: _Object, kind: str) -> _Object:
    """Give the pod's condition of this type, empty where it has none."""
    for one in _status(pod).get("conditions") or ():
        if one.get("type") == kind:
            found: _Object = one
            return found
    return _EMPTY


def node_name(pod: _Object) -> str | None:
    """Give the node the pod is bound to; None while it is not."""
    return (pod.get("spec") or _EMPTY).get("nodeName") or None


def phase(pod: _Object) -> str | None:
    """Give status.phase; None where the status does not have it."""
    return _status(pod).get("phase") or None


def is_terminal(pod: _Object) -> bool:
    """Tell whether the pod has Succeeded or Failed.

    Source: scheduler informers' field selector status.phase!=Succeeded,status.phase!=Failed.
    """
    return phase(pod) in _TERMINAL


def has_started(pod: _Object) -> bool:
    """Tell whether the pod runs or one of its containers has started."""
    status = _status(pod)
    if status.get("phase") == "Running":
        return True
    every = (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ()))
    return any("running" in (one.get("state") or ()) for one in every)


def is_ready(pod: _Object) -> bool:
    """Tell whether condition Ready is True."""
    return condition(pod, "Ready").get("status") == "True"


def is_gated(pod: _Object) -> bool:
    """Tell whether scheduling gates keep the pod out of the scheduler's queue.

    Source: core/v1 PodSpec.schedulingGates; the API server sets PodScheduled=False with
    reason SchedulingGated at creation.
    """
    return bool((pod.get("spec") or _EMPTY).get("schedulingGates"))


def unschedulable_message(pod: _Object) -> str | None:
    """Give the scheduler's words of PodScheduled=False with reason Unschedulable, else None.

    Source: core/v1 PodReasonUnschedulable; scheduler schedule_one.go handleSchedulingFailure.
    """
    scheduled = condition(pod, "PodScheduled")
    if scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable":
        return str(scheduled.get("message") or "")
    return None


def _nominated(pod: _Object) -> str | None:
    return _status(pod).get("nominatedNodeName") or None


def is_terminating(pod: _Object) -> bool:
    """Tell whether the pod has a deletionTimestamp."""
    return bool((pod.get("metadata") or _EMPTY).get("deletionTimestamp"))


def _steps(before: _Object, after: _Object) -> Iterator[str]:
    """Yield the steps from one state to the next, most advanced first."""
    ended = _TERMINAL.get(phase(after) or "")
    if ended and phase(before) != phase(after):
        yield ended
    if is_terminating(after) and not is_terminating(before):
        yield "terminating"
    if is_ready(after) and not is_ready(before):
        yield "ready"
    if has_started(after) and not has_started(before):
        yield "started"
    if node_name(after) and node_name(after) != node_name(before):
        yield "bound"
    if _nominated(after) and _nominated(after) != _nominated(before):
        yield "nominated"
    message = unschedulable_message(after)
    if message is not None and message != unschedulable_message(before):
        yield "unschedulable"
    if is_gated(after) and not is_gated(before):
        yield "gated"


def pod_stage(operation: str, version: int, before: _Object | None, after: _Object | None) -> str:
    """Name the step a pod took with one revision.

    Args:
        operation: ``PUT`` or ``DELETE``.
        version: etcd version of the key; 1 created it.
        before: State before; None when created here or not known.
        after: State after; None when not readable.

    Returns:
        One of ``STAGES``. With the state before unknown only a creation or a delete is
        certain; everything else is ``updated`` then.

    Source: contract.md, stage; BindingREST.setPodHostAndAnnotations for ``bound``.
    """
    if operation == "DELETE":
        return "deleted"
    if before is None and version == 1:
        return next(_steps(_EMPTY, after or _EMPTY), "created")
    if before is None or after is None:
        return "updated"
    return next(_steps(before, after), "updated")
