"""The headers of a klog chunk read in bulk, and the rows of ``log_lines`` made of them.

Headers stand at fixed columns, so a chunk's are gathered into one matrix and read column by
column; the texts of a row are slices of the chunk itself, handed to Arrow without a copy.
Only a header of another layout, or an escaped message, is read by itself.

Source: klog v2 ``internal/buffer/buffer.go`` FormatHeader; glog ``formatHeader``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeVar

import nanoarrow as na
import numpy as np
import polars as pl
from numpy.typing import NDArray

from tracekit.decode.klog_fields import unquote

__all__ = [
    "NO_DAY",
    "PREAMBLE",
    "START",
    "Bools",
    "Bytes",
    "Ints",
    "Records",
    "find_records",
    "nullable",
    "places_of",
    "slices",
    "to_frame",
    "windows",
]

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
_Scalar = TypeVar("_Scalar", bound=np.generic)

_SCAN_BYTES: Final = 1 << 20  # newlines are searched in pieces that stay in the cache
_WINDOW: Final = 160  # bytes of a header, or of a message, that are read in bulk
_DAY_US: Final = 86_400_000_000
NO_DAY: Final = int(np.iinfo(np.int64).min)

# ``Lmmdd hh:mm:ss.uuuuuu `` as the lowest byte and the span of bytes each column may have;
# the last two columns only fill the row up to three 8-byte words.
_LOWEST: Final = np.frombuffer(b"\x000000 00:00:00.000000 \x00\x00", np.uint8)
_SPAN: Final = np.array([255, *(9 if c == 48 else 0 for c in _LOWEST[1:22]), 255, 255], np.uint8)
_ALL_TRUE: Final = np.uint64(0x0101010101010101)

_STAMP: Final = rb"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} "
# What may stand before a header: a NUL hole of copytruncate, a byte order mark, colours.
_NOISE: Final = re.compile(rb"(?:\x00|\xef\xbb\xbf|\x1b\[[0-9;]*m)++(?=" + _STAMP + rb")")
START: Final = re.compile(rb"(?:\x00|\xef\xbb\xbf|\x1b\[[0-9;]*m)*+" + _STAMP)
_HEADER: Final = re.compile(rb".{22} *(?:(\d{1,18}) )?(?:(\S+:\d+)\] ?)?(.*)", re.DOTALL)
_MESSAGE: Final = re.compile(rb'"((?:[^"\\]++|\\.)*+)')
_CLASS: Final = np.zeros(256, np.uint8)
_CLASS[list(b"IWEF")] = 1
_CLASS[list(b"\x00\xef\x1b")] = 2

PREAMBLE: Final = (
    b"Log file created at: ",
    b"Running on machine: ",
    b"Binary: Built with ",
    b"Log line format: ",
)  # klog_file.go rotateFile, glog_file.go


@dataclass(frozen=True, slots=True, eq=False)
class Records:
    """Where the records of a chunk are; the first ``lead`` of them have no header.

    Attributes:
        starts: First byte of each record.
        heads: First byte of each header, so ``lead`` fewer than records.
        line_ends: End of each record's first line, its newline left out.
        lines: 0-based line on which each record starts.
        stamps: The first 24 bytes of each header.
        lead: Records before the first header.
        newlines: Newlines in the chunk.
    """

    starts: Ints
    heads: Ints
    line_ends: Ints
    lines: Ints
    stamps: Bytes
    lead: int
    newlines: int


def places_of(buffer: Bytes, byte: int) -> Ints:
    """Return where a byte stands, searched in pieces that stay in the cache."""
    pieces = range(0, len(buffer), _SCAN_BYTES)
    return np.concatenate(
        [np.empty(0, np.int64)]
        + [np.flatnonzero(buffer[at : at + _SCAN_BYTES] == byte) + at for at in pieces]
    )


def find_records(data: bytes, *, is_first: bool) -> Records:
    """Find the record starts; only a log's first chunk may begin without a header."""
    buffer = np.frombuffer(data, np.uint8)
    newlines = places_of(buffer, 10)
    begins = np.concatenate([[0], newlines + 1])
    if begins[-1] == len(data):
        begins = begins[:-1]
    lines, heads, stamps = _find_headers(data, begins)
    lead = _find_unheaded(data, begins[: lines[0] if lines.size else None]) if is_first else []
    lines = np.concatenate([np.array(lead, np.int64), lines])
    ends = newlines if len(newlines) == len(begins) else np.append(newlines, len(data))
    line_ends = ends[lines]
    line_ends = line_ends - ((buffer[line_ends - 1] == 13) & (line_ends > begins[lines]))
    return Records(begins[lines], heads, line_ends, lines, stamps, len(lead), len(newlines))


