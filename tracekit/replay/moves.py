"""Moves: one row per pod that was bound and then left its node, with its cause."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import orjson

from tracekit.model.objects import ObjectRevision
from tracekit.replay import stages
from tracekit.replay.cluster_view import ClusterView
from tracekit.replay.events import is_event, occurred_at, read_time
from tracekit.replay.move_causes import Finding, judge_deletion, judge_end
from tracekit.replay.owners import Owners, controller_of
from tracekit.replay.pods import is_pod
from tracekit.replay.replacements import Replacements, Resident, wanted_node

__all__ = ["MoveFold", "fold_moves"]

Row = dict[str, Any]
_Object = Mapping[str, Any]

# "by pod <uid> on node X" (1.30+), "by ns/name on node X" (1.18-1.25), "by a pod on node X"
# (1.26-1.28) names nobody. Source: field-guide.md, Pods (Preemption).
_PREEMPTOR = re.compile(r"by (?:pod )?(?P<uid>[0-9a-f]{8}-[0-9a-f-]{27})\b|by (?P<name>\S+/\S+) on")
_WEAK = frozenset({"deleted_by_user", "unknown"})
_SECOND = timedelta(seconds=1)
_TOLD_BY_EVENT = {
    "Preempted": ("preemption", "preempted"),
    "TaintManagerEviction": ("taint_eviction", "Marking for deletion"),
    "Evicted": ("kubelet_eviction", ""),
}


@dataclass(slots=True)
class _Left:
    """A pod that left its node.

    Attributes:
        requested_at: When the delete was asked for; None where no deletionTimestamp says.
    """

    uid: str
    node: str
    revision: int
    finding: Finding
    requested_at: datetime | None


@dataclass(frozen=True, slots=True)
class _Told:
    """An Event about a pod that may say why it left."""

    revision: int
    at: datetime | None
    reason: str
    message: str
    source: str | None
    related: _Object

    def preemptor(self) -> str | None:
        """Give the preemptor's uid, or its namespace/name where only that is told."""
        if self.related.get("uid"):
            return str(self.related["uid"])
        found = _PREEMPTOR.search(self.message)
        return (found["uid"] or found["name"]) if found else None


def _told(revision: ObjectRevision, event: _Object) -> _Told:
    source = event.get("reportingComponent") or (event.get("source") or {}).get("component")
    message = event.get("message") or event.get("note") or ""
    return _Told(
        revision=revision.revision,
        at=occurred_at(event),
        reason=event.get("reason", ""),
        message=message,
        source=source,
        related=event.get("related") or {},
    )


def _requested_at(pod: _Object) -> datetime | None:
    """Give when a delete was asked for.

    Source: apiserver registry rest.BeforeDelete: deletionTimestamp is now plus the grace.
    """
    metadata = pod.get("metadata") or {}
    at = read_time(metadata.get("deletionTimestamp"))
    grace = metadata.get("deletionGracePeriodSeconds") or 0
    try:
        return None if at is None else at - timedelta(seconds=grace)
    except OverflowError:  # a grace beyond the calendar
        return None


