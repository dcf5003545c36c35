"""``tracekit query``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracekit.cli.options import (
    Format,
    chosen,
    output_option,
    show_lines,
    store_option,
    warn_when_stale,
    write_rows,
)
from tracekit.cli.screen import paragraph, screen_width
from tracekit.errors import QueryError, UsageError

if TYPE_CHECKING:
    from tracekit.query import ShippedQuery

__all__ = ["query"]


@click.command(
    epilog="""\b
Examples:
  tracekit query --list
  tracekit query pending_by_cause
  tracekit query "SELECT node, count(*) AS pods FROM bindings GROUP BY node"
  tracekit query @my.sql -o csv
"""
)
@click.argument("text", required=False, metavar="NAME|SQL|@FILE")
@click.option("--list", "show_list", is_flag=True, help="Name the shipped queries and columns.")
@store_option
@output_option
def query(text: str | None, show_list: bool, store: Path, output: Format | None) -> None:
    """Run a shipped query, or SQL over the store.

    SQL is DuckDB's. It reads shipped queries by name and the store's own tables as
    TABLE_rows; -o jsonl or csv goes well with other tools.
    """
    import tracekit

    trace = tracekit.open(store)
    if show_list:
        _list(output)
        return
    sql = _sql(text)
    rows = trace.query(sql)
    warn_when_stale(trace)
    write_rows(rows, output, _json_columns(sql))


def _sql(text: str | None) -> str:
    if not text or not text.strip():
        raise UsageError("name a query, or give SQL", todo="see the names with --list")
    if not text.startswith("@"):
        return text
    try:
        sql = sys.stdin.read() if text == "@-" else Path(text[1:]).read_text(encoding="utf-8")
    except OSError as error:
        raise QueryError(
            f"cannot read the query ({error.strerror})", where=text[1:], todo="check the path"
        ) from error
    except UnicodeDecodeError as error:
        raise QueryError("the query is not UTF-8 text", where=text[1:]) from error
    if not sql.strip():
        raise QueryError("there is no query in it", where=text[1:])
    return sql


def _json_columns(text: str) -> frozenset[str]:
    """Columns with JSON text: a shipped query's header tells them; in own SQL by their name."""
    from tracekit.query import Catalog

    known = Catalog().queries
    asked = [known[text.strip()]] if text.strip() in known else list(known.values())
    return frozenset(c.name for q in asked for c in q.header.columns if c.unit == "json")


def _list(output: Format | None) -> None:
    import polars as pl

    from tracekit.query import Catalog

    shipped = [query for query in Catalog().queries.values() if not query.private]
    if chosen(output) == "table":
        for query in shipped:
            show_lines(_described(query, screen_width()))
        return
    rows = [
        {
            "query": q.name,
            "column": c.name,
            "unit": c.unit,
            "meaning": c.meaning,
            "grain": q.header.grain,
            "summary": q.header.summary,
        }
        for q in shipped
        for c in q.header.columns
    ]
    write_rows(pl.DataFrame(rows), output)


def _described(query: ShippedQuery, width: int) -> Iterator[str]:
    columns = query.header.columns
    yield f"{query.name}: {query.header.grain}"
    yield from paragraph(query.header.summary, width, first="  ")
    name_width = max(len(column.name) for column in columns)
    unit_width = max(len(column.unit) for column in columns)
    for column in columns:
        first = f"    {column.name:<{name_width}}  {column.unit:<{unit_width}}  "
        yield from paragraph(column.meaning, width, first=first)
    yield ""
