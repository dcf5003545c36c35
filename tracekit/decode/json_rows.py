"""The records of a chunk of JSON klog read in bulk: rows of ``log_lines``.

Source: component-base ``logs/json/json.go``: ``ts``, [``logger``], ``caller``, ``msg``, then
pairs with ``v`` somewhere among them; an error has no ``v`` (from 1.22; before, ``"v":0``
and no ``caller``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from tracekit.decode.blocks import shown
from tracekit.decode.json_fields import read_record
from tracekit.decode.klog_clock import CYCLE_DAYS, day_numbers, stamps_of, years_of
from tracekit.decode.klog_rows import (
    START,
    Bools,
    Bytes,
    Ints,
    find_records,
    places_of,
    slices,
    to_frame,
    windows,
)
from tracekit.model.diagnostics import Diagnostic
from tracekit.model.objects import JSON

__all__ = ["RECORD", "epoch_us", "json_frame", "severity_of"]

RECORD: Final = re.compile(rb'\{"ts":(\d{12,14})(?:\.(\d{1,9}))?,"')
_TS: Final = re.compile(r'"ts":(\d{12,14})(?:\.(\d{1,9}))?[,}]')
_OPENING: Final = np.frombuffer(b'{"ts":', np.uint8)
_SECONDS_DIGITS: Final = 13  # epoch milliseconds have as many until the year 2286
_POWERS: Final = 10 ** np.arange(_SECONDS_DIGITS - 1, -1, -1, dtype=np.int64)
_LEVELS: Final = pl.Series(["E", "I"])
_SCAN_BYTES: Final = 1 << 20
_QUOTE, _COMMA, _BACKSLASH, _V = b'",\\v'
_QUOTES: Final = 8  # of "caller":"...","msg":"..."


@dataclass(frozen=True, slots=True, eq=False)
class _Lines:
    """Lines of a chunk, and which of them begin a record.

    Attributes:
        begins, ends: First byte and end of each line, its newline left out.
        is_json: The line begins as a JSON record.
        starts: 0-based lines on which records start.
    """

    begins: Ints
    ends: Ints
    is_json: Bools
    starts: Ints


@dataclass(frozen=True, slots=True, eq=False)
class _Headers:
    """What the JSON records of usual layout tell; ``unusual`` are the rows of all others.

    ``spans`` are the ends of caller and message in the data: four columns, ascending.
    """

    at_us: Ints
    spans: Ints
    has_level: Bools
    unusual: Ints


def epoch_us(digits: str, fraction: str | None) -> int:
    """Return epoch milliseconds with a decimal fraction as whole microseconds, cut off.

    klog's text header cuts the same way.
    """
    micros = int((fraction or "")[:3].ljust(3, "0"))
    return int(digits) * 1000 + micros


def severity_of(record: dict[str, JSON]) -> str:
    """Return I or E of a klog JSON record, which has no severity of its own.

    Source: json.go: errors have no ``v``; up to 1.21 they have ``"v":0``, but no caller.
    """
    is_old_error = "caller" not in record and record.get("v") == 0 and "err" in record
    return "E" if "v" not in record or is_old_error else "I"


def json_frame(
    data: bytes, *, base_year: int, first_line: int
) -> tuple[pl.DataFrame, list[Diagnostic]]:
    """Return one row of ``log_lines`` per record, in order, and what was odd.

    Args:
        data: The chunk, valid UTF-8; the texts of the rows share its memory.
        base_year: Year of the log's first record.
        first_line: 1-based line of the log on which the chunk starts.
    """
    lines = _find_lines(data)
    headers = _read_headers(data, lines)
    starts = lines.begins[lines.starts]
    rows = len(starts)
    texts = slices(data, np.append(headers.spans.ravel(), len(data)))
    columns = {
        "record_no": pl.Series(first_line + lines.starts),
        "stamp_us": pl.Series(stamps_of(headers.at_us, base_year)),
        "severity": _LEVELS.gather(headers.has_level.astype(np.uint8)),
        "thread": pl.Series([None] * rows, dtype=pl.Int64),
        "caller": texts.gather_every(4, 0),
        "message": texts.gather_every(4, 2),
        "structured": pl.Series(np.ones(rows, np.bool_)),
        "raw": _raws(data, starts),
        "wrapped_at": pl.Series(headers.at_us).cast(pl.Datetime("us", "UTC")),
    }
    escaped = columns["message"].str.contains("\\", literal=True).arg_true().to_numpy()
    unusual = np.union1d(headers.unusual, escaped.astype(np.int64))
    damage = _patch(columns, unusual, base_year, first_line) if unusual.size else []
    frame = pl.DataFrame(columns)
    blank = frame["raw"].str.len_bytes() == 0
    return (frame.filter(~blank) if blank.any() else frame), damage


def _find_lines(data: bytes) -> _Lines:
    """Find the record starts: a JSON line, a klog header, and the first of other lines.

    Lines behind a JSON record that does not end in a brace are its rest.
    """
    buffer = np.frombuffer(data, np.uint8)
    newlines = places_of(buffer, 10)
    begins = np.concatenate([[0], newlines + 1])
    if begins[-1] == len(data):
        begins = begins[:-1]
    ends = newlines if len(newlines) == len(begins) else np.append(newlines, len(data))
    ends = ends - ((buffer[ends - 1] == 13) & (ends > begins))
    is_json = (windows(data, begins, len(_OPENING)) == _OPENING).all(axis=1)
    is_whole = is_json & (buffer[ends - 1] == 125)
    is_start = is_json | np.concatenate([[True], is_whole[:-1]])[: len(begins)]
    for line in np.flatnonzero(~is_start).tolist():
        is_start[line] = START.match(data, int(begins[line])) is not None
    return _Lines(begins, ends, is_json & is_whole, np.flatnonzero(is_start))


def _read_headers(data: bytes, lines: _Lines) -> _Headers:
    """Read the records whose keys stand in the usual order; others are left for ``_patch``."""
    buffer = np.frombuffer(data, np.uint8)
    begins, ends = lines.begins[lines.starts], lines.ends[lines.starts]
    at_us, usual = _read_times(data, begins)
    next_start = np.append(lines.starts[1:], len(lines.begins))
    usual &= lines.is_json[lines.starts] & (next_start == lines.starts + 1)
    marks = _scan(buffer)
    spans, ordered = _read_spans(buffer, marks.quotes, begins, ends)
    # An escaped backslash before a quote hides where the text ends.
    doubtful = marks.escaped[buffer[marks.escaped - 2] == _BACKSLASH]
    usual &= ordered & (np.searchsorted(doubtful, begins) == np.searchsorted(doubtful, ends))
    has_level = np.searchsorted(marks.levels, begins) != np.searchsorted(marks.levels, ends)
    spans = np.where(usual[:, None], spans, begins[:, None])
    return _Headers(np.where(usual, at_us, 0), spans, has_level, np.flatnonzero(~usual))


@dataclass(frozen=True, slots=True, eq=False)
class _Marks:
    """Where quotes stand: plain, behind a backslash, and before ``v":`` behind a comma."""

    quotes: Ints
    escaped: Ints
    levels: Ints


