"""What a query gives, and the few facts a report needs beside its queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["QueryColumn", "QueryResult", "ReportFacts"]


@dataclass(frozen=True, slots=True)
class QueryColumn:
    """One column of a result: its name, its unit and its meaning in words."""

    name: str
    unit: str = ""
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The rows of one query, with the words that explain them.

    Attributes:
        name: Public name of the query.
        sql: The text that was run, as a reader may copy it.
        columns: In output order.
        rows: In the query's total order. Instants are RFC 3339 UTC with microseconds and
            ``Z``, JSON columns are nested values, null is None.
    """

    name: str
    sql: str
    columns: tuple[QueryColumn, ...] = ()
    rows: list[dict[str, object]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFacts:
    """What a report says about the record as a whole; nothing here comes from a clock.

    Attributes:
        cluster: Name given with ``--cluster``.
        first_revision, last_revision: Ends of the record; None without a stream.
        window_from, window_to: RFC 3339 ends of the record's time; None when unknown.
        counts: What the record holds, in words: ``{"revisions": 24280, "log records": 9}``.
            Printed in this order.
        generated_by: Program and version that wrote the report.
    """

    cluster: str
    first_revision: int | None = None
    last_revision: int | None = None
    window_from: str | None = None
    window_to: str | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    generated_by: str = "tracekit"
