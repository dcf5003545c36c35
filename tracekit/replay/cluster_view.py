"""What a record says of owners, nodes and pods up to the revision being looked at.

The causes of moves are judged on this state, as of the revision that decided the move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tracekit.model.objects import ObjectRevision
from tracekit.replay import stages
from tracekit.replay.nodes import is_node
from tracekit.replay.owners import controller_of
from tracekit.replay.pods import is_pod

__all__ = ["ClusterView", "Owner", "Template"]

_Object = Mapping[str, Any]
# Nothing owns pods through these, and they are most of a record.
_NEVER_OWNERS = frozenset({"Event", "Lease", "EndpointSlice", "Endpoints", "ConfigMap", "Secret"})


@dataclass(slots=True)
class Owner:
    """An object that may own pods, as last seen.

    Attributes:
        gone_revision: Revision of its delete, or that set its deletionTimestamp.
        template_revision: Last revision that changed its pod template.
        fell_revision: Last revision that lowered its replicas (a Job's parallelism).
    """

    kind: str
    name: str
    document: _Object
    gone_revision: int | None = None
    template_revision: int | None = None
    fell_revision: int | None = None

    @property
    def spec(self) -> _Object:
        """Give the spec, empty where there is none."""
        spec = self.document.get("spec")
        return spec if isinstance(spec, dict) else {}

    @property
    def wanted(self) -> int | None:
        """Give how many pods it wants at once; None when its spec does not say."""
        count = self.spec.get("parallelism" if self.kind == "Job" else "replicas")
        return count if isinstance(count, int) else None

    def see(self, revision: int, document: _Object) -> None:
        """Take in its next state."""
        before, wanted_before = self.spec.get("template"), self.wanted
        self.document = document
        if self.spec.get("template") != before:
            self.template_revision = revision
        if self.wanted is not None and wanted_before is not None and self.wanted < wanted_before:
            self.fell_revision = revision
        if self.gone_revision is None and _is_terminating(document):
            self.gone_revision = revision


@dataclass(frozen=True, slots=True)
class Template:
    """The newest ControllerRevision of a StatefulSet or DaemonSet."""

    name: str
    number: int
    revision: int

    def made(self, pod: _Object) -> bool:
        """Tell whether the pod was made from it.

        Source: apps/v1 ControllerRevisionHashLabelKey; StatefulSet pods carry the whole
        name, DaemonSet pods its hash.
        """
        label = ((pod.get("metadata") or {}).get("labels") or {}).get("controller-revision-hash")
        return label is None or self.name == label or self.name.endswith(f"-{label}")


def _is_terminating(document: _Object) -> bool:
    return bool((document.get("metadata") or {}).get("deletionTimestamp"))


class ClusterView:
    """The state of owners, nodes, namespaces and pods, one revision after the other."""

    def __init__(self) -> None:
        self._owners: dict[str, Owner] = {}
        self._templates: dict[str, Template] = {}
        self._nodes: dict[str, int | None] = {}
        self._node_objects: dict[str, _Object] = {}
        self._namespaces: dict[str, int] = {}
        self._active: dict[str, set[str]] = {}

    def add(self, revision: ObjectRevision) -> None:
        """Take in one revision of any kind."""
        if revision.object is None or revision.kind in _NEVER_OWNERS:
            return
        if is_pod(revision):
            self._see_pod(revision, revision.object)
        elif is_node(revision):
            deleted = revision.operation == "DELETE"
            self._nodes[revision.name] = revision.revision if deleted else None
            self._node_objects[revision.name] = revision.object
        elif revision.kind == "ControllerRevision":
            self._see_template(revision, revision.object)
        else:
            self._see_owner(revision, revision.object)

    def _see_pod(self, revision: ObjectRevision, pod: _Object) -> None:
        owner = controller_of(pod)
        if owner is None:
            return
        active = self._active.setdefault(owner.uid, set())
        ended = revision.operation == "DELETE" or stages.is_terminal(pod) or _is_terminating(pod)
        (active.discard if ended else active.add)(revision.uid)

    def _see_template(self, revision: ObjectRevision, document: _Object) -> None:
        owner, number = controller_of(document), document.get("revision")
        if owner is None or not isinstance(number, int) or revision.operation == "DELETE":
            return
        known = self._templates.get(owner.uid)
        if known is None or number > known.number:
            self._templates[owner.uid] = Template(revision.name, number, revision.revision)

    def _see_owner(self, revision: ObjectRevision, document: _Object) -> None:
        known = self._owners.get(revision.uid)
        if known is None:
            known = Owner(revision.kind, revision.name, document)
            self._owners[revision.uid] = known
        if revision.operation == "PUT":
            known.see(revision.revision, document)
        elif known.gone_revision is None:
            known.gone_revision = revision.revision
        if revision.kind == "Namespace" and known.gone_revision is not None:
            self._namespaces.setdefault(revision.name, known.gone_revision)

    def owner(self, uid: str) -> Owner | None:
        """Give an owner by uid, also one that is gone; None when the record lacks it."""
        return self._owners.get(uid)

    def template(self, uid: str) -> Template | None:
        """Give the newest ControllerRevision of this owner; None when the record lacks it."""
        return self._templates.get(uid)

    def active_pods(self, uid: str) -> int:
        """Count this owner's pods that are neither terminal nor terminating.

        Source: kube-controller-manager FilterActivePods.
        """
        return len(self._active.get(uid, ()))

    def node_gone(self, name: str) -> int | None:
        """Give the revision that deleted the node; None while it exists or is not known."""
        return self._nodes.get(name)

    def node(self, name: str) -> _Object | None:
        """Give the node as last seen; None when the record lacks it."""
        return self._node_objects.get(name)

    def namespace_gone(self, name: str) -> int | None:
        """Give the revision that began to delete the namespace; None when none did."""
        return self._namespaces.get(name)
