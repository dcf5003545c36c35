"""How many pods each workload wants, over the revisions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tracekit.model.objects import ObjectRevision
from tracekit.replay.owners import controller_of

__all__ = ["WorkloadFold", "desired_replicas", "fold_workloads"]

Row = dict[str, Any]

# Kind -> the spec field that says how many; the API's default is one where it is not set.
_COUNTED = {
    ("apps", "Deployment"): "replicas",
    ("apps", "StatefulSet"): "replicas",
    ("apps", "ReplicaSet"): "replicas",
    ("extensions", "Deployment"): "replicas",
    ("extensions", "ReplicaSet"): "replicas",
    ("", "ReplicationController"): "replicas",
    ("batch", "Job"): "parallelism",
}
_UNCOUNTED = {("apps", "DaemonSet"), ("extensions", "DaemonSet"), ("batch", "CronJob")}


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]


def _is_built_in(group: str) -> bool:
    return "." not in group or group.endswith(".k8s.io")


def desired_replicas(api_version: str, kind: str, document: Mapping[str, Any]) -> int | None:
    """Read how many pods a workload wants at once.

    Args:
        api_version: apiVersion of the object.
        kind: Its kind.
        document: Its Kubernetes JSON.

    Returns:
        The count; None for kinds that have none (DaemonSet, CronJob) or do not say.

    Source: apps/v1 and batch/v1 defaults: replicas and parallelism are 1 where not set.
    """
    spec = document.get("spec") or {}
    field = _COUNTED.get((_group(api_version), kind))
    count = spec.get(field, 1) if field else spec.get("replicas")
    if (_group(api_version), kind) in _UNCOUNTED or not isinstance(count, int):
        return None
    return count


def _is_workload(revision: ObjectRevision, document: Mapping[str, Any]) -> bool:
    """Tell whether this is a controller of its own that may make pods."""
    if controller_of(document) is not None:
        return False
    known = (_group(revision.api_version), revision.kind)
    if known in _COUNTED or known in _UNCOUNTED:
        return True
    custom = not _is_built_in(known[0])
    spec = document.get("spec")
    return custom and isinstance(spec, dict) and isinstance(spec.get("replicas"), int)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A stretch in the making."""

    namespace: str
    kind: str
    name: str
    uid: str
    replicas: int | None
    from_revision: int

    def row(self, to_revision: int) -> Row:
        return {
            "namespace": self.namespace,
            "workload": f"{self.kind}/{self.name}",
            "kind": self.kind,
            "replicas": self.replicas,
            "from_revision": self.from_revision,
            "to_revision": to_revision,
        }


class WorkloadFold:
    """Folds revisions of workload controllers, ascending, into ``workload_replicas``."""

    def __init__(self) -> None:
        self._open: dict[str, _Wanted] = {}
        self._rows: list[Row] = []

    def add(self, revision: ObjectRevision) -> None:
        """Take in one revision; objects that are no workload change nothing."""
        now = self._wanted(revision)
        was = self._open.get(revision.key)
        if was is not None:
            if now is not None and (was.uid, was.replicas) == (now.uid, now.replicas):
                return
            del self._open[revision.key]
            if was.from_revision < revision.revision:
                self._rows.append(was.row(revision.revision))
        if now is not None:
            self._open[revision.key] = now

    def _wanted(self, revision: ObjectRevision) -> _Wanted | None:
        document = revision.object
        if revision.operation == "DELETE" or document is None:
            return None
        if not _is_workload(revision, document):
            return None
        return _Wanted(
            namespace=revision.namespace,
            kind=revision.kind,
            name=revision.name,
            uid=revision.uid,
            replicas=desired_replicas(revision.api_version, revision.kind, document),
            from_revision=revision.revision,
        )

    def rows(self, last_revision: int) -> list[Row]:
        """Give the rows of ``workload_replicas``, by namespace, workload and revision.

        Args:
            last_revision: Highest revision of the record; open stretches end behind it.
        """
        still = [wanted.row(last_revision + 1) for wanted in self._open.values()]
        order = ("namespace", "workload", "from_revision")
        return sorted((*self._rows, *still), key=lambda row: tuple(row[c] for c in order))


def fold_workloads(revisions: Iterable[ObjectRevision]) -> list[Row]:
    """Fold a whole record into the rows of ``workload_replicas``.

    Args:
        revisions: Every object's revisions, ascending by (revision, sub).

    Returns:
        One row per stretch in which a workload wants the same number of pods.
    """
    fold, last = WorkloadFold(), 0
    for revision in revisions:
        fold.add(revision)
        last = revision.revision
    return fold.rows(last)
