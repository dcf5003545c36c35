"""Whole records of a wrapped log as rows of ``log_lines``, with their place in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import polars as pl

from tracekit.decode.klog_clock import CYCLE_DAYS, YearClock, days_of, stamps_of, year_near, year_of
from tracekit.decode.klog_fields import ends_open
from tracekit.decode.klog_rows import NO_DAY, find_records, to_frame
from tracekit.decode.log_cuts import begins_a_known_message, cut_at_width, is_cut
from tracekit.decode.log_records import LogRecord
from tracekit.decode.other_loggers import stamp_of
from tracekit.decode.wrappers.peeled import YEARLESS
from tracekit.model.diagnostics import Diagnostic

__all__ = ["RecordRows"]

_DAY_US: Final = 86_400_000_000
_SCHEMA: Final = {
    "record_no": pl.Int64(),
    "stamp_us": pl.Int64(),
    "severity": pl.String(),
    "thread": pl.Int64(),
    "caller": pl.String(),
    "message": pl.String(),
    "structured": pl.Boolean(),
    "raw": pl.String(),
    "body": pl.String(),
    "wrapped_at": pl.Datetime("us", "UTC"),
    "component": pl.String(),
    "node": pl.String(),
}
_HEADER_COLUMNS: Final = ("severity", "thread", "caller", "message", "structured")


@dataclass(slots=True)
class _Places:
    """The yearless clock of a log whose wrapping may know the year."""

    clock: YearClock = field(default_factory=YearClock)
    base_year: int | None = None

    def stamp(self, stamp: YEARLESS, at_us: int | None) -> int | None:
        """Put a time without a year into the yearless clock; None where the date is none."""
        day = days_of(stamp[0], stamp[1])
        if day == NO_DAY:
            return None
        if at_us is None:
            self.clock = self.clock.at(day)
            return (day + self.clock.step * CYCLE_DAYS) * _DAY_US + stamp[2]
        year = year_near(day, at_us)
        if self.base_year is None:
            self.base_year = year - self.clock.step
        self.clock = YearClock(year - self.base_year, day)
        return (day + self.clock.step * CYCLE_DAYS) * _DAY_US + stamp[2]

    def stamp_utc(self, at_us: int) -> int:
        """Put an absolute time into the yearless clock."""
        if self.base_year is None:
            self.base_year = year_of(at_us) - self.clock.step
        return int(stamps_of(np.array([at_us]), self.base_year)[0])


@dataclass(slots=True)
class RecordRows:
    """Turns records into rows, remembering what only the end of the log can judge."""

    _places: _Places = field(default_factory=_Places)
    _origins: set[tuple[str | None, str | None]] = field(default_factory=set)
    _last: LogRecord | None = None
    _messages: list[str] = field(default_factory=list)
    _widest: list[LogRecord] = field(default_factory=list)
    _damage: list[Diagnostic] = field(default_factory=list)

    def to_frame(self, records: Sequence[LogRecord]) -> pl.DataFrame:
        """Return one row per record, in their order."""
        self._remember(records)
        rows = [self._row(record) for record in records]
        klog = [i for i, record in enumerate(records) if record.kind == "klog"]
        for place, header in zip(klog, _headers([records[i] for i in klog]), strict=True):
            rows[place] |= header
        self._messages = [rows[i]["message"] for i in klog] or self._messages
        columns = {name: [row[name] for row in rows] for name in _SCHEMA if name != "wrapped_at"}
        at_us = pl.Series("wrapped_at", [row["wrapped_at"] for row in rows], dtype=pl.Int64())
        frame = pl.DataFrame(columns, schema={n: t for n, t in _SCHEMA.items() if n in columns})
        return frame.with_columns(at_us.cast(_SCHEMA["wrapped_at"])).select(*_SCHEMA)

    def cuts(self, *, terminated: bool) -> list[Diagnostic]:
        """Return the records that stop in the middle, when the log has ended."""
        found = {d.position: d for d in self._damage}
        lines = self._widest
        is_open = [_has_odd_quotes(r) or _has_open_bracket(r.body[0]) for r in lines]
        for place in cut_at_width([r.width for r in lines], is_open):
            self._add(found, lines[place])
        last = self._last
        if last is not None and last.kind == "klog":
            message = self._messages[-1] if self._messages else ""
            ends = is_cut("\n".join(last.body), is_last=True, terminated=terminated)
            ends |= last.wrapped == "strong" and len(last.body) == 1 and _has_odd_quotes(last)
            known = len(last.body) == 1 and begins_a_known_message(message, self._messages[:-1])
            if ends or known:
                self._add(found, last)
        elif last is not None and ends_open(last.body[-1], terminated=terminated):
            self._add(found, last)
        return [found[position] for position in sorted(found)]

    def common_origin(self, facts: dict[str, str | int | None]) -> dict[str, str | int | None]:
        """Tell component and node when all records that name one name the same.

        Where they differ, none is that of the log.
        """
        told: dict[str, str | int | None] = {}
        for column, name in enumerate(("component", "node")):
            names = {origin[column] for origin in self._origins}
            named = names - {None}
            if len(named) == 1 and facts.get(name) is None:
                told[name] = next(iter(named))
            elif len(named) > 1:
                told[name] = None
        return told

    def _add(self, found: dict[int, Diagnostic], record: LogRecord) -> None:
        note = Diagnostic(code="LOG_RECORD_CUT", position=record.last, detail=record.raw[-1][:120])
        found.setdefault(record.last, note)

    def _remember(self, records: Sequence[LogRecord]) -> None:
        for record in records:
            self._origins.add((record.component, record.node))
            if record.kind != "klog":
                continue
            if is_cut(record.body[0], is_last=False, terminated=True) and len(record.body) == 1:
                note = Diagnostic(
                    code="LOG_RECORD_CUT", position=record.last, detail=record.raw[0][:120]
                )
                self._damage.append(note)
            if record.width >= (self._widest[0].width if self._widest else 1):
                if self._widest and record.width > self._widest[0].width:
                    self._widest = []
                self._widest = [*self._widest[-63:], record]
        if records:
            self._last = max((*records, *([self._last] if self._last else [])), key=_line)

    def _row(self, record: LogRecord) -> dict[str, Any]:
        body = "\n".join(record.body)
        raw = "\n".join(record.raw)
        row: dict[str, Any] = dict.fromkeys(_SCHEMA)
        row |= {
            "record_no": record.line,
            "message": record.body[0],
            "structured": False,
            "raw": raw,
            "body": body if body != raw else None,
            "wrapped_at": record.at_us,
            "component": record.component,
            "node": record.node,
        }
        stamp = record.stamp
        if record.kind == "klog":
            stamp = stamp_of(record.body[0])
        elif record.other is not None:
            other = record.other
            stamp = other.stamp or stamp
            row |= {
                "severity": other.severity,
                "caller": other.caller,
                "message": other.message,
                "structured": bool(other.body),
                "wrapped_at": record.at_us if other.at_us is None else other.at_us,
            }
            if other.body and other.body != raw:
                row["body"] = other.body
        at_us = row["wrapped_at"]
        if stamp is not None:
            row["stamp_us"] = self._places.stamp(stamp, at_us)
        elif record.other is not None and record.other.at_us is not None:
            row["stamp_us"] = self._places.stamp_utc(record.other.at_us)
        return row


def _line(record: LogRecord) -> int:
    return record.line


def _has_odd_quotes(record: LogRecord) -> bool:
    return record.body[0].count('"') % 2 == 1 and "\\" not in record.body[0]


def _has_open_bracket(text: str) -> bool:
    return any(text.count(o) > text.count(c) for o, c in ("()", "[]", "{}"))


def _headers(records: Sequence[LogRecord]) -> list[dict[str, Any]]:
    """Read the headers of klog records in bulk."""
    if not records:
        return []
    data = "".join("\n".join([_padded(r.body[0]), *r.body[1:]]) + "\n" for r in records).encode()
    found = find_records(data, is_first=False)
    if len(found.starts) != len(records):
        return [header for record in records for header in _headers_of_one(record)]
    days = np.full(len(records), NO_DAY, np.int64)
    return to_frame(data, found, days, 1).select(_HEADER_COLUMNS).to_dicts()


def _headers_of_one(record: LogRecord) -> list[dict[str, Any]]:
    """Read one record whose later lines look like headers too."""
    data = _padded(record.body[0]).encode() + b"\n"
    found = find_records(data, is_first=False)
    return to_frame(data, found, np.array([NO_DAY]), 1).select(_HEADER_COLUMNS).to_dicts()


def _padded(line: str) -> str:
    """End a header that was cut behind its stamp as a whole one ends."""
    return f"{line} " if len(line) == 21 else line
