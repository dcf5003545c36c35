"""Verify: what can be wrong with a store, checked and named."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from tracekit.model.tables import TABLES
from tracekit.store import Store, StoreReader
from tracekit.store.schema import polars_schema

__all__ = ["verify"]

Finding = tuple[str, str, str, str]
_COLUMNS = ("severity", "where", "what", "todo")


def verify(store: Store) -> pl.DataFrame:
    """Check files, schema and order of a store.

    Returns:
        One row a finding: severity (ERROR or INFO), where, what and todo; none when the
        store is sound.
    """
    findings: list[Finding] = []
    for name in TABLES:
        findings += _files(store, name)
    if not findings:
        findings += _doubles(StoreReader(store))
    findings += _orphans(store)
    return pl.DataFrame(findings, schema=dict.fromkeys(_COLUMNS, pl.String()), orient="row")


def _files(store: Store, name: str) -> Iterator[Finding]:
    restore = "restore the file from a copy, or collect again into a new store"
    for path, rows in store.table(name).parts():
        if not Path(path).is_file():
            yield "ERROR", path, "a committed file is missing", restore
            continue
        try:
            frame = pl.read_parquet(path)
        except (OSError, pl.exceptions.PolarsError) as error:
            yield "ERROR", path, f"a committed file is unreadable ({error})", restore
            continue
        if frame.schema != polars_schema(TABLES[name]):
            yield "ERROR", path, "a committed file has another schema", restore
        elif frame.height != rows:
            yield "ERROR", path, f"{frame.height} rows where {rows} were committed", restore


def _doubles(reader: StoreReader) -> Iterator[Finding]:
    doubles = (
        reader.scan("objects")
        .group_by("cluster", "revision", "key")
        .len()
        .filter(pl.col("len") > 1)
        .sort("cluster", "revision", "key")
        .collect()
    )
    for cluster, revision, key, count in doubles.iter_rows():
        yield (
            "ERROR",
            "objects",
            f"{count} rows for {key} at revision {revision} of cluster {cluster}",
            "collect again into a new store",
        )


def _orphans(store: Store) -> Iterator[Finding]:
    for name in ("objects", "log_lines"):
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
