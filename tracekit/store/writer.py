"""Rows into the store: what it has already is left out, the rest lands in one commit.

An object row is known by (revision, key): etcd changes a key at most once in a revision.
A log record has no such name, so it is known by its time, its text and how many equal
ones there are: of n equal records stored, the first n of another reading are duplicates.
Both rules make the rows independent of the order and the pieces in which sources arrive.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import polars as pl

from tracekit.errors import ClusterMismatchError, StoreError
from tracekit.model.tables import TABLES
from tracekit.store.delta import DeltaFolder, Part
from tracekit.store.reader import StoreReader
from tracekit.store.store import Store

__all__ = ["SourceWriter", "new_rows"]

_OBJECT_KEY = ["revision", "key"]
_DIGEST = pl.col("value").hash().alias("digest")
_SPAN = {"objects": "revision", "log_lines": "stamp_us"}
# What makes two rows of a source the same thing told twice; equal rows are counted.
_TOLD = {
    "log_lines": ("stamp_us", "raw"),
    "api_requests": ("audit_id", "stage", "raw"),
    "event_texts": (
        *("form", "namespace", "kind", "name", "uid", "reason", "type", "message", "count"),
        *("first_seen", "last_seen", "at", "source", "node", "related", "event_name"),
    ),
}


class SourceWriter:
    """Writes the rows of one source to one table.

    ``admit`` runs in one thread, ``stage`` in any; nothing is visible before ``commit``.
    """

    def __init__(self, store: Store, table: str, *, cluster: str, source_id: str) -> None:
        self._folder: DeltaFolder = store.table(table)
        self._reader = StoreReader(store)
        self._table, self._cluster, self._source_id = table, cluster, source_id
        self._parts: list[Part] = []
        self._lock = Lock()
        self._seen: list[pl.DataFrame] = []
        self._seen_revision = -1
        self._equal: pl.DataFrame | None = None
        self._stored_span = self._committed_span()
        self.stored = 0
        self.duplicates = 0

    def admit(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return the rows that the store does not have, with cluster and source filled in.

        Raises:
            ClusterMismatchError: If a stored (revision, key) has another value.
            StoreError: If the two values differ in what is redacted.
        """
        fresh = self._new_objects(frame) if self._table == "objects" else self._new_lines(frame)
        self.stored += fresh.height
        self.duplicates += frame.height - fresh.height
        return fresh.with_columns(
            pl.lit(self._cluster).alias("cluster"), pl.lit(self._source_id).alias("source_id")
        )

    def stage(self, frame: pl.DataFrame) -> None:
        """Write admitted rows to disk, waiting for the commit."""
        if frame.height:
            part = self._folder.write_part(frame)
            with self._lock:
                self._parts.append(part)

    def commit(self, resume: int | None) -> None:
        """Make all staged rows visible at once, with the resume point."""
        point = (f"{self._cluster}/{self._source_id}", resume) if resume is not None else None
        # From here on they may be committed, also where an interrupt hides it: not to discard.
        parts, self._parts = sorted(self._parts, key=lambda p: p.name), []
        self._folder.commit(parts, resume=point)

    def discard(self) -> None:
        """Drop staged rows."""
        self._folder.discard(self._parts)
        self._parts.clear()

    def _committed_span(self) -> tuple[int, int] | None:
        column = _SPAN.get(self._table)
        if column is None:
            return (0, 0) if self._folder.version() >= 0 else None
        row = self._reader.collect(
            self._reader.scan(self._table)
            .filter(pl.col("cluster") == self._cluster)
            .select(pl.col(column).min().alias("a"), pl.col(column).max().alias("b"), pl.len())
        ).row(0)
        return None if not row[2] else (row[0] or 0, row[1] or 0)

    def _overlaps(self, column: pl.Series) -> bool:
        if self._stored_span is None:
            return False
        low, high = column.min(), column.max()
        if low is None or high is None or column.null_count():
            return True
        return bool(low <= self._stored_span[1] and high >= self._stored_span[0])  # type: ignore[operator]

    def _new_objects(self, frame: pl.DataFrame) -> pl.DataFrame:
        rows = frame.unique(_OBJECT_KEY, keep="first", maintain_order=True)
        keys = _digests(rows)
        if rows.height < frame.height:
            self._refuse_conflicts(_digests(frame), keys)
        known = list(self._seen) if rows.height and self._touches_seen(rows) else []
        if self._overlaps(rows["revision"]):
            known.append(self._committed_keys(rows))
        self._remember(keys)
        if not known:
            return rows
        stored = pl.concat(known).unique(_OBJECT_KEY)
        self._refuse_conflicts(keys, stored)
        return rows.join(stored, on=_OBJECT_KEY, how="anti", maintain_order="left")

    def _touches_seen(self, rows: pl.DataFrame) -> bool:
        return int(rows["revision"].min()) <= self._seen_revision  # type: ignore[arg-type]

    def _remember(self, keys: pl.DataFrame) -> None:
        self._seen.append(keys)
        self._seen_revision = max(self._seen_revision, keys["revision"].max() or -1)  # type: ignore[assignment]

    def _committed_keys(self, rows: pl.DataFrame) -> pl.DataFrame:
        low, high = rows["revision"].min(), rows["revision"].max()
        return self._reader.collect(
            self._reader.scan("objects")
            .filter(pl.col("cluster") == self._cluster, pl.col("revision").is_between(low, high))
            .select(*_OBJECT_KEY, "encoding", "redacted", _DIGEST)
        )

    def _refuse_conflicts(self, keys: pl.DataFrame, stored: pl.DataFrame) -> None:
        both = keys.join(stored, on=_OBJECT_KEY, suffix="_stored")
        # Revision 0 is none: nothing says that two such states are of one moment. Another
        # encoding is another telling of the same change, etcd's bytes and the API's JSON, but
        # a write is no other telling of a delete.
        differs = pl.col("digest").ne_missing(pl.col("digest_stored"))
        encodings = pl.col("encoding"), pl.col("encoding_stored")
        alike = encodings[0].eq_missing(encodings[1])
        deleted = encodings[0].eq("none").or_(encodings[1].eq("none"))
        different = both.filter(differs, alike | deleted, pl.col("revision") > 0)
        if not different.height:
            return
        revision, key = different.row(0)[:2]
        if different["redacted"].ne_missing(different["redacted_stored"]).all():
            raise StoreError(
                f"revision {revision} of {key} is stored with another redaction "
                f"({different.height} such rows)",
                todo="collect with the --redact of the first time, or into another store",
            )
        raise ClusterMismatchError(
            f"revision {revision} of {key} has another value in the store "
            f"({different.height} such rows)",
            todo="it is another cluster or another history: give it its own --cluster name",
        )

    def _new_lines(self, frame: pl.DataFrame) -> pl.DataFrame:
        span = _SPAN.get(self._table)
        if not frame.height or self._stored_span is None:
            return frame
        if span is not None and not self._overlaps(frame[span]):
            return frame
        if self._equal is None:
            self._equal = self._committed_lines()
        digest = pl.struct(*_TOLD[self._table]).hash()
        rows = frame.with_columns(digest.alias("digest"))
        rows = rows.with_columns(pl.int_range(pl.len()).over("digest").alias("nth"))
        rows = rows.join(self._equal, on="digest", how="left", maintain_order="left")
        known = pl.col("nth") < pl.col("equal").fill_null(0)
        used = rows.filter(known).group_by("digest").agg(pl.len().alias("used"))
        self._equal = (
            self._equal.join(used, on="digest", how="left")
            .with_columns((pl.col("equal") - pl.col("used").fill_null(0)).alias("equal"))
            .drop("used")
        )
        return rows.filter(~known).drop("digest", "nth", "equal")

    def _committed_lines(self) -> pl.DataFrame:
        """Count equal stored records, a file at a time so that their text is not kept."""
        digest = pl.struct(*_TOLD[self._table]).hash().alias("digest")
        counts = [
            self._reader.collect(
                pl.scan_parquet(file, glob=False)
                .filter(pl.col("cluster") == self._cluster)
                .select(digest)
                .group_by("digest")
                .agg(pl.len().cast(pl.Int64).alias("equal"))
            )
            for file in self._reader.files(self._table)
        ]
        return pl.concat(counts).group_by("digest").agg(pl.col("equal").sum())


def _digests(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.select(*_OBJECT_KEY, "encoding", "redacted", _DIGEST)


def new_rows(known: pl.DataFrame, rows: pl.DataFrame, table: str) -> pl.DataFrame:
    """Return the rows of a small table that are not among the known ones."""
    keys: Sequence[str] = TABLES[table].order_by
    return rows.join(known, on=list(keys), how="anti", nulls_equal=True, maintain_order="left")
