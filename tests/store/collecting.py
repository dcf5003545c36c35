"""A process of its own that collects, to be killed or starved.

``python -m tests.store.collecting STORE SOURCE...`` prints ``ready`` when all is imported, then
``done`` or the error's type and text. Environment: ``FILE_BYTES=N`` lets no file grow longer
than that. ``DIE_AT_FSYNCS=1`` collects again and again into ``STORE-1``, ``STORE-2``, …, the
N-th time killed at the N-th fsync, before that has happened, until it is not reached.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from pathlib import Path

from tracekit.errors import TracekitError
from tracekit.model.options import CollectOptions
from tracekit.pipeline.collect import collect
from tracekit.store import Store

__all__: list[str] = []


def _die_at(count: int) -> None:
    real, calls = os.fsync, 0

    def fsync(handle: int) -> None:
        nonlocal calls
        calls += 1
        if calls == count:
            os.kill(os.getpid(), signal.SIGKILL)
        real(handle)

    os.fsync = fsync  # type: ignore[assignment]


def _collect(folder: str, sources: list[str]) -> None:
    try:
        for _ in collect(Store.create(Path(folder)), sources, CollectOptions()):
            pass
    except TracekitError as error:
        _say(type(error).__name__, str(error))
    else:
        _say("done")


def _collect_until_done(folder: str, sources: list[str]) -> None:
    """Fork for each time: the imports, which take the longest, are there already."""
    for count in range(1, 1000):
        if not (child := os.fork()):
            _die_at(count)
            _collect(f"{folder}-{count}", sources)
            os._exit(0)
        if os.waitpid(child, 0)[1] == 0:
            break


def _say(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


def _main(folder: str, *sources: str) -> None:
    _say("ready")
    if size := os.environ.get("FILE_BYTES"):
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(size), resource.RLIM_INFINITY))
    run = _collect_until_done if "DIE_AT_FSYNCS" in os.environ else _collect
    run(folder, list(sources))


if __name__ == "__main__":
    _main(*sys.argv[1:])
