"""The folder of a store: its schema version, its redaction key, its tables and its lock."""

from __future__ import annotations

import hashlib
import os
import re
import secrets
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import orjson
import polars as pl

from tracekit.errors import SchemaVersionError, StoreError
from tracekit.model.tables import SCHEMA_VERSION, TABLES
from tracekit.store.delta import DeltaFolder, sync_folder
from tracekit.store.lock import write_lock
from tracekit.store.schema import polars_schema

__all__ = ["Store"]

_META = "tracekit.json"
_KEY = "redaction.key"
_PARTIAL = ".part"
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")


class Store:
    """A store on disk.

    Args:
        folder: Where the store is; made by ``create`` when missing.

    Raises:
        StoreError: If the folder is something else, or cannot be read.
        SchemaVersionError: If another schema version wrote it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._check()

    @classmethod
    def create(cls, folder: Path) -> Store:
        """Open a store, making it when the folder is missing or empty.

        Raises:
            StoreError: If there is something else in the folder, or it cannot be made.
        """
        if _ESCAPE.search(str(folder.absolute())):
            raise StoreError(
                "a store's path cannot have % and two hex digits in it, Delta takes them for one "
                "escaped character",
                where=str(folder),
                todo="choose another place with --store",
            )
        try:
            if not (folder / _META).exists():
                _make(folder)
        except OSError as error:
            raise StoreError(
                f"cannot make the store ({error.strerror})",
                where=str(folder),
                todo="choose another place with --store",
            ) from error
        return cls(folder)

    def _check(self) -> None:
        try:
            text = (self.folder / _META).read_bytes()
            version = orjson.loads(text)["schema_version"]
        except FileNotFoundError as error:
            raise StoreError(
                "there is no store here",
                where=str(self.folder),
                todo="run tracekit collect first, or name the store with --store",
            ) from error
        except (OSError, KeyError, TypeError, orjson.JSONDecodeError) as error:
            raise StoreError(
                f"the store cannot be read ({error})",
                where=str(self.folder / _META),
                todo="check the path and its permissions",
            ) from error
        if version != SCHEMA_VERSION:
            raise SchemaVersionError(
                f"the store has schema version {version}, this tracekit writes {SCHEMA_VERSION}",
                where=str(self.folder),
                todo="collect again into a new store, or use the tracekit that wrote it",
            )

    def redaction_key(self) -> bytes:
        """Return the secret that keys the hashes of redacted payloads."""
        try:
            return (self.folder / _KEY).read_bytes()
        except OSError as error:
            raise StoreError(
                f"the redaction key cannot be read ({error.strerror})",
                where=str(self.folder / _KEY),
                todo="run as the user who made the store",
            ) from error

    def lock(self, wait_seconds: float = 0) -> AbstractContextManager[None]:
        """Hold the store for writing, waiting for another writer so long.

        Raises:
            StoreLockedError: On entering, if another process holds it.
            StoreError: On entering, if the lock cannot be made.
        """
        return write_lock(self.folder / "lock", wait_seconds)

    def collector_lock(self, cluster: str) -> AbstractContextManager[None]:
        """Be the one live collector of a cluster; others may write to the store between.

        Raises:
            StoreLockedError: On entering, if there is one already.
            StoreError: On entering, if the lock cannot be made.
        """
        digest = hashlib.sha256(cluster.encode()).hexdigest()[:16]
        return write_lock(self.folder / f"collector-{digest}.lock")

    def table(self, name: str) -> DeltaFolder:
        """Return one table by its name in ``model.tables``."""
        return DeltaFolder(self.folder / name, TABLES[name])

    def versions(self, names: Sequence[str]) -> dict[str, int]:
        """Return the last commit number of each table, -1 where nothing was committed."""
        return {name: self.table(name).version() for name in names}

    def replace(self, name: str, frame: pl.DataFrame) -> None:
        """Replace all rows of a table in one commit, sorted by the table's total order."""
        folder = self.table(name)
        order = list(TABLES[name].order_by)
        rows = _complete(frame, name).sort(order, nulls_last=True)
        folder.commit([folder.write_part(rows)], overwrite=True)
        folder.tidy()


def _complete(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    return frame if frame.width else pl.DataFrame(schema=polars_schema(TABLES[name]))


def _make(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    # What an interrupted start left behind is no stranger.
    if {path.name.removesuffix(_PARTIAL) for path in folder.iterdir()} - {_KEY, _META}:
        raise StoreError(
            "there is no store here, and the folder is not empty",
            where=str(folder),
            todo="name a new or an empty folder with --store",
        )
    _write_new(folder / _KEY, secrets.token_bytes(32), 0o600)
    _write_new(folder / _META, orjson.dumps({"schema_version": SCHEMA_VERSION}), 0o644)
    sync_folder(folder)
    sync_folder(folder.parent)


def _write_new(path: Path, content: bytes, mode: int) -> None:
    partial = path.with_name(path.name + _PARTIAL)
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
