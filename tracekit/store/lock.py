"""One writer at a time: an advisory lock on a file of the store."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tracekit.errors import StoreError, StoreLockedError

__all__ = ["write_lock"]


@contextmanager
def write_lock(path: Path) -> Iterator[None]:
    """Hold the store's write lock; it ends with the process, however that ends.

    Raises:
        StoreLockedError: If another process holds it.
        StoreError: If the lock's file cannot be opened for writing.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StoreError(
            f"the store cannot be written to ({error.strerror})",
            where=str(path.parent),
            todo="check its permissions, or choose another --store",
        ) from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StoreLockedError(
                "another tracekit is writing to this store",
                where=str(path.parent),
                todo="wait until it ends, or use another --store",
            ) from error
        yield
    finally:
        os.close(handle)