def _find_headers(data: bytes, begins: Ints) -> tuple[Ints, Ints, Bytes]:
    """Return line number, place and first 24 bytes of each header."""
    kinds = _CLASS[np.frombuffer(data, np.uint8)[begins]]
    lines = np.flatnonzero(kinds == 1)
    heads = begins[lines]
    noisy = np.flatnonzero(kinds == 2)
    if noisy.size:
        matches = ((line, _NOISE.match(data, begins[line])) for line in noisy.tolist())
        extra = np.array([(line, m.end()) for line, m in matches if m], np.int64).reshape(-1, 2)
        lines, heads = np.concatenate([lines, extra[:, 0]]), np.concatenate([heads, extra[:, 1]])
        order = np.argsort(lines)
        lines, heads = lines[order], heads[order]
    stamps = windows(data, heads, len(_LOWEST))
    fits = ((stamps - _LOWEST) <= _SPAN).view(np.uint64) == _ALL_TRUE
    headed = fits[:, 0] & fits[:, 1] & fits[:, 2]
    return lines[headed], heads[headed], stamps[headed]


def _find_unheaded(data: bytes, begins: Ints) -> list[int]:
    """Return the lines before the first header that start a record of their own.

    Each preamble line is one, and so is each run of other lines between them.
    """
    starts: list[int] = []
    in_run = False
    for line, at in enumerate(begins.tolist()):
        is_preamble = data.startswith(PREAMBLE, at)
        if is_preamble or not in_run:
            starts.append(line)
        in_run = not is_preamble
    return starts


def windows(data: bytes, places: Ints, width: int) -> Bytes:
    """Gather ``width`` bytes from each place, ascending; zeros stand behind the end."""
    buffer = np.frombuffer(data, np.uint8)
    inside = int(np.searchsorted(places, len(data) - width, side="right"))
    if len(data) < width:
        inside = 0
    whole: Bytes = np.empty((0, width), np.uint8)
    if inside:
        whole = np.lib.stride_tricks.sliding_window_view(buffer, width)[places[:inside]]
    if inside == len(places):
        return whole
    rest = np.zeros((len(places) - inside, width), np.uint8)
    for row, at in zip(rest, places[inside:].tolist(), strict=True):
        tail = buffer[at : at + width]
        row[: len(tail)] = tail
    return np.concatenate([whole, rest])


@dataclass(slots=True, eq=False)
class _Headers:
    """The headers of a chunk, one entry each; ``unusual`` are those with an unusual layout.

    ``spans`` are the ends of caller and message in the data: four columns, ascending.
    """

    threads: Ints
    spans: Ints
    structured: Bools
    unusual: Ints


def _read_headers(data: bytes, heads: Ints, line_ends: Ints) -> _Headers:
    rows = np.arange(len(heads))
    window = windows(data, heads, _WINDOW)
    digits = window[:, 22:29] - np.uint8(48)
    is_digit = digits < 10
    threads = np.where(is_digit, digits, 0).astype(np.float64) @ (10.0 ** np.arange(6, -1, -1))
    # Right-aligned in seven columns: blanks, then digits up to the last column, then a space.
    usual = is_digit[:, 6] & (window[:, 29] == 32)
    usual &= (is_digit | (window[:, 22:29] == 32)).all(axis=1)
    usual &= (is_digit[:, 1:] >= is_digit[:, :-1]).all(axis=1)
    close = (window[:, 30:-2] == 93).argmax(axis=1) + 30
    usual &= (window[rows, close] == 93) & (window[rows, close + 1] == 32)
    usual &= window[rows, close - 1] - np.uint8(48) < 10  # the caller ends in its line number
    start = heads + close + 2
    usual &= start <= line_ends
    start = np.where(usual, start, heads + 1)
    stop = np.where(usual, line_ends, heads + 1)
    quoted = usual & (start < line_ends)
    quoted[quoted] = np.frombuffer(data, np.uint8)[start[quoted]] == 34
    closed = _closing_quotes(data, start[quoted] + 1, line_ends[quoted])
    start[quoted] += 1
    stop[quoted] = np.where(closed < 0, start[quoted], closed)
    unusual = ~usual
    unusual[quoted] = closed < 0
    caller = np.where(usual, heads + 30, heads + 1)
    caller_end = np.where(usual, heads + close, heads + 1)
    spans = np.stack([caller, caller_end, start, stop], axis=1)
    return _Headers(threads.astype(np.int64), spans, quoted, np.flatnonzero(unusual))


def _closing_quotes(data: bytes, places: Ints, line_ends: Ints) -> Ints:
    """Return where each message's closing quote is; -1 if far off, escaped or missing."""
    rows = np.arange(len(places))
    window = windows(data, places, _WINDOW)
    quote = (window == 34).argmax(axis=1)
    found = window[rows, quote] == 34
    escapes = window == 92
    if escapes.any():
        first = escapes.argmax(axis=1)
        found &= ~(escapes[rows, first] & (first < quote))
    found &= places + quote < line_ends
    return np.where(found, places + quote, -1)


