"""Stores of the recordings, built once a run and shared by all workers."""

from __future__ import annotations

import fcntl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import polars as pl

import tracekit
from tests.recordings import Recording, Recordings
from tracekit.model.options import CollectOptions
from tracekit.pipeline.trace import Trace

__all__ = ["LOG", "PUBLIC_QUERIES", "STREAM", "Replayed", "Shelf", "Stores", "build"]

STREAM: Final = "etcd-watch.json"
LOG: Final = "kube-scheduler.log"
PUBLIC_QUERIES: Final = tuple(
    name for name, query in Trace("unused").queries.queries.items() if not query.private
)


@dataclass(frozen=True, slots=True)
class Replayed:
    """A recording and a store of it; each query is run once a worker."""

    recording: Recording
    trace: Trace
    _frames: dict[str, pl.DataFrame] = field(default_factory=dict)

    def query(self, name: str) -> pl.DataFrame:
        if name not in self._frames:
            self._frames[name] = self.trace.query(name)
        return self._frames[name]

    def rows(self, name: str, **equal: Any) -> list[dict[str, Any]]:
        """Return the rows of a query whose columns have the given values."""
        wanted = [pl.col(column) == value for column, value in equal.items()]
        return self.query(name).filter(wanted).to_dicts()


Stores = Callable[..., Replayed]


def build(
    folder: Path,
    sources: Sequence[Path],
    options: CollectOptions | None = None,
    *,
    replay: bool = True,
) -> Trace:
    """Collect the sources in their order into a store and replay it."""
    trace = tracekit.open(folder)
    for summary in trace.collect(*sources, options=options):
        assert not summary.data_lost, summary
    if replay:
        trace.replay()
    return trace


@dataclass(frozen=True, slots=True)
class Shelf:
    """Where this run keeps its stores; what an earlier run built tells nothing of today's code."""

    folder: Path
    recordings: Recordings
    _open: dict[tuple[str, bool], Replayed] = field(default_factory=dict)

    def store(self, name: str, *, log: bool = False) -> Replayed:
        """Return a replayed store of the stream, or of stream and scheduler log."""
        if (name, log) not in self._open:
            recording = self.recordings(name)
            self._open[name, log] = Replayed(recording, self._shared(name, recording, log))
        return self._open[name, log]

    def _shared(self, name: str, recording: Recording, log: bool) -> Trace:
        place = self.folder / (f"{name}-with-log" if log else name)
        self.folder.mkdir(parents=True, exist_ok=True)
        with place.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            done = place.with_suffix(".done")
            if not done.exists():
                build(place, [recording / file for file in (STREAM, LOG)[: 1 + log]])
                done.touch()
        return tracekit.open(place)