def _scan(buffer: Bytes) -> _Marks:
    """Find all quotes in one sweep, in pieces that stay in the cache."""
    found: tuple[list[Ints], ...] = ([], [], [])
    # The first byte is no quote of a record, and nothing begins with the last three.
    for at in range(1, len(buffer) - 3, _SCAN_BYTES):
        end = min(at + _SCAN_BYTES, len(buffer) - 3)
        before = buffer[at - 1 : end - 1]
        is_quote = buffer[at:end] == _QUOTE
        is_escaped = is_quote & (before == _BACKSLASH)
        is_level = is_quote & (buffer[at + 1 : end + 1] == _V)
        is_level &= (before == _COMMA) & (buffer[at + 2 : end + 2] == _QUOTE)
        for places, mask in zip(found, (is_quote > is_escaped, is_escaped, is_level), strict=True):
            places.append(np.flatnonzero(mask) + at)
    none = np.empty(0, np.int64)
    return _Marks(*(np.concatenate([none, *places]) for places in found))


def _read_times(data: bytes, begins: Ints) -> tuple[Ints, Bools]:
    """Return the ``ts`` of each line in µs, and where it has 13 digits and a fraction."""
    window = windows(data, begins + len(_OPENING), _SECONDS_DIGITS + 4) - np.uint8(48)
    is_digit = window < 10
    millis = window[:, :_SECONDS_DIGITS].astype(np.int64) @ _POWERS
    usual = is_digit[:, :_SECONDS_DIGITS].all(axis=1) & (window[:, _SECONDS_DIGITS] == 254)
    fraction = window[:, _SECONDS_DIGITS + 1 :]
    told = np.logical_and.accumulate(is_digit[:, _SECONDS_DIGITS + 1 :], axis=1)
    micros = np.where(told, fraction, 0).astype(np.int64) @ np.array([100, 10, 1])
    return millis * 1000 + micros, usual


