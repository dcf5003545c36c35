"""One Delta table on the local disk: parts are written first, one commit adds them all.

The parts are ordinary parquet files, written beside each other by several threads. A
crash before the commit leaves files nobody refers to, never half a batch. delta-rs does
not fsync local files (facts: 0 fsync calls in a strace of three appends), so parts, the
commit and their folders are synced here: what a commit names first, the commit last.
"""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import orjson
import polars as pl
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.transaction import (
    AddAction,
    CommitProperties,
    Transaction,
    create_table_with_add_actions,
)

from tracekit.errors import StoreError
from tracekit.model.tables import Table
from tracekit.store.schema import conform, delta_schema

__all__ = ["DeltaFolder", "Part", "digest_of", "sync_folder"]

_KEPT_HOURS = 24
_STATISTICS = ("revision", "stamp_us")
_OS_ERROR = re.compile(r"\(os error (\d+)\)")  # how Rust's io::Error tells errno


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


def digest_of(content: bytes | memoryview) -> str:
    """Return what a part's name says of its content: the first half of its SHA-256."""
    return hashlib.sha256(content).hexdigest()[:32]


class DeltaFolder:
    """A Delta table in a folder, created when it is first written to."""

    def __init__(self, folder: Path, table: Table) -> None:
        self.folder, self.table = folder, table

    def exists(self) -> bool:
        """Tell whether anything was ever committed."""
        with self._reading():
            return self._log.is_dir() and DeltaTable.is_deltatable(self._uri)

    def files(self) -> list[str]:
        """Return the paths of the committed parquet files, sorted."""
        return [path for path, _ in self.parts()]

    def parts(self) -> list[tuple[str, int]]:
        """Return the committed files with the row counts they were committed with."""
        table = self._open()
        if table is None:
            return []
        actions = pl.DataFrame(table.get_add_actions(flatten=True))
        rows = zip(actions["path"].to_list(), actions["num_records"].to_list(), strict=True)
        return sorted((str(self.folder / path), count) for path, count in rows)

    def version(self) -> int:
        """Return the number of the last commit; -1 before the first."""
        table = self._open()
        return table.version() if table else -1

    def transaction(self, app_id: str) -> int | None:
        """Return the resume point committed with the rows of ``app_id``."""
        table = self._open()
        return table.transaction_version(app_id) if table else None

    def write_part(self, frame: pl.DataFrame) -> Part:
        """Write rows to a new parquet file, synced but not yet part of the table.

        Raises:
            StoreError: If the disk refuses (full, read-only, no permission).
        """
        frame = conform(frame, self.table)
        # Through memory, because polars' own writer hides what the disk refuses.
        content = BytesIO()
        frame.write_parquet(content, compression="zstd", compression_level=1)
        name = f"part-{uuid.uuid4().hex[:8]}-{digest_of(content.getbuffer())}.parquet"
        path = self.folder / name
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                file.write(content.getbuffer())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            self._remove(path)
            raise self._refused(error) from error
        minimum, maximum = _bounds(frame)
        return Part(name, content.getbuffer().nbytes, frame.height, minimum, maximum)

    def commit(
        self,
        parts: Sequence[Part],
        *,
        overwrite: bool = False,
        resume: tuple[str, int] | None = None,
    ) -> None:
        """Add parts to the table in one commit, with the resume point of their source.

        Raises:
            StoreError: If the disk refuses; the table is then as it was before, without
                the parts.
        """
        if not parts and not overwrite:
            return
        transactions = [Transaction(*resume)] if resume else None
        properties = CommitProperties(app_transactions=transactions)
        try:
            before = self._log_names()
            sync_folder(self.folder)
            table = self._open()
            if table is None:
                self._create([self._add(part) for part in parts], properties)
            else:
                table.create_write_transaction(
                    [self._add(part) for part in parts],
                    mode="overwrite" if overwrite else "append",
                    schema=delta_schema(self.table),
                    commit_properties=properties,
                )
            self._sync_log(before)
        except (OSError, DeltaError) as error:
            self._discard_uncommitted(parts)
            raise self._refused(error) from error

    def tidy(self) -> None:
        """Delete files that no commit of the last day refers to; readers may hold younger ones."""
        table = self._open()
        if table is not None:
            # What cannot be deleted now is deleted another time.
            with suppress(OSError, DeltaError):
                table.vacuum(_KEPT_HOURS, dry_run=False, enforce_retention_duration=False)

    def discard(self, parts: Sequence[Part]) -> None:
        """Delete parts that will not be committed."""
        for part in parts:
            self._remove(self.folder / part.name)

    def _discard_uncommitted(self, parts: Sequence[Part]) -> None:
        """Delete parts after a failed commit, which may have failed after it was visible."""
        with suppress(StoreError):
            committed = {Path(file).name for file in self.files()}
            self.discard([part for part in parts if part.name not in committed])

    @property
    def _uri(self) -> str:
        # Spaces and percent signs of a path reach the kernel only in a URI.
        return self.folder.absolute().as_uri()

    @property
    def _log(self) -> Path:
        return self.folder / "_delta_log"

    def _log_names(self) -> set[str]:
        return set(os.listdir(self._log)) if self._log.is_dir() else set()

    def _open(self) -> DeltaTable | None:
        if not self.exists():
            return None
        with self._reading():
            return DeltaTable(self._uri)

    def _create(self, adds: list[AddAction], properties: CommitProperties) -> None:
        """Make the table with its first rows: one commit, so there is no table without them."""
        create_table_with_add_actions(
            self._uri,
            delta_schema(self.table),
            adds,
            name=self.table.name,
            commit_properties=properties,
        )
        sync_folder(self.folder)
        sync_folder(self.folder.parent)

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

    def _sync_log(self, before: set[str]) -> None:
        """Sync what a commit wrote: itself, and now and then a checkpoint."""
        new = self._log_names() - before
        if any(".checkpoint" in name for name in new):
            new.add("_last_checkpoint")
        for name in sorted(new):
            _sync_file(self._log / name)
        sync_folder(self._log)

    def _remove(self, path: Path) -> None:
        # Nobody refers to it, so what cannot be removed does no harm.
        with suppress(OSError):
            path.unlink()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except (OSError, DeltaError) as error:
            raise StoreError(
                f"the table cannot be read ({_words(error)})",
                where=str(self.folder),
                todo="check its permissions; if its log is damaged, collect into a new store",
            ) from error

    def _refused(self, error: Exception) -> StoreError:
        return StoreError(
            f"cannot write ({_words(error)})",
            where=str(self.folder),
            todo="free space or choose another --store; what was committed before is intact",
        )


def _bounds(frame: pl.DataFrame) -> tuple[dict[str, int], dict[str, int]]:
    """Return the lowest and the highest value of each measured column that has one."""
    measured = frame.select(name for name in _STATISTICS if name in frame.columns)
    lowest, highest = (row.row(0, named=True) if row.width else {} for row in (
        measured.min(), measured.max(),
    ))  # fmt: skip
    return (
        {name: value for name, value in lowest.items() if value is not None},
        {name: value for name, value in highest.items() if value is not None},
    )


def _words(error: Exception) -> str:
    """Return what an error says in one line; Rust's come with colours and a backtrace."""
    told = _OS_ERROR.search(str(error))
    if told:
        return os.strerror(int(told[1]))
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return (str(error).splitlines() or [type(error).__name__])[0]
