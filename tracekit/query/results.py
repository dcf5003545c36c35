"""Frames as plain rows: times as text, JSON columns nested."""

from __future__ import annotations

import orjson
import polars as pl

from tracekit.model.results import QueryColumn, QueryResult
from tracekit.query.catalog import ShippedQuery

__all__ = ["result_of"]

_RFC3339 = "%Y-%m-%dT%H:%M:%S%.6fZ"


def result_of(query: ShippedQuery, frame: pl.DataFrame) -> QueryResult:
    """Return the rows of a shipped query, whole or without some columns, with its words."""
    columns = tuple(
        QueryColumn(c.name, c.unit, c.meaning)
        for c in query.header.columns
        if c.name in frame.columns
    )
    texts = frame.with_columns(
        pl.col(name).dt.strftime(_RFC3339)
        for name, dtype in frame.schema.items()
        if isinstance(dtype, pl.Datetime)
    )
    rows = texts.to_dicts()
    for column in columns:
        if column.unit == "json":
            for row in rows:
                text = row[column.name]
                row[column.name] = None if text is None else orjson.loads(text)
    return QueryResult(query.name, query.sql, columns, rows)
