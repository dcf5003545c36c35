"""Live etcd under fire: nothing lost, nothing doubled, and every true hole a gap."""

from __future__ import annotations

import random
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from itertools import chain, repeat
from pathlib import Path
from typing import Final

from tests.recordings import Recordings
from tests.sources.certificates import Authority, KeyPair
from tests.sources.conftest import StartServer, StartTls
from tests.sources.etcd_server import EtcdServer, Truth, Writer, recorded_writes
from tests.sources.follower import Follower, Record
from tests.sources.relay import Relay
from tracekit.model.live import (
    Connected,
    Disconnected,
    EtcdConfig,
    Events,
    ListDone,
    Listed,
    LiveStep,
    VanishedKey,
)
from tracekit.sources.etcd_follow import follow_etcd

_SLICE: Final = 100
_FAST, _SLOW = 2200, 300  # writes a second


class _Load:
    """Writes in the background: once fast, then slowly until the ``with`` block ends."""

    def __init__(self, writer: Writer, writes: list[tuple[str, bytes | None]]) -> None:
        self._writer, self._writes = writer, writes
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.pause = threading.Lock()
        self.last = 0

    def _run(self) -> None:
        for rate in chain([_FAST], repeat(_SLOW)):
            for start in range(0, len(self._writes), _SLICE):
                next_at = time.monotonic() + _SLICE / rate
                with self.pause:
                    self.last = max(self.last, self._write(start))
                if self._done.is_set() and self.last >= len(self._writes):
                    return
                time.sleep(max(0.001, next_at - time.monotonic()))

    def _write(self, start: int) -> int:
        return self._writer.write(self._writes[start : start + _SLICE])

    def __enter__(self) -> _Load:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


def _check_whole(record: Record, server: EtcdServer, last: int) -> None:
    listed = next(s.revision for s in record.steps if isinstance(s, ListDone))
    truth = server.history(last)
    assert {p.key: p.revision for p in record.pairs} == _state(truth, listed)
    assert record.truth() == [change for change in truth if change[0] > listed]
    assert record.gaps == []


def _state(truth: Truth, revision: int) -> dict[str, int]:
    state: dict[str, int] = {}
    for at, _, key, deleted, _ in truth:
        if at > revision:
            break
        state.pop(key, None)
        if not deleted:
            state[key] = at
    return state


def test_recording_written_back_through_50_cuts(
    start_tls: StartTls,
    authority: Authority,
    pair: KeyPair,
    each_binary: Path,
    recordings: Recordings,
) -> None:
    server, writer = start_tls(each_binary)
    relay = Relay(server.port)
    writes = recorded_writes(recordings("mid") / "etcd-watch.json", 8000)
    config = EtcdConfig(
        endpoints=(f"127.0.0.1:{relay.port}",),
        cacert=authority.cacert,
        cert=pair.cert,
        key=pair.key,
    )
    writer.put(*_a_put(writes))
    threads = threading.active_count()
    dice, cuts, seen = random.Random(7), 0, 0
    with Follower(config) as follower:
        with _Load(writer, writes) as load:
            while cuts < 50:
                follower.wait_for(seen + 1)
                seen = follower.record.resume or 0
                time.sleep(dice.uniform(0, 0.02))
                cuts += relay.cut() > 0
        follower.wait_for(load.last)
        assert threading.active_count() <= threads + 10, "each connection's threads end with it"
    assert follower.record.count(Disconnected) >= 50
    _check_whole(follower.record, server, load.last)
    relay.close()


def _a_put(writes: list[tuple[str, bytes | None]]) -> tuple[str, bytes]:
    return next((key, value) for key, value in writes if value is not None)


def _loses_writes(binary: Path) -> bool:
    """Tell whether a server must have a moment to commit before it is killed.

    etcd 3.5.0 to 3.5.2 lose a committed write when killed under load (etcd issue 13766; in
    about one of 30 kills here). No reader can be whole where the history is rewritten.
    """
    version = subprocess.run([binary, "--version"], capture_output=True, check=True).stdout
    return any(f"Version: 3.5.{patch}\n".encode() in version for patch in (0, 1, 2))


