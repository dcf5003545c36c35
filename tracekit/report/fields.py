"""Typed reading of one row of a query; what is absent or of another type is None."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tracekit.report.instants import parse_instant

__all__ = ["Row", "flag", "instant", "items", "number", "span", "text", "whole", "words"]

Row = Mapping[str, object]


def text(row: Row, name: str) -> str:
    """Return a text column, empty when null."""
    value = row.get(name)
    return "" if value is None else value if isinstance(value, str) else str(value)


def number(row: Row, name: str) -> float | None:
    """Return a numeric column; None when null or not a number."""
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if value == value else None


def whole(row: Row, name: str) -> int | None:
    """Return an integer column; None when null or not a number."""
    value = number(row, name)
    return None if value is None else int(value)


def flag(row: Row, name: str) -> bool:
    """Return whether a boolean column is true."""
    return row.get(name) is True


def instant(row: Row, name: str) -> int | None:
    """Return an RFC 3339 column in microseconds since the Unix epoch."""
    value = row.get(name)
    return parse_instant(value) if isinstance(value, str) else None


def span(row: Row) -> tuple[int, int | None] | None:
    """Return ``from_at`` and ``to_at``; None when the start is not known."""
    begin = instant(row, "from_at")
    return None if begin is None else (begin, instant(row, "to_at"))


def items(row: Row, name: str) -> Iterator[object]:
    """Yield the members of a JSON list column; nothing when it is no list."""
    value = row.get(name)
    if isinstance(value, list | tuple):
        yield from value


def words(row: Row, name: str) -> list[str]:
    """Return a JSON list column as texts."""
    return [str(v) for v in items(row, name)]
