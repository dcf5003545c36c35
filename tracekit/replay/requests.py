"""What a pod asks of its node, by the scheduler's rule.

Source: component-helpers resource/helpers.go PodRequests and AggregateContainerRequests
with UseStatusResources, as the scheduler calls them (field-guide.md, Pods).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tracekit.replay.quantity import amounts, whole

__all__ = ["effective_requests"]

_Amounts = dict[str, int]
_Object = Mapping[str, Any]
_POD_LEVEL = ("cpu", "memory")


def _add(total: _Amounts, more: _Amounts) -> None:
    for name, nanos in more.items():
        total[name] = total.get(name, 0) + nanos


def _raise_to(total: _Amounts, floor: _Amounts) -> None:
    for name, nanos in floor.items():
        total[name] = max(total.get(name, nanos), nanos)


def _resize_infeasible(status: _Object) -> bool:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodResizePending":
            return bool(condition.get("reason") == "Infeasible")
    return False


def _container_requests(container: _Object, status: _Object | None, infeasible: bool) -> _Amounts:
    """Give one container's requests; while a resize is under way the largest of all told."""
    spec = amounts((container.get("resources") or {}).get("requests"))
    if status is None or status.get("resources") is None:
        return spec
    told = {} if infeasible else spec
    _raise_to(told, amounts(status["resources"].get("requests")))
    _raise_to(told, amounts(status.get("allocatedResources")))
    return told


def _container_statuses(status: _Object) -> dict[str, _Object]:
    both = (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ()))
    return {one.get("name", ""): one for one in both}


def _aggregate(spec: _Object, status: _Object) -> _Amounts:
    statuses, infeasible = _container_statuses(status), _resize_infeasible(status)
    total: _Amounts = {}
    for container in spec.get("containers") or ():
        found = statuses.get(container.get("name", ""))
        _add(total, _container_requests(container, found, infeasible))
    sidecars: _Amounts = {}
    highest_init: _Amounts = {}
    for container in spec.get("initContainers") or ():
        restartable = container.get("restartPolicy") == "Always"
        found = statuses.get(container.get("name", "")) if restartable else None
        needed = _container_requests(container, found, infeasible)
        if restartable:
            _add(total, needed)
            _add(sidecars, needed)
            needed = sidecars
        else:
            _add(needed, sidecars)
        _raise_to(highest_init, needed)
    _raise_to(total, highest_init)
    return total


def effective_requests(pod: _Object) -> dict[str, int]:
    """Compute what the scheduler subtracts from the node for this pod.

    Args:
        pod: Kubernetes JSON of a pod.

    Returns:
        Millicores (cpu), bytes (memory, storage) or counts by resource name, sorted:
        max(containers + sidecars, each init container + the sidecars before it), pod-level
        requests in their place where set, plus the overhead.

    Source: component-helpers resource/helpers.go PodRequests.
    """
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    total = _aggregate(spec, status)
    pod_level = amounts((spec.get("resources") or {}).get("requests"))
    for name, nanos in pod_level.items():
        if name in _POD_LEVEL or name.startswith("hugepages-"):
            total[name] = nanos
    _add(total, amounts(spec.get("overhead")))
    return {name: whole(name, nanos) for name, nanos in sorted(total.items())}