def to_frame(data: bytes, records: Records, days: Ints, first_line: int) -> pl.DataFrame:
    """Return one row of ``log_lines`` per record, in the order of the log.

    Args:
        data: The chunk, valid UTF-8; the texts of the rows share its memory.
        records: Where its records are.
        days: Day of each header since 2000-01-01 in the log's yearless clock, or ``NO_DAY``.
        first_line: 1-based line of the log on which the chunk starts.
    """
    lead = records.lead
    headers = _read_headers(data, records.heads, records.line_ends[lead:])
    has_header = np.arange(len(records.starts)) >= lead
    texts = _texts(data, records, headers)
    threads = nullable(_padded(headers.threads, lead), has_header)
    structured = pl.Series(_padded(headers.structured, lead))
    severity, caller = (nullable(text, has_header) for text in texts[:2])
    stamps, dated = _stamps_us(records.stamps, days)
    columns = {
        "record_no": pl.Series(first_line + records.lines),
        "stamp_us": nullable(_padded(stamps, lead), _padded(dated, lead)),
        "severity": severity,
        "thread": threads,
        "caller": caller,
        "message": texts[2],
        "structured": structured,
        "raw": _raws(data, records.starts),
    }
    _patch_unusual(columns, data, records, headers.unusual)
    return pl.DataFrame(columns)


def _patch_unusual(
    columns: dict[str, pl.Series], data: bytes, records: Records, unusual: Ints
) -> None:
    """Read the few headers of another layout one by one and put them in their rows."""
    if not unusual.size:
        return
    ends = records.line_ends[records.lead :]
    read = [_read_unusual(data[records.heads[i] : ends[i]]) for i in unusual.tolist()]
    names = ("thread", "caller", "message", "structured")
    for name, values in zip(names, zip(*read, strict=True), strict=True):
        dtype = columns[name].dtype
        columns[name] = columns[name].scatter(
            unusual + records.lead, pl.Series(values, dtype=dtype)
        )


def _padded(values: NDArray[_Scalar], lead: int) -> NDArray[_Scalar]:
    return np.concatenate([np.zeros(lead, values.dtype), values]) if lead else values


def nullable(values: pl.Series | NDArray[np.generic], known: Bools) -> pl.Series:
    """Return the values, null where they are not known."""
    series = pl.Series(values)
    if known.all():
        return series
    return pl.select(pl.when(pl.Series(known)).then(series)).to_series()


def _texts(
    data: bytes, records: Records, headers: _Headers
) -> tuple[pl.Series, pl.Series, pl.Series]:
    """Return severity, caller and message of each record as slices of the data."""
    lead = records.lead
    bounds = np.empty((len(records.starts), 6), np.int64)
    bounds[:lead] = records.starts[:lead, None]
    bounds[:lead, 5] = records.line_ends[:lead]
    bounds[lead:, 0] = records.heads
    bounds[lead:, 1] = records.heads + 1
    bounds[lead:, 2:] = headers.spans
    texts = slices(data, np.append(bounds.ravel(), len(data)))
    return texts.gather_every(6, 0), texts.gather_every(6, 2), texts.gather_every(6, 4)


def _raws(data: bytes, starts: Ints) -> pl.Series:
    """Return each record up to the newline before the next one, or before the end."""
    bounds = np.empty(2 * len(starts), np.int64)
    bounds[::2] = starts
    bounds[1:-1:2] = starts[1:] - 1
    bounds[-1:] = len(data) - data.endswith(b"\n")
    return slices(data, bounds).gather_every(2)


def slices(data: bytes, bounds: Ints) -> pl.Series:
    """Cut the data at each bound: n bounds give n - 1 texts that share its memory."""
    array = na.c_array_from_buffers(
        na.large_string(), max(len(bounds) - 1, 0), [None, bounds, data]
    )
    return pl.Series(array)


def _stamps_us(stamps: Bytes, days: Ints) -> tuple[Ints, Bools]:
    """Return the stamps in microseconds since 2000-01-01, and which of them are real."""
    digits = stamps[:, 6:21].astype(np.float64) - 48
    hours = digits[:, 0] * 10 + digits[:, 1]
    minutes = digits[:, 3] * 10 + digits[:, 4]
    seconds = digits[:, 6] * 10 + digits[:, 7]
    micros = digits[:, 9:15] @ (10.0 ** np.arange(5, -1, -1))
    known = (days != NO_DAY) & (hours < 24) & (minutes < 60) & (seconds < 60)
    within_day = ((hours * 60 + minutes) * 60 + seconds) * 1e6 + micros
    return np.where(known, days, 0) * _DAY_US + within_day.astype(np.int64), known


def _read_unusual(line: bytes) -> tuple[int | None, str | None, str, bool]:
    """Read a header whose columns are not where they usually are, or a quoted message.

    Returns:
        Thread, caller, message, and whether the record is structured.
    """
    match = _HEADER.match(line)
    assert match is not None  # 22 bytes of header are there, or it would be none
    thread, caller, text = match.groups()
    quoted = _MESSAGE.match(text) if caller is not None else None
    message = unquote(quoted[1].decode("utf-8", "replace")) if quoted else text.decode()
    return (
        int(thread) if thread is not None else None,
        caller.decode() if caller is not None else None,
        message,
        quoted is not None,
    )
