"""Nodes: what changed on them, and stretches of revisions with one state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from tracekit.model.objects import ObjectRevision
from tracekit.replay.quantity import whole_units

__all__ = ["NodeFold", "NodeState", "fold_nodes", "is_node", "node_state", "zone_of"]

Row = dict[str, Any]
_Object = Mapping[str, Any]
_ZONES = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_CLOSING = frozenset({"NoSchedule", "NoExecute"})


def is_node(revision: ObjectRevision) -> bool:
    """Tell whether the value of this revision is a core Node."""
    return revision.kind == "Node" and revision.api_version == "v1"


def zone_of(labels: Mapping[str, str]) -> str | None:
    """Give the zone of a node by its labels, the older label where the newer is missing.

    Source: well-known labels topology.kubernetes.io/zone and its deprecated predecessor.
    """
    return next((labels[name] for name in _ZONES if labels.get(name)), None)


@dataclass(frozen=True, slots=True)
class NodeState:
    """What scheduling sees of a node; taints keep their order, maps are sorted JSON.

    Attributes:
        ready: Condition Ready is True.
        ready_words: Status, reason and message of condition Ready, for a reader.
        taints: ``key=value:effect`` by taint; value as the API has it.
        allocatable: Millicores, bytes or counts by resource.
    """

    zone: str | None
    ready: bool
    ready_words: str
    unschedulable: bool
    taints: tuple[str, ...]
    taints_json: str
    allocatable: tuple[tuple[str, int], ...]
    labels: tuple[tuple[str, str], ...]
    closed: bool

    @property
    def open(self) -> bool:
        """Ready, not cordoned, without NoSchedule or NoExecute taint (contract.md)."""
        return self.ready and not self.unschedulable and not self.closed

    def same_span(self, other: NodeState) -> bool:
        """Tell whether both belong to one stretch: equal but for the words of Ready."""
        return self._span() == other._span()

    def _span(self) -> tuple[object, ...]:
        return (self.ready, self.unschedulable, self.taints_json, self.allocatable, self.labels)


def _taint_words(taint: _Object) -> str:
    value = taint.get("value") or ""
    return f"{taint.get('key', '')}{'=' if value else ''}{value}:{taint.get('effect', '')}"


def _ready_condition(node: _Object) -> _Object:
    for one in (node.get("status") or {}).get("conditions") or ():
        if one.get("type") == "Ready":
            found: _Object = one
            return found
    return {}


def node_state(node: _Object) -> NodeState:
    """Read what scheduling sees of a node.

    Args:
        node: Kubernetes JSON of a node.
    """
    spec, ready = node.get("spec") or {}, _ready_condition(node)
    labels = (node.get("metadata") or {}).get("labels") or {}
    taints = spec.get("taints") or []
    words = [ready.get("status", "no condition"), ready.get("reason"), ready.get("message")]
    return NodeState(
        zone=zone_of(labels),
        ready=ready.get("status") == "True",
        ready_words=", ".join(word for word in words if word),
        unschedulable=bool(spec.get("unschedulable")),
        taints=tuple(_taint_words(taint) for taint in taints),
        taints_json=orjson.dumps(taints, option=orjson.OPT_SORT_KEYS).decode(),
        allocatable=tuple(whole_units((node.get("status") or {}).get("allocatable")).items()),
        labels=tuple(sorted(labels.items())),
        closed=any(taint.get("effect") in _CLOSING for taint in taints),
    )


def _amount(resource: str, value: int | None) -> str:
    if value is None:
        return "none"
    return f"{value}m" if resource == "cpu" else str(value)


def _map_changes(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            yield name, before.get(name), after.get(name)


def _label_words(name: str, old: str | None, new: str | None) -> str:
    if old is None:
        return f"{name}={new} added"
    return f"{name}={old} removed" if new is None else f"{name}: {old} → {new}"


def _registered_words(state: NodeState) -> str:
    words = [f"ready: {state.ready_words}"]
    words += ["cordoned"] if state.unschedulable else []
    words += [f"taints: {', '.join(state.taints)}" if state.taints else "no taints"]
    return "; ".join(words)


def _changes(before: NodeState, after: NodeState) -> Iterator[tuple[str, str]]:
    """Yield (change, detail) between two states of one node, in a fixed order."""
    if after.unschedulable != before.unschedulable:
        yield "cordoned" if after.unschedulable else "uncordoned", "spec.unschedulable"
    yield from (("taint_removed", t) for t in before.taints if t not in after.taints)
    yield from (("taint_added", t) for t in after.taints if t not in before.taints)
    if after.ready != before.ready:
        yield "ready" if after.ready else "not_ready", after.ready_words
    labels = [_label_words(*c) for c in _map_changes(dict(before.labels), dict(after.labels))]
    if labels:
        yield "labels", "; ".join(labels)
    amounts = _map_changes(dict(before.allocatable), dict(after.allocatable))
    words = [f"{n} {_amount(n, old)} → {_amount(n, new)}" for n, old, new in amounts]
    if words:
        yield "allocatable", "; ".join(words)


@dataclass(slots=True)
class _Span:
    """A stretch in the making."""

    from_revision: int
    state: NodeState


class NodeFold:
    """Folds node revisions, ascending, into ``node_changes`` and ``node_spans``."""

    def __init__(self) -> None:
        self.changes: list[Row] = []
        self._spans: list[Row] = []
        self._open: dict[str, _Span] = {}
        self._uids: dict[str, str] = {}

    def add(self, revision: ObjectRevision) -> None:
        """Take in one revision; those of other kinds change nothing."""
        if not is_node(revision):
            return
        if revision.operation == "DELETE":
            self._delete(revision)
        elif revision.object is not None:
            self._put(revision, node_state(revision.object))

    def _put(self, revision: ObjectRevision, state: NodeState) -> None:
        span = self._open.get(revision.name)
        if span is not None and self._uids.get(revision.name) != revision.uid:
            self._close(revision.name, revision.revision)
            span = None
        self._uids[revision.name] = revision.uid
        if span is None:
            if revision.version == 1:
                self._change(revision, state, 0, ("registered", _registered_words(state)))
            self._open[revision.name] = _Span(revision.revision, state)
            return
        for ordinal, change in enumerate(_changes(span.state, state)):
            self._change(revision, state, ordinal, change)
        if not span.state.same_span(state):
            self._close(revision.name, revision.revision)
            self._open[revision.name] = _Span(revision.revision, state)

    def _delete(self, revision: ObjectRevision) -> None:
        span = self._open.get(revision.name)
        known = node_state(revision.object or {}) if span is None else span.state
        self._change(revision, known, 0, ("deleted", ""))
        self._close(revision.name, revision.revision)

    def _change(
        self, revision: ObjectRevision, state: NodeState, ordinal: int, change: tuple[str, str]
    ) -> None:
        self.changes.append(
            {
                "node": revision.name,
                "zone": state.zone,
                "revision": revision.revision,
                "sub": revision.sub,
                "ordinal": ordinal,
                "change": change[0],
                "detail": change[1],
            }
        )

    def _close(self, node: str, revision: int) -> None:
        span = self._open.pop(node, None)
        if span is not None and span.from_revision < revision:
            self._spans.append(_span_row(node, span, revision))

    def spans(self, last_revision: int) -> list[Row]:
        """Give the rows of ``node_spans``, by node and revision.

        Args:
            last_revision: Highest revision of the record; open stretches end behind it.
        """
        still = [_span_row(node, span, last_revision + 1) for node, span in self._open.items()]
        return sorted((*self._spans, *still), key=lambda r: (str(r["node"]), r["from_revision"]))


def _span_row(node: str, span: _Span, to_revision: int) -> Row:
    state = span.state
    return {
        "node": node,
        "zone": state.zone,
        "from_revision": span.from_revision,
        "to_revision": to_revision,
        "ready": state.ready,
        "unschedulable": state.unschedulable,
        "open": state.open,
        "taints": state.taints_json,
        "allocatable": orjson.dumps(dict(state.allocatable)).decode(),
        "labels": orjson.dumps(dict(state.labels)).decode(),
    }


def fold_nodes(revisions: Iterable[ObjectRevision]) -> tuple[list[Row], list[Row]]:
    """Fold a whole record into the rows of ``node_changes`` and ``node_spans``.

    Args:
        revisions: Every object's revisions, ascending by (revision, sub).

    Returns:
        Rows of ``node_changes``, one per change, and of ``node_spans``, half-open stretches
        in revisions; columns as in ``model.tables`` without ``cluster``.
    """
    fold, last = NodeFold(), 0
    for revision in revisions:
        fold.add(revision)
        last = revision.revision
    return fold.changes, fold.spans(last)
