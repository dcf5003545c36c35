"""Events that only logs tell: what the stream has itself is left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tracekit.model.diagnostics import Diagnostic
from tracekit.pipeline.log_clocks import LogClocks
from tracekit.replay.evidence import EventTime, VerdictLine
from tracekit.replay.log_events import LoggedEvent

__all__ = ["ToldEvents", "told_events"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_VERDICTS = {"FailedScheduling": "unschedulable", "Scheduled": "bound"}


@dataclass(slots=True)
class ToldEvents:
    """What logs tell of events.

    Attributes:
        rows: Rows of ``event_occurrences``, without revision.
        times: FailedScheduling and Scheduled events of pods, with their time.
        lines: The same where no time is known.
        notes: The events that were lost.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    times: list[EventTime] = field(default_factory=list)
    lines: list[VerdictLine] = field(default_factory=list)
    notes: list[Diagnostic] = field(default_factory=list)


def told_events(
    events: Iterable[LoggedEvent], clocks: LogClocks, known: Iterable[Mapping[str, Any]]
) -> ToldEvents:
    """Sort out the events that the stream does not have.

    Args:
        events: Events of the cluster's logs.
        clocks: Clocks of those logs.
        known: Rows of ``event_occurrences`` that the stream gives.
    """
    stored = {(r["namespace"], r["name"], r["reason"], r["message"]) for r in known}
    told = ToldEvents()
    for event in events:
        if (event.namespace, event.name, event.reason, event.message) in stored:
            continue
        at_us = clocks.at_us(event.source_id, event.stamp_us)
        at_us = event.wrapped_us if at_us is None else at_us
        told.rows.append(_row(event, at_us))
        if event.is_lost:
            detail = f"{event.namespace}/{event.name}: {event.reason} {event.message}"[:200]
            told.notes.append(
                Diagnostic(code="EVENT_LOST", position=event.record_no, detail=detail)
            )
        if event.kind == "Pod" and event.reason in _VERDICTS:
            _add_verdict(told, event, at_us)
    return told


def _add_verdict(told: ToldEvents, event: LoggedEvent, at_us: int | None) -> None:
    verdict = _VERDICTS[event.reason]
    message = event.message if verdict == "unschedulable" else ""
    if at_us is not None:
        told.times.append(
            EventTime(event.namespace, event.name, event.uid, at_us, 0, verdict, message)
        )
        return
    told.lines.append(VerdictLine(
        event.source_id, event.record_no, None, event.namespace, event.name, verdict, message,
        None, None, None,
    ))  # fmt: skip


def _row(event: LoggedEvent, at_us: int | None) -> dict[str, Any]:
    return {
        "revision": None,
        "sub": event.record_no,
        "namespace": event.namespace,
        "kind": event.kind,
        "name": event.name,
        "uid": event.uid,
        "regarding_revision": None,
        "reason": event.reason,
        "type": event.type,
        "message": event.message,
        "at": None if at_us is None else _EPOCH + timedelta(microseconds=at_us),
        "at_error_seconds": None if at_us is None else 0.0,
        "count": 1,
        "source": event.reporter,
        "related": None,
        "event_name": "",
        "event_uid": "",
    }