class MoveFold:
    """Folds revisions of every kind, ascending, into ``moves``."""

    def __init__(self) -> None:
        self._view = ClusterView()
        self._residents: dict[str, Resident] = {}
        self._left: dict[str, _Left] = {}
        self._by_uid: dict[str, list[_Told]] = defaultdict(list)
        self._by_name: dict[str, list[_Told]] = defaultdict(list)

    def add(self, revision: ObjectRevision) -> None:
        """Take in one revision of any kind."""
        if is_event(revision):
            self._hear(revision)
            return
        if is_pod(revision) and revision.object is not None:
            self._see_pod(revision, revision.object)
        self._view.add(revision)

    def _hear(self, revision: ObjectRevision) -> None:
        event = revision.object
        if event is None or revision.operation == "DELETE":
            return
        about = event.get("involvedObject") or event.get("regarding") or {}
        if event.get("reason") not in _TOLD_BY_EVENT or about.get("kind") != "Pod":
            return
        told = _told(revision, event)
        if about.get("uid"):
            self._by_uid[about["uid"]].append(told)
        else:
            # The taint manager's Events name no uid.
            self._by_name[f"{about.get('namespace', '')}/{about.get('name', '')}"].append(told)

    def _see_pod(self, revision: ObjectRevision, pod: _Object) -> None:
        resident = self._residents.get(revision.uid)
        if resident is None:
            resident = self._arrive(revision, pod)
        resident.node = wanted_node(pod) or resident.node
        node = stages.node_name(pod)
        if node is None or revision.uid in self._left:
            return
        deleted = revision.operation == "DELETE"
        if deleted or stages.is_terminating(pod):
            # A pod that got both in one write was terminal by that request, not by itself.
            finding = judge_deletion(pod, self._view)
        elif stages.is_terminal(pod):
            finding = judge_end(pod, self._view)
        else:
            return
        self._left[revision.uid] = _Left(
            revision.uid, node, revision.revision, finding, _requested_at(pod)
        )

    def _arrive(self, revision: ObjectRevision, pod: _Object) -> Resident:
        resident = Resident(
            namespace=revision.namespace,
            pod=revision.name,
            uid=revision.uid,
            created_revision=revision.revision,
            controller=controller_of(pod),
            workload_uid=revision.uid,
        )
        self._residents[revision.uid] = resident
        return resident

    def rows(self, owners: Owners) -> list[Row]:
        """Give the rows of ``moves``, by revision and uid; call it once the record is read.

        Args:
            owners: What the record knows of controllers, complete.
        """
        for resident in self._residents.values():
            if resident.controller is not None:
                resident.workload_uid = owners.topmost_uid(resident.controller)
        replacements = Replacements(list(self._residents.values()))
        order = sorted(self._left.values(), key=lambda left: (left.revision, left.uid))
        return [self._row(left, replacements) for left in order]

    def _events_of(self, resident: Resident, left: _Left) -> list[_Told]:
        """Give the Events about this pod; one without a uid counts from its creation on."""
        named = self._by_name.get(f"{resident.namespace}/{resident.pod}", ())
        own = [told for told in named if told.revision >= resident.created_revision]
        return sorted((*self._by_uid.get(left.uid, ()), *own), key=lambda told: told.revision)

    def _row(self, left: _Left, replacements: Replacements) -> Row:
        resident = self._residents[left.uid]
        events = self._events_of(resident, left)
        finding = _with_events(left, events)
        preemptor, finding = self._with_preemptor(finding, events)
        taken = replacements.take(resident, finding.cause, left.revision)
        evidence = {"revision": left.revision, **finding.evidence}
        return {
            "namespace": resident.namespace,
            "pod": resident.pod,
            "uid": left.uid,
            "node": left.node,
            "revision": left.revision,
            "cause": finding.cause,
            "detail": finding.detail,
            "actor": finding.actor,
            "preemptor": preemptor,
            "replacement_uid": taken.uid if taken else None,
            "replacement_pod": taken.pod if taken else None,
            "replacement_node": taken.node if taken else None,
            "certainty": finding.certainty,
            "evidence": orjson.dumps(evidence, option=orjson.OPT_SORT_KEYS).decode(),
        }

    def _name(self, preemptor: str) -> str:
        known = self._residents.get(preemptor)
        return f"{known.namespace}/{known.pod}" if known else preemptor

    def _with_preemptor(self, finding: Finding, events: list[_Told]) -> tuple[str | None, Finding]:
        """Name the preemptor; several may claim a victim, the first has it."""
        told = [e.preemptor() for e in events if e.reason == "Preempted"]
        named = list(dict.fromkeys(one for one in told if one))
        if finding.cause != "preemption" or not named:
            return None, finding
        evidence: dict[str, Any] = {**finding.evidence, "preemptor": named[0]}
        if named[1:]:
            evidence["later_preemptors"] = named[1:]
        return self._name(named[0]), replace(finding, evidence=evidence)


def _in_time(left: _Left, told: _Told) -> bool:
    """Tell whether an Event can be the cause: it happened no later than the delete."""
    if told.at is None or left.requested_at is None:
        return True
    return told.at <= left.requested_at + _SECOND


def _with_events(left: _Left, events: list[_Told]) -> Finding:
    """Let Events speak where neither the pod's record nor its owner's did."""
    finding = left.finding
    for told in events:
        cause, words = _TOLD_BY_EVENT[told.reason]
        if words.lower() not in told.message.lower():
            continue
        evidence = {**finding.evidence, "event_revision": told.revision}
        if finding.cause == cause:
            return replace(finding, actor=told.source or finding.actor, evidence=evidence)
        if finding.cause in _WEAK and _in_time(left, told):
            return Finding(
                cause=cause,
                detail=told.message,
                certainty="observed",
                actor=told.source,
                evidence=evidence,
            )
    return finding


def fold_moves(revisions: Iterable[ObjectRevision]) -> list[Row]:
    """Fold a whole record into the rows of ``moves``.

    Args:
        revisions: Every object's revisions, ascending by (revision, sub).

    Returns:
        One row per uid that was bound and then got a deletionTimestamp, was deleted or
        ended; columns as in ``model.tables`` without ``cluster``.
    """
    fold, owners = MoveFold(), Owners()
    for revision in revisions:
        owners.add(revision)
        fold.add(revision)
    return fold.rows(owners)