def _read_spans(buffer: Bytes, quotes: Ints, begins: Ints, ends: Ints) -> tuple[Ints, Bools]:
    """Return the ends of caller and message by their place among a line's quotes."""
    if len(quotes) < _QUOTES:
        return np.repeat(begins[:, None], 4, axis=1), np.zeros(len(begins), np.bool_)
    last = len(quotes) - _QUOTES
    key = np.searchsorted(quotes, begins) + 2
    first = np.minimum(key, last)
    is_logger = (buffer[quotes[first] + 1] == 108) & (quotes[first + 1] - quotes[first] == 7)
    key += 4 * is_logger
    ordered = key <= last
    key = np.minimum(key, last)
    ordered &= (buffer[quotes[key] + 1] == 99) & (quotes[key + 1] - quotes[key] == 7)
    ordered &= (buffer[quotes[key + 4] + 1] == 109) & (quotes[key + 5] - quotes[key + 4] == 4)
    ordered &= quotes[key + 6] == quotes[key + 5] + 2
    ordered &= quotes[key + 7] < ends
    spans = [quotes[key + 2] + 1, quotes[key + 3], quotes[key + 6] + 1, quotes[key + 7]]
    return np.stack(spans, axis=1), ordered


def _raws(data: bytes, starts: Ints) -> pl.Series:
    """Return each record up to the newline before the next one, or before the end."""
    bounds = np.empty(2 * len(starts), np.int64)
    bounds[::2] = starts
    bounds[1:-1:2] = starts[1:] - 1
    bounds[-1:] = len(data) - data.endswith(b"\n")
    return slices(data, bounds).gather_every(2)


def _patch(
    columns: dict[str, pl.Series], rows: Ints, base_year: int, first_line: int
) -> list[Diagnostic]:
    """Read the records of another layout one by one and put them in their rows."""
    latest = np.maximum.accumulate(columns["wrapped_at"].dt.epoch("us").to_numpy())
    damage: list[Diagnostic] = []
    read: list[tuple[int | None, int | None, str | None, str | None, str, bool]] = []
    for row in rows.tolist():
        raw = columns["raw"][row]
        record = _read_json(raw)
        if record is not None:
            at_us = _time_of(raw, record)
            stamp = None if at_us is None else int(stamps_of(np.array([at_us]), base_year)[0])
            caller, message = record.get("caller"), str(record.get("msg", ""))
            read.append((stamp, at_us, severity_of(record), caller, message, True))
            continue
        before = int(latest[row]) or None
        read.append(_read_text(raw, before, base_year))
        code = "LOG_RECORD_CUT" if raw.startswith("{") else "LOG_LINE_UNSTRUCTURED"
        if read[-1][2] is None and raw.strip():
            position = int(columns["record_no"][row])
            damage.append(Diagnostic(code=code, position=position, detail=shown(raw.encode())))
    names = ("stamp_us", "wrapped_at", "severity", "caller", "message", "structured")
    for name, values in zip(names, zip(*read, strict=True), strict=True):
        dtype = pl.Int64() if name == "wrapped_at" else columns[name].dtype
        fresh = pl.Series(values, dtype=dtype).cast(columns[name].dtype)
        columns[name] = columns[name].scatter(rows, fresh)
    return damage


def _read_json(raw: str) -> dict[str, JSON] | None:
    record = read_record(raw.replace("\n", "")) if raw.startswith("{") else None
    return record if record is not None and "ts" in record else None


def _time_of(raw: str, record: dict[str, JSON]) -> int | None:
    match = _TS.search(raw)
    return epoch_us(match[1], match[2]) if match is not None else None


def _read_text(
    raw: str, before_us: int | None, base_year: int
) -> tuple[int | None, int | None, str | None, str | None, str, bool]:
    """Read a klog header among the JSON, or keep other text as a message."""
    data = raw.encode()
    if START.match(data) is None:
        return None, None, None, None, raw.partition("\n")[0], False
    records = find_records(data, is_first=False)
    days = day_numbers(records.stamps)
    if before_us is not None:
        days = days + (years_of(days, np.array([before_us])) - base_year) * CYCLE_DAYS
    row = to_frame(data, records, days, 1).row(0, named=True)
    told = ("stamp_us", "severity", "caller", "message", "structured")
    stamp, severity, caller, message, structured = (row[name] for name in told)
    return stamp, None, severity, caller, message, structured
