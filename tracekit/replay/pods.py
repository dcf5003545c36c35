"""Pods: every revision with its stage and field diff, and one life per uid."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from tracekit.model.objects import ObjectRevision
from tracekit.replay import stages
from tracekit.replay.diff import (
    Operation,
    changed_pointers,
    diff,
    split_heartbeats,
    without_managed_fields,
)
from tracekit.replay.owners import Owners, controller_of
from tracekit.replay.requests import effective_requests
from tracekit.replay.writers import field_owners, writer_of

__all__ = ["PodFold", "fold_pods", "is_pod"]

Row = dict[str, Any]
_Object = Mapping[str, Any]
_MIRROR = "kubernetes.io/config.mirror"


def is_pod(revision: ObjectRevision) -> bool:
    """Tell whether the value of this revision is a core Pod."""
    return revision.kind == "Pod" and revision.api_version == "v1"


def _dumps(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _is_mirror(pod: _Object) -> bool:
    """Tell whether the kubelet made this pod from a file.

    Source: kubelet types ConfigMirrorAnnotationKey; mirror pods are owned by their Node.
    """
    metadata = pod.get("metadata") or {}
    owners = metadata.get("ownerReferences") or ()
    return _MIRROR in (metadata.get("annotations") or ()) or any(
        o.get("kind") == "Node" and o.get("apiVersion") == "v1" for o in owners
    )


def _path_of(pod: _Object, created_here: bool, bound_here: bool) -> str | None:
    """Tell how a pod with a node came to it; None when the record does not prove it."""
    if _is_mirror(pod):
        return "static"
    if bound_here:
        return "preset" if created_here else "scheduler"
    if not (pod.get("metadata") or {}).get("managedFields"):
        return None
    # A Binding leaves no field owner behind, a node set at creation has its creator.
    return "preset" if field_owners(pod, "/spec/nodeName") else "scheduler"


def _patch(revision: ObjectRevision, before: _Object | None) -> list[Operation] | None:
    """Give the patch of a revision; None when the state before is not known."""
    after = revision.object
    if revision.operation == "DELETE":
        return [] if after is not None else None
    if after is None or (before is None and revision.version != 1):
        return None
    plain = without_managed_fields(after)
    if before is None:
        return [{"op": "add", "path": "", "value": plain}]
    return diff(without_managed_fields(before), plain)


def _writer(
    revision: ObjectRevision, before: _Object | None, patch: list[Operation] | None
) -> str | None:
    if revision.operation == "DELETE" or revision.object is None or patch is None:
        return None
    return writer_of(before, revision.object, patch)


def _same_life(revision: ObjectRevision) -> _Object | None:
    """Give the state before, unless it belongs to an earlier pod of the same name."""
    before = revision.previous
    if before is None or (before.get("metadata") or {}).get("uid") != revision.uid:
        return None
    return before


@dataclass(slots=True)
class _Life:
    """What is known of one uid so far; the row of ``pods`` in the making."""

    namespace: str
    pod: str
    uid: str
    key: str
    created_revision: int
    created_known: bool
    last: _Object
    bound_revision: int | None = None
    path: str | None = None
    started_revision: int | None = None
    ready_revision: int | None = None
    terminating_revision: int | None = None
    terminal_revision: int | None = None
    deleted_revision: int | None = None

    def see(self, revision: int, pod: _Object, created_here: bool) -> None:
        """Take in one more state."""
        first = revision == self.created_revision
        if stages.node_name(pod) and self.path is None and self.bound_revision is None:
            bound_here = created_here or not first
            self.bound_revision = revision if bound_here else None
            self.path = _path_of(pod, created_here, bound_here)
        if self.started_revision is None and stages.has_started(pod):
            self.started_revision = revision
        if self.ready_revision is None and stages.is_ready(pod):
            self.ready_revision = revision
        if self.terminating_revision is None and stages.is_terminating(pod):
            self.terminating_revision = revision
        if self.terminal_revision is None and stages.is_terminal(pod):
            self.terminal_revision = revision
        self.last = pod

    def row(self, owners: Owners) -> Row:
        """Give the row of ``pods``."""
        metadata, spec = self.last.get("metadata") or {}, self.last.get("spec") or {}
        owner = controller_of(self.last)
        return {
            "namespace": self.namespace,
            "pod": self.pod,
            "uid": self.uid,
            "key": self.key,
            "workload": owners.workload_of(self.last),
            "owner_kind": owner.kind if owner else None,
            "owner_name": owner.name if owner else None,
            "owner_uid": owner.uid if owner else None,
            "scheduler_name": spec.get("schedulerName"),
            "priority": spec.get("priority"),
            "created_revision": self.created_revision,
            "created_known": self.created_known,
            "bound_revision": self.bound_revision,
            "node": stages.node_name(self.last),
            "path": self.path,
            "started_revision": self.started_revision,
            "ready_revision": self.ready_revision,
            "terminating_revision": self.terminating_revision,
            "terminal_revision": self.terminal_revision,
            "deleted_revision": self.deleted_revision,
            "creation_timestamp": metadata.get("creationTimestamp"),
            "requests": _dumps(effective_requests(self.last)),
        }


class PodFold:
    """Folds pod revisions, ascending by (revision, sub), into ``pod_states`` and ``pods``."""

    def __init__(self) -> None:
        self.states: list[Row] = []
        self._open: dict[str, _Life] = {}
        self._lives: list[_Life] = []

    def add(self, revision: ObjectRevision) -> None:
        """Take in one revision; those of other kinds change nothing."""
        if not is_pod(revision):
            return
        self.states.append(self._state(revision))
        life = self._open.get(revision.key)
        # A delete whose state is lost has no uid; it ends what is known of the key.
        if life is None or (revision.uid and life.uid != revision.uid):
            life = self._begin(revision)
        if revision.operation == "DELETE":
            life.deleted_revision = revision.revision
            life.last = revision.object or life.last
            del self._open[revision.key]
        elif revision.object is not None:
            life.see(revision.revision, revision.object, revision.version == 1)

    def _begin(self, revision: ObjectRevision) -> _Life:
        """Open a life; an earlier one of the same key ends unseen, in a hole of the record."""
        life = _Life(
            namespace=revision.namespace,
            pod=revision.name,
            uid=revision.uid,
            key=revision.key,
            created_revision=revision.revision,
            created_known=revision.operation == "PUT" and revision.version == 1,
            last=revision.object or {},
        )
        if revision.operation == "DELETE" and stages.node_name(life.last):
            life.path = _path_of(life.last, created_here=False, bound_here=False)
        self._open[revision.key] = life
        self._lives.append(life)
        return life

    def _state(self, revision: ObjectRevision) -> Row:
        before, pod = _same_life(revision), revision.object or {}
        deleted = revision.operation == "DELETE"
        patch = _patch(revision, before)
        changed, heartbeats = split_heartbeats(changed_pointers(patch or ()))
        return {
            "namespace": revision.namespace,
            "pod": revision.name,
            "uid": revision.uid,
            "key": revision.key,
            "revision": revision.revision,
            "sub": revision.sub,
            "version": 0 if deleted else revision.version,
            "operation": revision.operation,
            "stage": stages.pod_stage(
                revision.operation, revision.version, before, revision.object
            ),
            "node": stages.node_name(pod),
            "phase": stages.phase(pod),
            "writer": _writer(revision, before, patch),
            "changed": _dumps(changed),
            "heartbeats": _dumps(heartbeats),
            "patch": None if patch is None else _dumps(patch),
        }

    def pods(self, owners: Owners) -> list[Row]:
        """Give the rows of ``pods``, one per uid, in the order of their first revision.

        Args:
            owners: What the record knows of controllers, complete.
        """
        return [life.row(owners) for life in self._lives]


def fold_pods(revisions: Iterable[ObjectRevision]) -> tuple[list[Row], list[Row]]:
    """Fold a whole record into the rows of ``pod_states`` and ``pods``.

    Args:
        revisions: Every object's revisions, ascending by (revision, sub).

    Returns:
        Rows of ``pod_states``, one per revision of a pod's key, and of ``pods``, one per
        uid; columns as in ``model.tables`` without ``cluster``.
    """
    fold, owners = PodFold(), Owners()
    for revision in revisions:
        owners.add(revision)
        fold.add(revision)
    return fold.states, fold.pods(owners)
