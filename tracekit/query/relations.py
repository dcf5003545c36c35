"""A DuckDB relation as a polars frame, whatever types own SQL makes.

polars reads what DuckDB hands over through Arrow. It panics (past every ``except``) on
intervals and unions, shows the inner bytes of bit strings and big numbers, and drops the
zone of a time; two columns of one name it refuses. All of these are settled in DuckDB,
before polars sees them.

Source: measured on DuckDB 2.0.1 with polars 2.1, one type a process.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, tzinfo

import duckdb
import polars as pl

__all__ = ["frame_of"]

# Words of DuckDB's type ids; what it grows later and polars cannot read belongs here too.
_AS_TEXT = frozenset(
    {"interval", "union", "bit", "bignum", "variant", "geometry", "time_ns", "time with time zone"}
)
_NESTED = frozenset({"list", "array", "struct", "map"})
_FIRST, _LAST = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59)


def frame_of(connection: duckdb.DuckDBPyConnection, sql: str) -> pl.DataFrame:
    """Run SQL and return its rows; no columns when the statement has no result.

    Intervals, unions, bit strings, numbers without end, variants and times with a zone
    become text, nested values that hold one become JSON text, and a second column ``a``
    becomes ``a_1``. Sums are integers of 64 bits where they fit, fractions are floats, and
    a time that RFC 3339 cannot write (infinity, year 10000) is null.

    Raises:
        duckdb.Error: If DuckDB refuses the SQL, or fails while it runs.
    """
    relation = connection.sql(sql)
    if relation is None:
        return pl.DataFrame()
    wanted = list(_projection(relation))
    if any(expression != plain for plain, expression in wanted):
        # A projection is put around the text, which a trailing comment would swallow.
        relation = connection.sql(_without_tail(sql)).project(
            ", ".join(expression for _, expression in wanted)
        )
    return _plain(pl.DataFrame(relation))


def _projection(relation: duckdb.DuckDBPyRelation) -> Iterator[tuple[str, str]]:
    """Yield what would keep each column as it is, and what it has to be."""
    names: Counter[str] = Counter()
    for place, (name, dtype) in enumerate(zip(relation.columns, relation.types, strict=True), 1):
        shown = _unused(name, names, relation.columns)
        names[name] += 1
        value = f"#{place}"
        if dtype.id in _AS_TEXT:
            value = f"CAST({value} AS VARCHAR)"
        elif _holds_odd_type(dtype):
            value = f"CAST(to_json({value}) AS VARCHAR)"
        yield f"#{place} AS {_quoted(name)}", f"{value} AS {_quoted(shown)}"


def _unused(name: str, before: Counter[str], taken: list[str]) -> str:
    if not before[name]:
        return name
    number = before[name]
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"


def _holds_odd_type(dtype: duckdb.sqltypes.DuckDBPyType) -> bool:
    if dtype.id not in _NESTED:
        return dtype.id in _AS_TEXT
    # An array's children also have its size, which is a number.
    return any(
        _holds_odd_type(child)
        for _, child in dtype.children
        if isinstance(child, duckdb.sqltypes.DuckDBPyType)
    )


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _without_tail(sql: str) -> str:
    """Cut the last semicolon, and the comments behind it."""
    for end in (place for place, character in enumerate(sql) if character == ";"):
        behind = [line.strip() for line in sql[end + 1 :].splitlines()]
        if all(not line or line.startswith("--") for line in behind):
            return sql[:end]
    return sql


def _plain(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(_plain_column(column) for column in frame)


def _plain_column(column: pl.Series) -> pl.Series:
    dtype = column.dtype
    if dtype.is_decimal() and not dtype.scale:  # type: ignore[attr-defined]
        return _integers(column)
    if dtype == pl.Int128:
        return _integers(column)
    if dtype.is_decimal():
        return column.cast(pl.Float64)
    if isinstance(dtype, pl.Datetime):
        return _writable_time(column.dt.cast_time_unit("us"), UTC if dtype.time_zone else None)
    if dtype == pl.Date:
        return _writable(column, _FIRST.date(), _LAST.date())
    return column


def _integers(column: pl.Series) -> pl.Series:
    """Return 64-bit integers; as they are where one is wider."""
    narrow = column.cast(pl.Int64, strict=False)
    return narrow if narrow.null_count() == column.null_count() else column


def _writable_time(column: pl.Series, zone: tzinfo | None) -> pl.Series:
    return _writable(column, _FIRST.replace(tzinfo=zone), _LAST.replace(tzinfo=zone))


def _writable(column: pl.Series, first: date, last: date) -> pl.Series:
    return column.set(~column.is_between(first, last), None)
