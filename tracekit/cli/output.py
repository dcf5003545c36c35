"""Rows to stdout: one frame in, the bytes of one format out.

All formats are deterministic: the same frame gives the same bytes. Only ``table`` is for eyes:
there control characters of recorded text are shown as escapes, so that a pod's message cannot
drive the terminal. All other formats carry the text as it was.

What stands in a column, whatever the query made of it:

========================  =====================================  ==========================
type                      json, jsonl                            csv, table
========================  =====================================  ==========================
time                      RFC 3339, UTC, microseconds, ``Z``     the same
decimal, 128-bit integer  number, all digits                     digits
NaN, infinity             null                                   ``NaN``, ``inf``
JSON text, list, struct   nested                                 JSON text
binary                    base64                                 base64
duration                  seconds                                seconds
null                      null                                   empty in csv, – in a table
========================  =====================================  ==========================
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, BinaryIO, Literal

import orjson
import polars as pl

from tracekit.cli.screen import (
    GUTTER,
    columns_of,
    padded,
    paragraph,
    plain_text,
    screen_width,
    shorten,
)

__all__ = ["OutputFormat", "write_frame"]

OutputFormat = Literal["table", "json", "jsonl", "csv", "parquet"]

_RFC3339 = "%Y-%m-%dT%H:%M:%S%.6fZ"
_ROWS_AT_ONCE = 8192
_NULL = "–"
_RECORD_WIDTH = 80
_NARROWEST = 12  # a text column cut below this tells nothing: records go below each other instead


def write_frame(
    frame: pl.DataFrame,
    fmt: OutputFormat,
    out: BinaryIO,
    *,
    json_columns: frozenset[str],
    width: int | None,
) -> None:
    """Write a frame in one format.

    Args:
        frame: The rows; times with a zone are written in UTC.
        fmt: One of the formats of ``--output``.
        out: Where the bytes go; it need not be seekable.
        json_columns: Columns whose text is JSON: nested in ``json`` and ``jsonl``, text elsewhere.
        width: Columns of the screen a ``table`` has to fit; None for the terminal's, 80 at least.
    """
    match fmt:
        case "json":
            _write_array(_objects(frame, json_columns), out)
        case "jsonl":
            for line in _objects(frame, json_columns):
                out.write(line + b"\n")
        case "csv":
            _write_csv(frame, out)
        case "parquet":
            # The writer seeks; a pipe cannot.
            buffer = io.BytesIO()
            frame.write_parquet(buffer)
            out.write(buffer.getbuffer())
        case "table":
            _write_table(frame, out, width or screen_width())


def _write_array(objects: Iterator[bytes], out: BinaryIO) -> None:
    before = b"["
    for line in objects:
        out.write(before + b"\n" + line)
        before = b","
    out.write(b"[]\n" if before == b"[" else b"\n]\n")


def _objects(frame: pl.DataFrame, json_columns: frozenset[str]) -> Iterator[bytes]:
    for rows in frame.iter_slices(_ROWS_AT_ONCE):
        columns = [_json_values(column, column.name in json_columns) for column in rows]
        for row in zip(*columns, strict=True):
            yield orjson.dumps(dict(zip(frame.columns, row, strict=True)))


def _json_values(column: pl.Series, holds_json: bool) -> list[Any]:
    values = _plain(column).to_list()
    if _is_wide_number(column.dtype):
        return [None if digits is None else orjson.Fragment(digits) for digits in values]
    if column.dtype.is_nested() or (holds_json and column.dtype == pl.String):
        return [_nested(text) for text in values]
    return values


def _nested(text: str | None) -> Any:
    """Nest JSON text with its own spelling; text that is no JSON stays a string."""
    if text is None:
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return text
    return value if "\n" in text or "\r" in text else orjson.Fragment(text)


def _is_wide_number(dtype: pl.DataType) -> bool:
    """Tell numbers that JSON can hold but orjson cannot."""
    return dtype.is_decimal() or dtype in (pl.Int128, pl.UInt128)


def _plain(column: pl.Series) -> pl.Series:
    """Turn a column into text, bool, 64-bit integers or floats; the table above says how."""
    dtype = column.dtype
    if isinstance(dtype, pl.Datetime):
        in_utc = column if dtype.time_zone is None else column.dt.convert_time_zone("UTC")
        # A time without a zone (only own SQL makes one) must not claim to be UTC.
        return in_utc.dt.strftime(_RFC3339 if dtype.time_zone else _RFC3339.removesuffix("Z"))
    if dtype == pl.Duration:
        return column.dt.total_microseconds() / 1_000_000
    if dtype == pl.Binary:
        return column.bin.encode("base64")
    if dtype.is_nested() or dtype == pl.Object:
        return pl.Series(column.name, [_as_json(v) for v in column.to_list()], dtype=pl.String)
    if dtype.is_temporal() or _is_wide_number(dtype) or dtype in (pl.Categorical, pl.Enum):
        return column.cast(pl.String)
    return column


def _as_json(value: Any) -> str | None:
    if value is None:
        return None
    options = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_NON_STR_KEYS
    return orjson.dumps(value, default=_inside_json, option=options).decode()


def _inside_json(value: Any) -> Any:
    match value:
        case datetime():
            return str(_plain(pl.Series([value])).item())
        case Decimal():
            return orjson.Fragment(str(value))
        case bytes():
            return base64.b64encode(value).decode()
        case timedelta():
            return value.total_seconds()
        case pl.Series():
            return value.to_list()
        case _:
            return str(value)


def _write_csv(frame: pl.DataFrame, out: BinaryIO) -> None:
    """Write RFC 4180; null is an empty field, an empty text is ``""``."""
    out.write(",".join(_csv_field(name) for name in frame.columns).encode() + b"\r\n")
    # polars itself leaves a field with a lone carriage return bare: readers then see a new row.
    for rows in frame.iter_slices(_ROWS_AT_ONCE):
        fields = pl.DataFrame([_csv_column(_plain(column)) for column in rows])
        # Written by us: polars tells of a reader that went away in an error of its own.
        text = fields.write_csv(include_header=False, line_terminator="\r\n", quote_style="never")
        out.write(text.encode())


def _csv_field(text: str) -> str:
    quoted = text.replace('"', '""')
    return f'"{quoted}"' if not text or any(mark in text for mark in ',"\r\n') else text


def _csv_column(column: pl.Series) -> pl.Series:
    if column.dtype != pl.String:
        return column
    must_quote = column.str.contains(r'[,"\r\n]') | (column == "")
    quoted = '"' + column.str.replace_all('"', '""', literal=True) + '"'
    return quoted.zip_with(must_quote.fill_null(value=False), column).alias(column.name)


@dataclass(frozen=True, slots=True)
class _Column:
    """One column of a table, ready to print.

    Args:
        name: Heading.
        cells: Printable texts, one a row.
        is_number: The cells stand to the right.
        is_text: The cells may be shortened.
    """

    name: str
    cells: list[str]
    is_number: bool
    is_text: bool

    def width(self) -> int:
        return max(map(columns_of, [self.name, *self.cells]))

    def line(self, text: str, width: int) -> str:
        return padded(shorten(text, width), width, right=self.is_number)


def _write_table(frame: pl.DataFrame, out: BinaryIO, width: int) -> None:
    columns = [_table_column(column) for column in frame]
    if not columns:
        return
    widths = _fit(columns, width)
    if widths is None and frame.height:
        lines = _records(columns, width)
    else:
        lines = _grid(columns, widths or [column.width() for column in columns])
    for line in lines:
        out.write(line.rstrip(" ").encode() + b"\n")


def _table_column(column: pl.Series) -> _Column:
    cells = [_NULL if value is None else _cell(value) for value in _plain(column).to_list()]
    is_number = column.dtype.is_numeric() or column.dtype == pl.Duration
    is_fixed = is_number or column.dtype.is_temporal() or column.dtype == pl.Boolean
    return _Column(plain_text(column.name), cells, is_number, not is_fixed)


def _cell(value: str | float | bool) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return plain_text(value) if isinstance(value, str) else str(value)


def _fit(columns: list[_Column], width: int) -> list[int] | None:
    """Give each column its width, the widest texts shortened first; None when nothing fits."""
    room = width - len(GUTTER) * (len(columns) - 1)
    natural = [column.width() for column in columns]
    if sum(natural) <= room:
        return natural
    for cap in range(max(room, 0), _NARROWEST - 1, -1):
        capped = [
            max(columns_of(column.name), min(whole, cap)) if column.is_text else whole
            for column, whole in zip(columns, natural, strict=True)
        ]
        if sum(capped) <= room:
            return capped
    return None


def _grid(columns: list[_Column], widths: list[int]) -> Iterator[str]:
    sized = list(zip(columns, widths, strict=True))
    yield GUTTER.join(column.line(column.name, width) for column, width in sized)
    yield GUTTER.join("─" * width for width in widths)
    for row in range(len(columns[0].cells)):
        yield GUTTER.join(column.line(column.cells[row], width) for column, width in sized)


def _records(columns: list[_Column], width: int) -> Iterator[str]:
    """Print each record as a block of ``name: value``, wrapped but nothing shortened."""
    label_width = max(columns_of(column.name) for column in columns) + 2
    labels = [padded(column.name + ":", label_width) for column in columns]
    room = max(width, _RECORD_WIDTH)
    for row in range(len(columns[0].cells)):
        if row:
            yield ""
        for label, column in zip(labels, columns, strict=True):
            yield from paragraph(column.cells[row], room, first=label)
