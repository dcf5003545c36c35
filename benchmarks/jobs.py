"""What is timed, each job in a process of its own: ``python -m benchmarks.jobs JOB ARGUMENT...``.

A job imports all it needs, then starts the clock; it prints one line of JSON.
"""

from __future__ import annotations

import base64
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

__all__ = ["JOBS"]


@dataclass(slots=True)
class _Clock:
    """Seconds between entering and leaving ``_timed``."""

    seconds: float = 0.0


@contextmanager
def _timed() -> Iterator[_Clock]:
    clock = _Clock()
    start = time.perf_counter()
    yield clock
    clock.seconds = time.perf_counter() - start


def _collect(folder: str, *sources: str) -> dict[str, Any]:
    """Collect into a new store: files, commits and their fsync included."""
    import tracekit
    from tracekit.model.options import CollectOptions
    from tracekit.pipeline.collect import collect
    from tracekit.store import Store

    assert tracekit.__doc__
    with _timed() as clock:
        store = Store.create(Path(folder))
        records = sum(s.records for s in collect(store, sources, CollectOptions()))
    return {"seconds": clock.seconds, "count": records}


def _load_watch(source: str) -> dict[str, Any]:
    """Do the least that any reader of a watch recording must: JSON and base64."""
    import orjson

    events = 0
    with _timed() as clock, open(source, "rb") as lines:
        for line in lines:
            for event in orjson.loads(line).get("Events") or ():
                pair = event["kv"]
                base64.b64decode(pair["key"])
                base64.b64decode(pair.get("value", ""))
                events += 1
    return {"seconds": clock.seconds, "count": events}


def _replay(folder: str) -> dict[str, Any]:
    """Build every derived table of a collected store."""
    from tracekit.pipeline.replay import replay
    from tracekit.store import Store, StoreReader

    with _timed() as clock:
        store = Store(Path(folder))
        replay(store)
    changes = StoreReader(store).rows("objects").height
    return {"seconds": clock.seconds, "count": changes}


def _write_json(folder: str, target: str) -> dict[str, Any]:
    """Write every stored object state as a line of JSON, for ``load-json``."""
    import orjson

    from tracekit.decode import decode_value
    from tracekit.store import Store, StoreReader

    rows = StoreReader(Store(Path(folder))).rows("objects")
    states = 0
    with _timed() as clock, open(target, "wb") as sink:
        for value in rows["value"].drop_nulls():
            decoded = decode_value(value).object
            if decoded is not None:
                sink.write(orjson.dumps(decoded) + b"\n")
                states += 1
    return {"seconds": clock.seconds, "count": states}


def _load_json(source: str) -> dict[str, Any]:
    """Decode the same states, had they been JSON, and do nothing with them."""
    import orjson

    states = 0
    with _timed() as clock, open(source, "rb") as lines:
        for line in lines:
            orjson.loads(line)
            states += 1
    return {"seconds": clock.seconds, "count": states}


JOBS: Final[dict[str, Callable[..., dict[str, Any]]]] = {
    "collect": _collect,
    "load-watch": _load_watch,
    "replay": _replay,
    "write-json": _write_json,
    "load-json": _load_json,
}


def _peak_bytes() -> int:
    """Return the peak resident memory of this process, interpreter and libraries included.

    Not ``ru_maxrss``: Linux hands that down from the process that forked this one.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("no VmHWM in /proc/self/status")


if __name__ == "__main__":
    outcome = JOBS[sys.argv[1]](*sys.argv[2:])
    print(json.dumps(outcome | {"peak_bytes": _peak_bytes()}))
