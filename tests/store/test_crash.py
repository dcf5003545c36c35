"""Whatever ends a collect, the store stays readable and the next collect completes it."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.recordings import ROOT
from tests.store.rows import write_log, write_watch
from tracekit.model.options import CollectOptions
from tracekit.pipeline.collect import collect
from tracekit.store import Store, StoreReader

_RAW = ("objects", "log_lines", "sources", "diagnostics", "gaps")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Give two streams that overlap, the second with a cut end, and a log."""
    folder = tmp_path_factory.mktemp("sources")
    one = write_watch(folder / "one.json", range(1, 400))
    two = write_watch(folder / "two.json", range(300, 700))
    log = write_log(folder / "kube-scheduler.log", range(1800))
    with two.open("ab") as sink:
        sink.write(b'{"Header":{"cluster_id":7,"member')
    return [str(one), str(two), str(log)]


def start(store: Path, sources: list[str], **environment: int) -> subprocess.Popen[str]:
    """Start a collect in a process of its own; return when it is about to begin."""
    words = {name: str(value) for name, value in environment.items()}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.store.collecting", str(store), *sources],
        stdout=subprocess.PIPE, text=True, cwd=ROOT, env=os.environ | words,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def content(store: Store) -> dict[str, Counter[tuple[object, ...]]]:
    """Return all rows of the raw tables; counts of ``sources`` tell how often it was tried."""
    reader = StoreReader(store)
    frames = {name: reader.rows(name) for name in _RAW}
    frames["sources"] = frames["sources"].drop("stored", "duplicates")
    return {name: Counter(frame.rows()) for name, frame in frames.items()}


@pytest.fixture(scope="module")
def whole(sources: list[str], tmp_path_factory: pytest.TempPathFactory) -> Store:
    store = Store.create(tmp_path_factory.mktemp("whole") / "store")
    assert [s.stored for s in collect(store, sources, CollectOptions())] == [399, 300, 1800]
    return store


def check(folder: Path, sources: list[str], whole: Store) -> None:
    """Check that a store holds whole commits, and all rows once after another collect."""
    expected = content(whole)
    if (folder / "tracekit.json").exists():
        found = content(Store(folder))
        # 399 of the first stream, 300 new ones of the second; 1800 records of the log.
        assert found["objects"].total() in (0, 399, 699)
        assert found["log_lines"].total() in (0, 1800)
        for name in _RAW:
            assert found[name] <= expected[name]
    list(collect(Store.create(folder), sources, CollectOptions()))
    assert content(Store(folder)) == expected


def test_killed_at_each_sync(sources: list[str], whole: Store, tmp_path: Path) -> None:
    with start(tmp_path / "store", sources, DIE_AT_FSYNCS=1) as process:
        assert process.stdout is not None
        assert process.stdout.read() == "done\n"
    folders = sorted(tmp_path.iterdir())
    # Key, version and folder of the store; then parts, commit and folders of five tables.
    assert len(folders) > 20
    for folder in folders:
        check(folder, sources, whole)


def test_killed_at_any_moment(sources: list[str], whole: Store, tmp_path: Path) -> None:
    with start(tmp_path / "timed", sources) as process:
        begun = time.monotonic()
        assert process.stdout is not None
        assert process.stdout.readline() == "done\n"
    lasted = time.monotonic() - begun
    chance = random.Random(7)
    for place in range(8):
        folder = tmp_path / f"store-{place}"
        with start(folder, sources) as process:
            time.sleep(chance.uniform(0, lasted))
            process.kill()
        check(folder, sources, whole)


@pytest.mark.parametrize("size", [0, 1_000, 20_000])
def test_a_disk_that_is_full(sources: list[str], whole: Store, tmp_path: Path, size: int) -> None:
    folder = tmp_path / "store"
    list(collect(Store.create(folder), sources[:1], CollectOptions()))
    before = content(Store(folder))
    bigger = write_watch(tmp_path / "big.json", range(2000, 2600), size=4_000)
    with start(folder, [str(bigger)], FILE_BYTES=size) as process:
        assert process.stdout is not None
        told = process.stdout.read().splitlines()
    assert len(told) == 1
    assert told[0].startswith("StoreError ")
    assert "File too large" in told[0]
    assert content(Store(folder)) == before
    check(folder, sources, whole)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a small disk")
def test_a_small_disk_that_runs_full(sources: list[str], tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("no right to mount here")
    try:
        folder = disk / "store"
        list(collect(Store.create(folder), sources[:1], CollectOptions()))
        before = content(Store(folder))
        files = sorted(disk.rglob("*"))
        bigger = write_watch(tmp_path / "big.json", range(2000, 2600), size=4_000)
        with start(folder, [str(bigger)]) as process:
            assert process.stdout is not None
            told = process.stdout.read().splitlines()
        assert len(told) == 1
        assert told[0].startswith("StoreError ")
        assert "No space left on device" in told[0]
        assert content(Store(folder)) == before
        assert sorted(disk.rglob("*")) == files
    finally:
        subprocess.run(["umount", str(disk)], check=True)