def test_recording_written_back_through_5_kills(
    start_server: StartServer, each_binary: Path, recordings: Recordings
) -> None:
    server = start_server(each_binary)
    writes = recorded_writes(recordings("seed") / "etcd-watch.json", 900)
    writer = Writer(f"127.0.0.1:{server.port}")
    writer.put(*_a_put(writes))
    is_careful = _loses_writes(each_binary)
    with Follower(EtcdConfig(endpoints=(server.url,))) as follower:
        with _Load(writer, writes) as load:
            for kills in range(1, 6):
                time.sleep(0.3)
                with load.pause if is_careful else nullcontext():
                    time.sleep(0.25 if is_careful else 0)
                    server.kill()
                    server.start()
                follower.wait(_has_connected(kills + 1), "a new connection")
        follower.wait_for(load.last)
    assert follower.record.count(Connected) == 6
    _check_whole(follower.record, server, load.last)
    writer.close()


def _has_connected(times: int) -> Callable[[Record], bool]:
    return lambda record: record.count(Connected) >= times


def test_resume_after_each_end_of_the_reader(server: EtcdServer, writer: Writer) -> None:
    writer.put("/registry/a", b"0")
    record = Record()
    writes: list[tuple[str, bytes | None]] = [
        (f"/registry/{i % 50}", b"v" * 99) for i in range(400)
    ]
    with _Load(writer, writes) as load:
        for _ in range(12):
            start = record.resume or 0
            with Follower(EtcdConfig(endpoints=(server.url,)), record) as follower:
                follower.wait_for(start + 1)
    with Follower(EtcdConfig(endpoints=(server.url,)), record) as follower:
        follower.wait_for(load.last)
    _check_whole(record, server, load.last)


def _churn(writer: Writer, seed: int, count: int) -> None:
    """Put, delete and make again a few hundred keys."""
    dice = random.Random(seed)
    writes: list[tuple[str, bytes | None]] = []
    for number in range(count):
        key = f"/registry/pods/{dice.randrange(300):03}"
        writes.append((key, None if dice.random() < 0.3 else f"{seed}-{number}".encode()))
    writer.write(writes)


def _expected_vanished(truth: Truth, hole: tuple[int, int]) -> set[tuple[str, int]]:
    """Return the keys, with their last revision on record, that were deleted in the hole."""
    known = _state(truth, hole[0] - 1)
    return {
        (key, known[key])
        for at, _, key, deleted, _ in truth
        if hole[0] <= at <= hole[1] and deleted and key in known
    }


def test_compaction_behind_the_reader(start_server: StartServer, each_binary: Path) -> None:
    server = start_server(each_binary)
    writer, relay = Writer(f"127.0.0.1:{server.port}"), Relay(server.port)
    _churn(writer, 1, 900)
    with Follower(EtcdConfig(endpoints=(relay.url,), from_revision=1)) as follower:
        follower.wait_for(writer.put("/registry/x", b"before"))
        before = follower.record.resume or 0
        relay.is_refusing = True
        relay.cut()
        _churn(writer, 2, 600)
        compacted = writer.transaction(("/registry/x", b"in"), ("/registry/pods/007", None))
        _churn(writer, 3, 300)
        last = writer.put("/registry/x", b"after")
        truth = server.history(last)
        writer.compact(compacted)
        relay.is_refusing = False
        follower.wait_for(last)
    record = follower.record
    assert record.gaps == [(before + 1, compacted)]
    assert record.truth() == [c for c in truth if not before < c[0] <= compacted]
    there = _state(truth, compacted)
    assert {p.key: p.revision for p in record.pairs} == {
        key: revision for key, revision in there.items() if revision > before
    }
    expected = _expected_vanished(truth, (before + 1, compacted))
    assert {(v.key, v.last_revision) for v in record.vanished} == expected
    assert len(record.vanished) == len(expected)
    assert all(_holds_a_delete(truth, v) for v in record.vanished)
    assert record.known == _state(truth, last)
    writer.close()
    relay.close()


