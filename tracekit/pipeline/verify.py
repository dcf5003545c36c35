"""Verify: what can be wrong with a store, checked and named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from tracekit.errors import StoreError
from tracekit.model.tables import TABLES
from tracekit.store import Store, StoreReader
from tracekit.store.delta import digest_of
from tracekit.store.schema import polars_schema

__all__ = ["verify"]

Finding = tuple[str, str, str, str]
_COLUMNS = ("severity", "where", "what", "todo")


def verify(store: Store) -> pl.DataFrame:
    """Check files and their checksums, schema, order and holes of a store.

    Returns:
        One row a finding: severity (ERROR or INFO), where, what and todo; none when the
        store is sound.
    """
    findings: list[Finding] = []
    for name in TABLES:
        findings += _files(store, name)
    if not findings:
        reader = StoreReader(store)
        findings += _doubles(reader)
        findings += _order(reader)
        findings += _lost(reader)
        findings += _holes(reader)
    findings += _orphans(store)
    return pl.DataFrame(findings, schema=dict.fromkeys(_COLUMNS, pl.String()), orient="row")


def _files(store: Store, name: str) -> Iterator[Finding]:
    restore = "restore the file from a copy, or collect again into a new store"
    try:
        parts = store.table(name).parts()
    except StoreError as error:
        yield "ERROR", error.where or name, error.what, restore
        return
    for path, rows in parts:
        if what := _fault(path, rows, name):
            yield "ERROR", path, what, restore


def _fault(path: str, rows: int, name: str) -> str:
    """Say what is wrong with one committed file; nothing when it is sound."""
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        return "a committed file is missing"
    except OSError as error:
        return f"a committed file cannot be read ({error.strerror})"
    if digest_of(content) not in path:
        return "a committed file has other bytes than were written (its checksum differs)"
    try:
        frame = pl.read_parquet(content)
    except pl.exceptions.PolarsError as error:
        return f"a committed file is unreadable ({error})"
    if frame.schema != polars_schema(TABLES[name]):
        return "a committed file has another schema"
    return "" if frame.height == rows else f"{frame.height} rows where {rows} were committed"


def _doubles(reader: StoreReader) -> Iterator[Finding]:
    doubles = reader.collect(
        reader.scan("objects")
        .group_by("cluster", "revision", "key")
        .len()
        .filter(pl.col("len") > 1)
        .sort("cluster", "revision", "key")
    )
    for cluster, revision, key, count in doubles.iter_rows():
        yield (
            "ERROR",
            "objects",
            f"{count} rows for {key} at revision {revision} of cluster {cluster}",
            "collect again into a new store",
        )


def _order(reader: StoreReader) -> Iterator[Finding]:
    """Find rows that no etcd can have written."""
    # 0 is an object whose revision nothing tells.
    early = (pl.col("revision") < 0) | (pl.col("create_revision") > pl.col("revision"))
    lazy = reader.scan("objects").filter(early).sort("cluster", "revision", "key")
    rows = reader.collect(lazy)
    for row in rows.iter_rows(named=True):
        what = f"{row['key']} at revision {row['revision']} says {row['create_revision']} made it"
        yield "ERROR", "objects", what, "collect again into a new store"


def _lost(reader: StoreReader) -> Iterator[Finding]:
    """Find sources whose rows are gone, as when a table's folder was deleted."""
    known: set[tuple[str, str]] = set()
    for table in ("objects", "log_lines", "event_texts", "api_requests"):
        lazy = reader.scan(table).select("cluster", "source_id").unique()
        known |= set(reader.collect(lazy).rows())
    stored = reader.rows("sources").filter(pl.col("stored") > 0)
    for cluster, source_id, path in stored.select("cluster", "source_id", "path").iter_rows():
        if (cluster, source_id) not in known:
            yield "ERROR", path, "its rows are not in the store", "collect it again"


def _holes(reader: StoreReader) -> Iterator[Finding]:
    for row in reader.rows("gaps").iter_rows(named=True):
        to = "?" if row["to_revision"] is None else row["to_revision"]
        yield (
            "INFO",
            f"cluster {row['cluster']}",
            f"revisions {row['from_revision']} to {to} may be missing: {row['cause']}",
            "collect a recording that has them",
        )


def _orphans(store: Store) -> Iterator[Finding]:
    for name in ("objects", "log_lines", "event_texts", "api_requests"):
        folder = store.table(name)
        committed = {Path(path).name for path in folder.files()}
        lost = [p for p in folder.folder.glob("*.parquet") if p.name not in committed]
        if lost:
            yield (
                "INFO",
                str(folder.folder),
                f"{len(lost)} files of collections that did not end; nothing refers to them",
                "they may be deleted",
            )
