"""A consumer of live steps as the pipeline is one: it stores, commits and can be stopped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final

import pytest

from tests.sources.etcd_server import Truth
from tracekit.errors import TracekitError
from tracekit.model.live import (
    Change,
    Compacted,
    Connected,
    Disconnected,
    EtcdConfig,
    Events,
    Listed,
    LiveStep,
    Pair,
    ResumePoint,
    Vanished,
    VanishedKey,
)
from tracekit.sources.etcd_follow import follow_etcd

__all__ = ["Follower", "Record"]

_PATIENCE_SECONDS: Final = 40.0


@dataclass(slots=True)
class Record:
    """What was handed on, and where it ends."""

    changes: list[Change] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    vanished: list[VanishedKey] = field(default_factory=list)
    gaps: list[tuple[int, int]] = field(default_factory=list)
    known: dict[str, int] = field(default_factory=dict)
    steps: list[LiveStep] = field(default_factory=list)
    resume: int | None = None

    def take(self, step: LiveStep) -> None:
        """Store a step."""
        match step:
            case Events(changes):
                self.changes += changes
                self._learn(changes)
            case Listed(_, pairs):
                self.pairs += pairs
                self.known |= {pair.key: pair.revision for pair in pairs}
            case Vanished(_, keys):
                self.vanished += keys
                gone = {(key.key, key.last_revision) for key in keys}
                self.known = {k: r for k, r in self.known.items() if (k, r) not in gone}
            case Compacted(first, last):
                self.gaps.append((first, last))
            case _:
                pass
        if not isinstance(step, Events | Listed):
            self.steps.append(step)
        if step.resume is not None:
            assert self.resume is None or step.resume >= self.resume
            self.resume = step.resume

    def _learn(self, changes: tuple[Change, ...]) -> None:
        for change in changes:
            self.known.pop(change.key, None)
            if not change.deleted:
                self.known[change.key] = change.revision

    def point(self) -> ResumePoint:
        """Return where to go on."""
        return ResumePoint(revision=self.resume, known=lambda: dict(self.known))

    def truth(self) -> Truth:
        """Return the changes as the server's history has them."""
        return [(c.revision, c.sub, c.key, c.deleted, c.value) for c in self.changes]

    def count(self, kind: type[Connected | Disconnected]) -> int:
        """Count the steps of a kind."""
        return sum(isinstance(s, kind) for s in self.steps)


class Follower:
    """Follows in a thread of its own until the ``with`` block ends."""

    def __init__(
        self,
        config: EtcdConfig,
        record: Record | None = None,
        *,
        resume: ResumePoint | None = None,
        before: Callable[[LiveStep], None] | None = None,
    ) -> None:
        self.record = record or Record()
        self._config, self._before = config, before
        self._resume = resume or self.record.point()
        self._stop = threading.Event()
        self.error: TracekitError | None = None
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            for step in follow_etcd(self._config, self._resume, self._stop):
                if self._before is not None:
                    self._before(step)
                self.record.take(step)
        except TracekitError as error:
            self.error = error

    def __enter__(self) -> Follower:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join(10)
        assert not self._thread.is_alive()

    def wait(self, what: Callable[[Record], bool], meaning: str) -> None:
        """Wait until something holds for the record."""
        until = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < until:
            if what(self.record):
                return
            if self.error is not None:
                raise self.error
            time.sleep(0.01)
        pytest.fail(f"not in {_PATIENCE_SECONDS} s: {meaning}; stands at {self.record.resume}")

    def wait_for(self, revision: int) -> None:
        """Wait until the record is whole up to a revision."""
        self.wait(lambda r: (r.resume or 0) >= revision, f"revision {revision}")

    def wait_for_error(self) -> TracekitError:
        """Wait until it gives up and return why."""
        self._thread.join(_PATIENCE_SECONDS)
        assert self.error is not None, "it did not give up"
        return self.error
