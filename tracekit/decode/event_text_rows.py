"""Rows of ``event_texts`` in the making: what is told without the revision that wrote it.

Event tables, pasted messages, conditions torn out of their object, rows of ``kubectl get``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from datetime import UTC, datetime
from typing import Any, Final

import orjson
import polars as pl

from tracekit.model.batches import Batch

__all__ = ["EventText", "EventTextRows", "event_text"]

_Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventText:
    """One thing told; empty or None where it is not.

    Attributes:
        record_no: 1-based line, or record, in the source.
        form: event, message, condition, status (of a pod) or row (of ``kubectl get``).
        namespace, kind, name, uid: The object it is about.
        reason, type, message: As written; the type of a condition is ``TYPE=STATUS``.
        count: Occurrences so far.
        first_seen, last_seen: Ages as written (``2m5s``).
        first_at, at: RFC 3339 times of the first and the last occurrence.
        at_error_seconds: 0 for microsecond times, 1 for second times.
        source: Component that reported it.
        node: Node that a row shows, or that a scheduler's words name.
        related: JSON of the related object reference, or the nominated node of a row.
        event_name: Name of the Event object.
    """

    record_no: int
    form: str
    namespace: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    reason: str = ""
    type: str = ""
    message: str = ""
    count: int | None = None
    first_seen: str | None = None
    last_seen: str | None = None
    first_at: str | None = None
    at: str | None = None
    at_error_seconds: float | None = None
    source: str | None = None
    node: str | None = None
    related: str | None = None
    event_name: str = ""


_NAMES: Final = tuple(field.name for field in fields(EventText))
_TYPES: Final[dict[str, pl.DataType]] = {
    "record_no": pl.Int64(),
    "count": pl.Int64(),
    "first_at": pl.Datetime("us", "UTC"),
    "at": pl.Datetime("us", "UTC"),
    "at_error_seconds": pl.Float64(),
}
_SCHEMA: Final = {"ordinal": pl.Int64()} | {name: _TYPES.get(name, pl.String()) for name in _NAMES}


class EventTextRows:
    """Rows that grow, a text at a time."""

    def __init__(self) -> None:
        self._rows: list[tuple[Any, ...]] = []
        self._of_record: Counter[int] = Counter()

    @property
    def height(self) -> int:
        """How many rows there are."""
        return len(self._rows)

    def add(self, text: EventText) -> None:
        """Add one text; several of one record are told apart by their order."""
        ordinal = self._of_record[text.record_no]
        self._of_record[text.record_no] += 1
        cells = list(astuple(text))
        cells[_NAMES.index("first_at")] = _instant(text.first_at)
        cells[_NAMES.index("at")] = _instant(text.at)
        self._rows.append((ordinal, *cells))

    def batch(self) -> Batch:
        """Return the rows so far as a batch of ``event_texts``."""
        frame = pl.DataFrame(self._rows, schema=_SCHEMA, orient="row")
        frame = frame.sort("record_no", "ordinal")
        return Batch(table="event_texts", frame=frame, records=0)


def event_text(event: _Object, record_no: int) -> EventText:
    """Return an Event object, of either API, as a text.

    Source: core/v1 Event, events.k8s.io/v1 Event; field-guide.md, Events.
    """
    about = _part(event, "involvedObject") or _part(event, "regarding")
    series = _part(event, "series")
    micro = series.get("lastObservedTime") or event.get("eventTime")
    at = micro or _first(event, "lastTimestamp", "deprecatedLastTimestamp", "firstTimestamp",
                         "deprecatedFirstTimestamp")  # fmt: skip
    first = _first(event, "firstTimestamp", "deprecatedFirstTimestamp", "eventTime")
    source = _part(event, "source") or _part(event, "deprecatedSource")
    count = series.get("count") or _first(event, "count", "deprecatedCount")
    related = _part(event, "related")
    return EventText(
        record_no=record_no,
        form="event",
        namespace=_text(about, "namespace"),
        kind=_text(about, "kind"),
        name=_text(about, "name"),
        uid=_text(about, "uid"),
        reason=_text(event, "reason"),
        type=_text(event, "type"),
        message=_text(event, "message") or _text(event, "note"),
        count=count if type(count) is int else 1,
        first_at=first if isinstance(first, str) else None,
        at=at if isinstance(at, str) else None,
        at_error_seconds=(0.0 if micro else 1.0) if at else None,
        source=_text(event, "reportingComponent") or _text(event, "reportingController")
        or _text(source, "component") or None,
        related=orjson.dumps(related).decode() if related else None,
        event_name=_text(_part(event, "metadata"), "name"),
    )  # fmt: skip


def _part(value: _Object, name: str) -> _Object:
    part = value.get(name)
    return part if isinstance(part, dict) else {}


def _text(value: _Object, name: str) -> str:
    text = value.get(name)
    return text if isinstance(text, str) else ""


def _first(value: _Object, *names: str) -> Any:
    return next((value[name] for name in names if value.get(name)), None)


def _instant(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
