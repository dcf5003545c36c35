"""Kubernetes Events: one row for each write that tells an occurrence.

Both event APIs are one object in etcd; the scheduler fills ``eventTime`` and ``series``,
older recorders ``count`` and ``lastTimestamp``. An Event that expires (DELETE) tells nothing.

Source: field-guide.md, Events; core/v1 Event, events.k8s.io/v1 Event.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

import orjson

from tracekit.model.objects import ObjectRevision
from tracekit.replay.anchors import is_revision
from tracekit.replay.messages import parse_verdict

__all__ = ["EventFold", "autoscaler_reasons", "fold_events", "is_event", "occurred_at", "read_time"]

Row = dict[str, Any]
_Object = Mapping[str, Any]
_EMPTY: _Object = {}
_FIRST_TIMES = ("firstTimestamp", "deprecatedFirstTimestamp", "eventTime")


def is_event(revision: ObjectRevision) -> bool:
    """Tell whether the value of this revision is an Event of either API."""
    group = revision.api_version.rpartition("/")[0]
    return revision.kind == "Event" and group in ("", "events.k8s.io")


def read_time(text: object) -> datetime | None:
    """Read an RFC 3339 time as UTC; None when it is none.

    Args:
        text: A Time or MicroTime as the API prints it.
    """
    if not isinstance(text, str) or not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def _first(event: _Object, *names: str) -> Any:
    return next((event[name] for name in names if event.get(name)), None)


def _occurred(event: _Object) -> tuple[str | None, float | None]:
    """Give the time of the latest occurrence as text, with its resolution in seconds."""
    series = event.get("series") or _EMPTY
    micro = series.get("lastObservedTime") or event.get("eventTime")
    if micro:
        return micro, 0.0
    coarse = _first(
        event,
        "lastTimestamp",
        "deprecatedLastTimestamp",
        "firstTimestamp",
        "deprecatedFirstTimestamp",
    )
    return coarse, 1.0 if coarse else None


def _count(event: _Object) -> int:
    series = event.get("series") or _EMPTY
    return int(series.get("count") or _first(event, "count", "deprecatedCount") or 1)


def _source(event: _Object) -> str | None:
    told = (event.get("source") or event.get("deprecatedSource") or _EMPTY).get("component")
    return _first(event, "reportingComponent", "reportingController") or told or None


def occurred_at(event: _Object) -> datetime | None:
    """Give the time of an Event's latest occurrence as UTC; None where it has none."""
    return read_time(_occurred(event)[0])


def _tells_news(before: _Object | None, event: _Object) -> bool:
    if before is None:
        return True
    return (_count(before), _occurred(before)) != (_count(event), _occurred(event))


def autoscaler_reasons(reason: object, message: object) -> str | None:
    """Return the counts of node groups in an autoscaler's refusal as JSON; None for others.

    Source: cluster-autoscaler ``eventing_scale_up_processor.go``.
    """
    if reason != "NotTriggerScaleUp" or not isinstance(message, str):
        return None
    parsed = parse_verdict(message)
    counts = {told.reason: told.nodes for told in parsed.reasons}
    return orjson.dumps(counts).decode() if parsed.shape == "autoscaler" else None


def _number(text: object) -> int | None:
    return int(text) if isinstance(text, str) and is_revision(text) else None


class EventFold:
    """Folds revisions of Events, ascending, into ``event_occurrences``."""

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def add(self, revision: ObjectRevision) -> None:
        """Take in one revision; those of other kinds and expiries change nothing."""
        event = revision.object
        if not is_event(revision) or revision.operation == "DELETE" or event is None:
            return
        before = revision.previous
        if before is not None and (before.get("metadata") or _EMPTY).get("uid") != revision.uid:
            before = None
        if _tells_news(before, event):
            self.rows.append(_row(revision, event))


def _row(revision: ObjectRevision, event: _Object) -> Row:
    about = event.get("involvedObject") or event.get("regarding") or _EMPTY
    at, error = _occurred(event)
    related = event.get("related")
    return {
        "revision": revision.revision,
        "sub": revision.sub,
        "namespace": about.get("namespace", ""),
        "kind": about.get("kind", ""),
        "name": about.get("name", ""),
        "uid": about.get("uid", ""),
        "regarding_revision": _number(about.get("resourceVersion")),
        "reason": event.get("reason", ""),
        "type": event.get("type", ""),
        "message": _first(event, "message", "note") or "",
        "at": read_time(at),
        "at_error_seconds": error,
        "count": _count(event),
        "source": _source(event),
        "related": orjson.dumps(related).decode() if related else None,
        "event_name": revision.name,
        "event_uid": revision.uid,
        "first_at": read_time(_first(event, *_FIRST_TIMES)),
        "reasons": autoscaler_reasons(event.get("reason"), _first(event, "message", "note")),
    }


def fold_events(revisions: Iterable[ObjectRevision]) -> list[Row]:
    """Fold a whole record into the rows of ``event_occurrences``.

    Args:
        revisions: Every object's revisions, ascending by (revision, sub).

    Returns:
        One row per write that tells a new occurrence or count; ``at`` is a UTC datetime.
    """
    fold = EventFold()
    for revision in revisions:
        fold.add(revision)
    return fold.rows
