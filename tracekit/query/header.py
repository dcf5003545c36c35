"""The header of a shipped query: what it promises, in a form that tests can check.

::

    -- One sentence that says what the rows are.
    -- @grain one row per revision of a pod
    -- @column namespace  text; namespace of the pod
    -- @source pod_states, revision_times
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tracekit.errors import QueryError

__all__ = ["UNITS", "QueryHeader", "QueryHeaderColumn", "read_header"]

UNITS = frozenset(
    "text json int float bool time seconds ratio count revision pods nodes amount".split()
)
_COLUMN = re.compile(r"(\w+)\s+([\w-]+);\s+(\S.*)")


@dataclass(frozen=True, slots=True)
class QueryHeaderColumn:
    """One promised column: name, unit of ``UNITS`` and meaning."""

    name: str
    unit: str
    meaning: str


@dataclass(frozen=True, slots=True)
class QueryHeader:
    """What a query file says about itself."""

    summary: str
    grain: str
    columns: tuple[QueryHeaderColumn, ...]
    sources: tuple[str, ...]


def read_header(text: str, *, where: str = "") -> QueryHeader:
    """Read the comment lines before the SELECT.

    Raises:
        QueryError: If the header is missing a part or has a malformed line.
    """
    lines = _comment_lines(text)
    summary = next((line for line in lines if line and not line.startswith("@")), "")
    grain = _tagged(lines, "@grain")
    columns = tuple(_column(line, where) for line in _tagged_all(lines, "@column"))
    sources = tuple(
        name.strip()
        for line in _tagged_all(lines, "@source")
        for name in line.split(",")
        if name.strip()
    )
    for part, value in (
        ("summary", summary),
        ("@grain", grain),
        ("@column", columns),
        ("@source", sources),
    ):
        if not value:
            raise QueryError(f"the header has no {part}", where=where, todo="see CONTRIBUTING")
    return QueryHeader(summary, grain, columns, sources)


def _comment_lines(text: str) -> list[str]:
    lines: list[str] = []
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        lines.append(line[2:].strip())
    return lines


def _tagged_all(lines: list[str], tag: str) -> list[str]:
    return [line[len(tag) :].strip() for line in lines if line.startswith(f"{tag} ")]


def _tagged(lines: list[str], tag: str) -> str:
    return next(iter(_tagged_all(lines, tag)), "")


def _column(line: str, where: str) -> QueryHeaderColumn:
    match = _COLUMN.fullmatch(line)
    if match is None or match[2] not in UNITS:
        raise QueryError(
            f"malformed @column line {line!r}",
            where=where,
            todo=f"write name, unit ({', '.join(sorted(UNITS))}); meaning",
        )
    return QueryHeaderColumn(match[1], match[2], match[3])
