"""One writer at a time: an advisory lock on a file of the store."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tracekit.errors import StoreError, StoreLockedError

__all__ = ["write_lock"]

_POLL_SECONDS = 0.05


@contextmanager
def write_lock(path: Path, wait_seconds: float = 0) -> Iterator[None]:
    """Hold a write lock; it ends with the process, however that ends.

    Args:
        path: File the lock is on.
        wait_seconds: How long to wait for another holder.

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
        _take(handle, path, time.monotonic() + wait_seconds)
        yield
    finally:
        os.close(handle)


def _take(handle: int, path: Path, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            if time.monotonic() >= deadline:
                raise StoreLockedError(
                    "another tracekit is writing to this store",
                    where=str(path.parent),
                    todo="wait until it ends, or use another --store",
                ) from error
        time.sleep(_POLL_SECONDS)
