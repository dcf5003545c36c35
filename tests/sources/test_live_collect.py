"""``tracekit collect --etcd`` against a real server: killed, ended, resumed, asked for holes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import orjson
import polars as pl
import pytest

import tracekit
from tests.recordings import Recordings
from tests.sources.etcd_server import EtcdServer, Truth, Writer, recorded_writes
from tracekit.store import Store, StoreReader

KILLS = 8


def _command(store: Path, server: EtcdServer, *more: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "tracekit",
        "collect",
        "--etcd",
        server.url,
        "--store",
        str(store),
        "-o",
        "json",
        *more,
    ]


def _start(store: Path, server: EtcdServer, *more: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        _command(store, server, *more), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def _rows(store: Path) -> pl.DataFrame:
    return StoreReader(Store(store)).rows("objects", "default")


def _history(store: Path) -> Truth:
    rows = _rows(store).select("revision", "sub", "key", "operation", "value")
    return [(r, s, k, o == "DELETE", v or b"") for r, s, k, o, v in rows.iter_rows()]


def _is_sound(store: Path) -> bool:
    findings = tracekit.open(store).verify()
    return not findings.filter(pl.col("severity") == "ERROR").height


def _until(store: Path, revision: int, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if (store / "tracekit.json").exists():
            highest = _rows(store)["revision"].max()
            if isinstance(highest, int) and highest >= revision:
                return
        time.sleep(0.2)
    pytest.fail(f"revision {revision} did not come")


def test_killed_at_random_it_goes_on_where_it_was(
    server: EtcdServer, writer: Writer, recordings: Recordings, tmp_path: Path
) -> None:
    store, dice = tmp_path / "store", random.Random(3)
    writes = recorded_writes(recordings("seed") / "etcd-watch.json", 900)
    share = len(writes) // KILLS + 1
    options = ("--from-revision", "2", "--redact", "none", "--flush", "0.2")
    last = 0
    for number in range(KILLS):
        collector = _start(store, server, *options)
        for key, value in writes[number * share : (number + 1) * share]:
            last = writer.delete(key) if value is None else writer.put(key, value)
        time.sleep(dice.uniform(0.8, 2.2))
        collector.kill()
        collector.communicate()
    _start(store, server, *options, "--duration", "4").communicate()
    mine, truth = _history(store), server.history(last)
    assert [c[:4] for c in mine] == [c[:4] for c in truth]
    assert mine == truth
    assert _is_sound(store)
    assert StoreReader(Store(store)).rows("gaps").height == 0


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_all_it_has(
    server: EtcdServer, writer: Writer, tmp_path: Path, sign: signal.Signals
) -> None:
    store = tmp_path / "store"
    writer.put("/registry/a", b"1")
    collector = _start(store, server)
    _until(store, 2)
    last = writer.put("/registry/b", b"2")
    time.sleep(1)
    os.kill(collector.pid, sign)
    out, err = collector.communicate(timeout=20)
    assert collector.returncode == 130, err
    (row,) = orjson.loads(out)
    assert (row["source"], row["format"]) == ("etcd:/registry", "etcd-live")
    assert _rows(store)["revision"].max() == last


def test_what_was_compacted_meanwhile_is_a_gap_and_vanished_keys_are_deletes(
    server: EtcdServer, writer: Writer, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    writer.put("/registry/stays", b"1")
    writer.put("/registry/goes", b"1")
    _start(store, server, "--duration", "2").communicate()
    writer.delete("/registry/goes")
    writer.put("/registry/new", b"1")
    hole = writer.put("/registry/stays", b"2")
    writer.compact(hole)
    last = writer.put("/registry/later", b"1")
    done = _start(store, server, "--duration", "3")
    _, err = done.communicate()
    assert done.returncode == 3, err
    (gap,) = StoreReader(Store(store)).rows("gaps").to_dicts()
    assert (gap["from_revision"], gap["to_revision"]) == (4, hole)
    rows = _rows(store)
    state = {
        row["key"]: row["operation"] for row in rows.sort("revision", "sub").iter_rows(named=True)
    }
    assert state == {
        "/registry/stays": "PUT",
        "/registry/goes": "DELETE",
        "/registry/new": "PUT",
        "/registry/later": "PUT",
    }
    assert rows["revision"].max() == last
    assert "DELETE_UNSEEN" in set(StoreReader(Store(store)).rows("diagnostics")["code"])


def test_two_collectors_of_one_cluster_do_not_run_at_once(
    server: EtcdServer, writer: Writer, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    last = writer.put("/registry/a", b"1")
    first = _start(store, server)
    _until(store, last)
    second = _start(store, server, "--duration", "2")
    _, err = second.communicate()
    assert second.returncode == 1
    assert b"another tracekit is writing" in err
    tracekit.open(store).replay()
    first.terminate()
    first.communicate()


def test_receive_times_bound_the_clock(server: EtcdServer, writer: Writer, tmp_path: Path) -> None:
    store = tmp_path / "store"
    writer.put("/registry/a", b"1")
    collector = _start(store, server)
    _until(store, 2)
    before = time.time()
    last = writer.put("/registry/b", b"2")
    _until(store, last)
    collector.terminate()
    collector.communicate()
    (received,) = _rows(store).filter(pl.col("revision") == last)["received_at"].to_list()
    assert before - 0.01 <= received.timestamp() <= time.time()


def test_another_server_is_refused(
    server: EtcdServer, writer: Writer, tmp_path: Path, start_server: object
) -> None:
    store = tmp_path / "store"
    writer.put("/registry/a", b"1")
    _start(store, server, "--duration", "2").communicate()
    other: EtcdServer = start_server()  # type: ignore[operator]
    foreign = Writer(other.url.removeprefix("http://"))
    foreign.put("/registry/a", b"other")
    foreign.close()
    done = _start(store, other, "--duration", "2")
    _, err = done.communicate()
    assert (done.returncode, err.count(b"Traceback")) == (1, 0)
