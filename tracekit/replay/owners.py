"""Who controls whom: chains of controllers over everything the record knows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tracekit.model.objects import ObjectRevision

__all__ = ["ControllerRef", "Owners", "controller_of"]

_Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ControllerRef:
    """The controller an object names in its ownerReferences."""

    api_version: str
    kind: str
    name: str
    uid: str


def controller_of(document: _Object) -> ControllerRef | None:
    """Give the controller of an object; None for an object of its own.

    Source: metav1.GetControllerOf: the owner reference with controller=true.
    """
    for owner in (document.get("metadata") or {}).get("ownerReferences") or ():
        if owner.get("controller"):
            return ControllerRef(
                owner.get("apiVersion", ""),
                owner.get("kind", ""),
                owner.get("name", ""),
                owner.get("uid", ""),
            )
    return None


class Owners:
    """The controllers of all objects in the record, by uid, whenever they lived."""

    def __init__(self) -> None:
        self._controllers: dict[str, ControllerRef] = {}

    def add(self, revision: ObjectRevision) -> None:
        """Take in one revision of any kind."""
        if revision.object is None or not revision.uid:
            return
        if revision.uid in self._controllers and revision.version > 1:
            return  # a controller adopts once; read again only what is new
        owner = controller_of(revision.object)
        if owner is not None:
            self._controllers[revision.uid] = owner

    def topmost_uid(self, controller: ControllerRef) -> str:
        """Climb from a direct controller; give the uid of the topmost one."""
        top = self._climb(controller)
        return top.uid if top is not None else controller.uid

    def topmost(self, document: _Object) -> ControllerRef | None:
        """Climb to the topmost controller the record knows; None for an object of its own.

        A Node that owns its mirror pods is no workload and ends the climb.
        """
        return self._climb(controller_of(document))

    def _climb(self, step: ControllerRef | None) -> ControllerRef | None:
        top, seen = None, set[str]()
        while step is not None and step.uid not in seen:
            if step.kind == "Node" and step.api_version == "v1":
                break
            top = step
            seen.add(step.uid)
            step = self._controllers.get(step.uid)
        return top

    def workload_of(self, document: _Object) -> str:
        """Name the workload of a pod: ``Kind/name`` of its topmost controller, else its own.

        Source: contract.md, Workload.
        """
        top = self.topmost(document)
        if top is not None:
            return f"{top.kind}/{top.name}"
        metadata = document.get("metadata") or {}
        return f"{document.get('kind') or 'Pod'}/{metadata.get('name', '')}"
