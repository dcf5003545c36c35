"""Rows given by hand, put where the query runner finds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from tracekit.model.tables import TABLES
from tracekit.query import QueryRunner
from tracekit.store.schema import polars_schema

__all__ = ["BEGIN", "run", "second"]

BEGIN = datetime(2026, 12, 1, 12, 0, tzinfo=UTC)


def second(revision: int) -> datetime:
    """Return the time of a revision in these tests: one a second."""
    return BEGIN + timedelta(seconds=revision)


def run(
    folder: Path, query: str, tables: Mapping[str, Sequence[Mapping[str, Any]]], last: int = 100
) -> list[dict[str, Any]]:
    """Run a shipped query over rows; revisions 0 to ``last`` are a second apart."""
    given = {
        "revision_times": [
            {"revision": r, "at": second(r), "at_certainty": "estimated", "at_error_seconds": 0.5}
            for r in range(last + 1)
        ],
        "replay_state": [{"fingerprint": "f", "first_revision": 0, "last_revision": last}],
        **tables,
    }
    files = {name: [_file(folder, name, rows)] for name, rows in given.items()}
    return QueryRunner(files).run(query).to_dicts()


def _file(folder: Path, name: str, rows: Sequence[Mapping[str, Any]]) -> str:
    schema = polars_schema(TABLES[name])
    for row in rows:
        assert set(row) <= set(schema), f"{name} has no {set(row) - set(schema)}"
    columns = {c: [row.get(c, "c" if c == "cluster" else None) for row in rows] for c in schema}
    path = folder / f"{name}.parquet"
    pl.DataFrame(columns, schema=schema).write_parquet(path)
    return str(path)
