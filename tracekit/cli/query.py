"""``tracekit query``."""

from __future__ import annotations

from pathlib import Path

import click

from tracekit.cli.options import Format, output_option, store_option, warn, write_rows
from tracekit.errors import QueryError, UsageError

__all__ = ["query"]


@click.command(
    epilog="""\b
Examples:
  tracekit query --list
  tracekit query pending_by_cause
  tracekit query "SELECT cause, sum(pod_seconds) FROM pending_by_cause GROUP BY cause"
  tracekit query @my.sql -o csv
"""
)
@click.argument("text", required=False, metavar="NAME|SQL|@FILE")
@click.option("--list", "show_list", is_flag=True, help="Name the shipped queries and columns.")
@store_option
@output_option
def query(text: str | None, show_list: bool, store: Path, output: Format | None) -> None:
    """Run a shipped query, or SQL over the store."""
    import tracekit

    trace = tracekit.open(store)
    if show_list:
        _list(output)
        return
    if not text:
        raise UsageError("name a query, or give SQL", todo="see the names with --list")
    rows = trace.query(_sql(text))
    if trace.is_replayed is False:
        warn("the store has new rows since the last replay; run tracekit replay to see them")
    write_rows(rows, output, _json_columns(text))


def _sql(text: str) -> str:
    if not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise QueryError(f"cannot read it ({error})", where=text[1:]) from error


def _json_columns(text: str) -> frozenset[str]:
    """Columns with JSON text: a shipped query's header tells them; in own SQL by their name."""
    from tracekit.query import Catalog

    known = Catalog().queries
    chosen = [known[text.strip()]] if text.strip() in known else list(known.values())
    return frozenset(c.name for q in chosen for c in q.header.columns if c.unit == "json")


def _list(output: Format | None) -> None:
    import polars as pl

    from tracekit.query import Catalog

    rows = [
        {"query": q.name, "column": c.name, "unit": c.unit, "meaning": c.meaning,
         "grain": q.header.grain, "summary": q.header.summary}
        for q in Catalog().queries.values() if not q.private
        for c in q.header.columns
    ]
    from tracekit.cli.options import chosen

    if chosen(output) != "table":
        write_rows(pl.DataFrame(rows), output)
        return
    for q in Catalog().queries.values():
        if not q.private:
            click.echo(f"{q.name}\n  {q.header.summary} ({q.header.grain})")
            width = max(len(c.name) for c in q.header.columns)
            for c in q.header.columns:
                click.echo(f"    {c.name:<{width}}  {c.unit}; {c.meaning}")