def _holds_a_delete(truth: Truth, key: VanishedKey) -> bool:
    span = range(key.from_revision, key.to_revision + 1)
    return any(deleted and name == key.key and at in span for at, _, name, deleted, _ in truth)


def test_compaction_behind_a_list_that_fills_a_hole(server: EtcdServer, writer: Writer) -> None:
    _churn(writer, 1, 900)
    config = EtcdConfig(endpoints=(server.url,))
    with Follower(config) as follower:
        follower.wait(lambda r: r.resume is not None, "the list")
    record = follower.record
    before = record.resume or 0
    _churn(writer, 2, 600)
    first = writer.put("/registry/x", b"1")
    _churn(writer, 3, 300)
    second = writer.put("/registry/x", b"2")
    _churn(writer, 4, 300)
    last = writer.put("/registry/x", b"3")
    truth = server.history(last)
    writer.compact(first)
    pages: list[int] = []

    def compact_again(step: LiveStep) -> None:
        if isinstance(step, Listed):
            pages.append(step.revision)
            if len(pages) == 1:
                writer.compact(second)

    with Follower(config, record, before=compact_again) as follower:
        follower.wait_for(last)
    assert pages[0] == first
    assert set(pages[1:]) == {second}
    assert record.gaps == [(before + 1, first), (first + 1, second)]
    assert record.truth() == [c for c in truth if c[0] > second]
    assert record.known == _state(truth, last)


def test_compaction_behind_the_first_list_is_no_hole(server: EtcdServer, writer: Writer) -> None:
    _churn(writer, 1, 900)
    pages: list[int] = []

    def compact(step: LiveStep) -> None:
        if isinstance(step, Listed):
            pages.append(step.revision)
            if len(pages) == 1:
                writer.compact(writer.put("/registry/x", b"1"))

    with Follower(EtcdConfig(endpoints=(server.url,)), before=compact) as follower:
        follower.wait(lambda r: r.resume is not None, "the list")
    assert follower.record.gaps == []
    assert len(set(pages)) == 2
    assert follower.record.resume == pages[-1]


def test_first_revision_that_is_compacted(server: EtcdServer, writer: Writer) -> None:
    _churn(writer, 1, 300)
    compacted = writer.put("/registry/x", b"1")
    last = writer.put("/registry/x", b"2")
    truth = server.history(last)
    writer.compact(compacted)
    for wanted in (1, 50):
        config = EtcdConfig(endpoints=(server.url,), from_revision=wanted)
        with Follower(config) as follower:
            follower.wait_for(last)
        record = follower.record
        assert record.gaps == [(wanted, compacted)]
        assert record.vanished == []
        assert {p.key: p.revision for p in record.pairs} == _state(truth, compacted)
        assert record.truth() == [c for c in truth if c[0] > compacted]


def test_slow_consumer_stops_the_server_not_the_memory(server: EtcdServer, writer: Writer) -> None:
    value = random.Random(1).randbytes(50_000)
    for start in range(0, 4000, 20):
        writer.transaction(*((f"/registry/{n}", value) for n in range(start, start + 20)))
    last = writer.put("/registry/last", b"")
    stop, seen, sizes = threading.Event(), 0, []
    config = EtcdConfig(endpoints=(server.url,), from_revision=1, buffer_bytes=8 << 20)
    base = _resident_bytes()
    for step in follow_etcd(config, stop=stop):
        if isinstance(step, Events):
            seen += len(step.changes)
            sizes.append(_resident_bytes() - base)
            if len(sizes) < 8:
                time.sleep(0.25)
            if step.resume == last:
                stop.set()
    assert seen == 4001
    assert max(sizes) < 80 << 20, "200 MB waited in the server"


def _resident_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError
