"""One writer at a time: an advisory lock on a file of the store."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tracekit.errors import StoreLockedError

__all__ = ["write_lock"]


@contextmanager
def write_lock(path: Path) -> Iterator[None]:
    """Hold the store's write lock; it ends with the process, however that ends.

    Raises:
        StoreLockedError: If another process holds it.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
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
