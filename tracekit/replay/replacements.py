"""Which pod took the place of one that left: the next of its controller, each used once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tracekit.replay import stages
from tracekit.replay.owners import ControllerRef

__all__ = ["Replacements", "Resident", "wanted_node"]

_Object = Mapping[str, Any]


@dataclass(slots=True)
class Resident:
    """One pod of the record, as far as replacing and being replaced goes.

    Attributes:
        node: Its node, or the one it was made for (DaemonSet); None while it has none.
        workload_uid: uid of its topmost controller; its own for a bare pod.
    """

    namespace: str
    pod: str
    uid: str
    created_revision: int
    controller: ControllerRef | None
    workload_uid: str
    node: str | None = None


def wanted_node(pod: _Object) -> str | None:
    """Give the pod's node, or the only one its affinity names.

    Source: DaemonSet controller util.ReplaceDaemonSetPodNodeNameNodeAffinity: matchFields
    on metadata.name.
    """
    node = stages.node_name(pod)
    if node:
        return node
    affinity = ((pod.get("spec") or {}).get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and len(field.get("values") or ()) == 1:
                return str(field["values"][0])
    return None


class Replacements:
    """Hands out each pod once as the replacement of another, in order of creation."""

    def __init__(self, residents: list[Resident]) -> None:
        self._used: set[str] = set()
        self._by_controller: dict[str, list[Resident]] = defaultdict(list)
        self._by_workload: dict[str, list[Resident]] = defaultdict(list)
        for resident in sorted(residents, key=lambda r: (r.created_revision, r.uid)):
            if resident.controller is not None:
                self._by_controller[resident.controller.uid].append(resident)
                self._by_workload[resident.workload_uid].append(resident)

    def take(self, left: Resident, cause: str, revision: int) -> Resident | None:
        """Give the pod that took the place of one that left; None where none did.

        Args:
            left: The pod that left.
            cause: Cause of its move.
            revision: Revision that decided the move.
        """
        found = self._find(left, cause, revision)
        if found is not None:
            self._used.add(found.uid)
        return found

    def _find(self, left: Resident, cause: str, revision: int) -> Resident | None:
        owner = left.controller
        if owner is None or cause in ("scale_down", "owner_deleted"):
            return None
        if cause == "rollout" and owner.kind == "ReplicaSet":
            siblings = self._by_workload[left.workload_uid]
            others = (r for r in siblings if r.controller and r.controller.uid != owner.uid)
            return self._first(r for r in others if r.created_revision > left.created_revision)
        later = (r for r in self._by_controller[owner.uid] if r.created_revision > revision)
        if owner.kind == "StatefulSet":
            return self._first(r for r in later if r.pod == left.pod)
        if owner.kind == "DaemonSet":
            return self._first(r for r in later if r.node == left.node)
        return self._first(later)

    def _first(self, candidates: Iterable[Resident]) -> Resident | None:
        return next((r for r in candidates if r.uid not in self._used), None)
