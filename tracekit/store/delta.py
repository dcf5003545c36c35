"""One Delta table on the local disk: parts are written first, one commit adds them all.

The parts are ordinary parquet files, written beside each other by several threads. A
crash before the commit leaves files nobody refers to, never half a batch. delta-rs does
not fsync local files (facts: 0 fsync calls in a strace of three appends), so parts, the
commit and their folders are synced here.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson
import polars as pl
from deltalake import DeltaTable
from deltalake.transaction import AddAction, CommitProperties, Transaction

from tracekit.errors import StoreError
from tracekit.model.tables import Table
from tracekit.store.schema import conform, delta_schema

__all__ = ["DeltaFolder", "Part", "sync_folder"]

_STATISTICS = ("revision", "stamp_us")


@dataclass(frozen=True, slots=True)
class Part:
    """One parquet file that waits for its commit."""

    name: str
    size_bytes: int
    rows: int
    minimum: dict[str, int]
    maximum: dict[str, int]


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _sync_file(path: Path) -> None:
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class DeltaFolder:
    """A Delta table in a folder, created when it is first written to."""

    def __init__(self, folder: Path, table: Table) -> None:
        self.folder, self.table = folder, table

    def exists(self) -> bool:
        """Tell whether anything was ever committed."""
        return (self.folder / "_delta_log").is_dir() and DeltaTable.is_deltatable(str(self.folder))

    def files(self) -> list[str]:
        """Return the paths of the committed parquet files, sorted."""
        return sorted(DeltaTable(self.folder).file_uris()) if self.exists() else []

    def parts(self) -> list[tuple[str, int]]:
        """Return the committed files with the row counts they were committed with."""
        if not self.exists():
            return []
        actions = pl.DataFrame(DeltaTable(self.folder).get_add_actions(flatten=True))
        rows = zip(actions["path"].to_list(), actions["num_records"].to_list(), strict=True)
        return sorted((str(self.folder / path), count) for path, count in rows)

    def version(self) -> int:
        """Return the number of the last commit; -1 before the first."""
        return DeltaTable(self.folder).version() if self.exists() else -1

    def transaction(self, app_id: str) -> int | None:
        """Return the resume point committed with the rows of ``app_id``."""
        return DeltaTable(self.folder).transaction_version(app_id) if self.exists() else None

    def write_part(self, frame: pl.DataFrame) -> Part:
        """Write rows to a new parquet file, synced but not yet part of the table.

        Raises:
            StoreError: If the disk refuses (full, read-only, no permission).
        """
        name = f"part-{uuid.uuid4().hex}.parquet"
        path = self.folder / name
        frame = conform(frame, self.table)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            frame.write_parquet(path, compression="zstd", compression_level=1)
            _sync_file(path)
            size = path.stat().st_size
        except (OSError, pl.exceptions.ComputeError) as error:
            path.unlink(missing_ok=True)
            raise self._refused(error) from error
        measured = [c for c in _STATISTICS if c in frame.columns]
        bounds = frame.select(
            *(pl.col(c).min().alias(f"min_{c}") for c in measured),
            *(pl.col(c).max().alias(f"max_{c}") for c in measured),
        ).row(0, named=True) if measured else {}
        return Part(
            name=name,
            size_bytes=size,
            rows=frame.height,
            minimum={c: bounds[f"min_{c}"] for c in measured if bounds[f"min_{c}"] is not None},
            maximum={c: bounds[f"max_{c}"] for c in measured if bounds[f"max_{c}"] is not None},
        )

    def commit(
        self, parts: Sequence[Part], *, overwrite: bool = False, resume: tuple[str, int] | None = None
    ) -> None:
        """Add parts to the table in one commit, with the resume point of their source.

        Raises:
            StoreError: If the disk refuses; the table is then as it was before.
        """
        if not parts and not overwrite:
            return
        transactions = [Transaction(*resume)] if resume else None
        try:
            self._ensure()
            DeltaTable(self.folder).create_write_transaction(
                [self._add(part) for part in parts],
                mode="overwrite" if overwrite else "append",
                schema=delta_schema(self.table),
                commit_properties=CommitProperties(app_transactions=transactions),
            )
            self._sync_log()
        except OSError as error:
            raise self._refused(error) from error

    def discard(self, parts: Sequence[Part]) -> None:
        """Delete parts that will not be committed."""
        for part in parts:
            (self.folder / part.name).unlink(missing_ok=True)

    def _ensure(self) -> None:
        if not self.exists():
            self.folder.mkdir(parents=True, exist_ok=True)
            DeltaTable.create(self.folder, schema=delta_schema(self.table), name=self.table.name)

    def _add(self, part: Part) -> AddAction:
        path = self.folder / part.name
        statistics = {
            "numRecords": part.rows,
            "minValues": part.minimum,
            "maxValues": part.maximum,
            "nullCount": {},
        }
        modified_ms = int(path.stat().st_mtime * 1000)
        return AddAction(
            part.name, part.size_bytes, {}, modified_ms, True, orjson.dumps(statistics).decode()
        )

    def _sync_log(self) -> None:
        log = self.folder / "_delta_log"
        newest = max(log.glob("*.json"))
        _sync_file(newest)
        sync_folder(log)
        sync_folder(self.folder)

    def _refused(self, error: Exception) -> StoreError:
        return StoreError(
            f"cannot write ({getattr(error, 'strerror', None) or error})",
            where=str(self.folder),
            todo="free space or choose another --store; what was committed before is intact",
        )
