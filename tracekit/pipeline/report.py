"""Report: the queries a report names, run and rendered into one HTML file."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

import orjson
import polars as pl

from tracekit.assets import program_version
from tracekit.errors import ReportError
from tracekit.model.results import QueryResult, ReportFacts
from tracekit.pipeline.views import query_runner, require_replay
from tracekit.query import result_of
from tracekit.report import build_view, read_spec, render
from tracekit.store import Store, StoreReader

__all__ = ["report_data", "write_data", "write_report"]

_UNREAD = ["patch", "heartbeats"]  # most of the bytes, and no section shows them
_COUNTED = (("revisions", "objects", "revision"), ("log records", "log_lines", None))


def report_data(store: Store, cluster: str) -> tuple[dict[str, QueryResult], ReportFacts]:
    """Run the report's queries and gather the facts beside them.

    Raises:
        StoreError: If the store was never replayed.
        QueryError: If a query cannot run.
    """
    require_replay(store)
    runner = query_runner(store)
    names = sorted({name for section in read_spec().sections for name in section.queries})
    results: dict[str, QueryResult] = {}
    for name in names:
        query = runner.catalog.get(name)
        frame = runner.run(name).filter(pl.col("cluster") == cluster)
        results[name] = result_of(query, frame.drop(_UNREAD, strict=False))
    return results, _facts(StoreReader(store), cluster)


def write_report(store: Store, cluster: str, path: Path) -> None:
    """Write the report as one self-contained HTML file.

    Raises:
        StoreError: If the store was never replayed.
        ReportError: If the page cannot be made or written.
    """
    results, facts = report_data(store, cluster)
    _write(path, render(build_view(results, facts)).encode())


def write_data(store: Store, cluster: str, path: Path) -> None:
    """Write the same content as JSON: facts, and the rows of each query.

    Raises:
        StoreError: If the store was never replayed.
        ReportError: If the file cannot be written.
    """
    results, facts = report_data(store, cluster)
    content: Mapping[str, object] = {
        "facts": facts,
        "queries": {name: result.rows for name, result in results.items()},
    }
    _write(path, orjson.dumps(content, option=orjson.OPT_INDENT_2))


def _facts(reader: StoreReader, cluster: str) -> ReportFacts:
    state = reader.rows("replay_state", cluster)
    revisions = state.row(0, named=True) if state.height else {}
    times = reader.rows("revision_times", cluster).filter(pl.col("at").is_not_null())
    texts = times["at"].dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ")
    return ReportFacts(
        cluster=cluster,
        first_revision=revisions.get("first_revision"),
        last_revision=revisions.get("last_revision") if times.height else None,
        window_from=texts[0] if texts.len() else None,
        window_to=texts[-1] if texts.len() else None,
        counts={words: _count(reader, cluster, table, c) for words, table, c in _COUNTED},
        generated_by=f"tracekit {program_version()}",
    )


def _count(reader: StoreReader, cluster: str, table: str, distinct: str | None) -> int:
    counted = pl.col(distinct).n_unique() if distinct else pl.len()
    mine = reader.scan(table).filter(pl.col("cluster") == cluster)
    rows = reader.collect(mine.select(counted))
    return int(rows.item())


def _write(path: Path, content: bytes) -> None:
    """Put the whole file in place at once, so that no reader sees half of it."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ReportError(
            f"cannot write the report ({error.strerror})",
            where=str(path),
            todo="choose another path that you may write to",
        ) from error
