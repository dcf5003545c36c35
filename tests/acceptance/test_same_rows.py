"""The same record gives the same rows, however it arrives and is replayed (rows 6 and 7)."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import polars as pl
import pytest
import zstandard
from click.testing import CliRunner

from tests.acceptance.stores import LOG, PUBLIC_QUERIES, STREAM, Stores, build
from tests.recordings import Recording
from tracekit.cli.main import tracekit as command
from tracekit.pipeline.trace import Trace
from tracekit.pipeline.views import query_runner
from tracekit.store import Store, StoreReader

Pack = Callable[[bytes], bytes]
PLACES = ("source", "record_no")
VALUES = ("value", "prev_value")
PACKERS: dict[str, Pack] = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
    ".zst": zstandard.compress,
}


def answers(trace: Trace) -> dict[str, pl.DataFrame]:
    """Answer every public query; where a log record was read from may differ."""
    runner = query_runner(Store(trace.folder))
    frames = {name: runner.run(name) for name in PUBLIC_QUERIES}
    # Without their places records of one time have no order.
    frames["log_records"] = frames["log_records"].drop(PLACES).sort("at", "raw")
    return frames


@cache
def expected_answers(folder: Path) -> dict[str, pl.DataFrame]:
    return answers(Trace(folder))


def same_rows(told: Trace, expected: Trace) -> None:
    frames = expected_answers(expected.folder)
    different = [name for name, mine in answers(told).items() if not mine.equals(frames[name])]
    assert different == []


def cut(content: bytes, *starts: int) -> list[bytes]:
    """Cut before the given bytes."""
    ends = (*starts[1:], len(content))
    return [content[: starts[0]], *(content[a:b] for a, b in zip(starts, ends, strict=True))]


def line_starts(content: bytes, lines: Sequence[int]) -> list[int]:
    """Return where the lines with these numbers (from 0) start."""
    wanted, found, at = set(lines), [], 0
    for number, line in enumerate(content.splitlines(keepends=True)):
        if number in wanted:
            found.append(at)
        at += len(line)
    return found


def inside_records(log: bytes) -> list[int]:
    """Return the numbers of all lines that continue a record of several lines."""
    return [n for n, line in enumerate(log.splitlines()) if line[:1] not in b"IWEF"]


def write(folder: Path, name: str, pieces: Sequence[bytes], suffixes: Sequence[str]) -> list[Path]:
    folder.mkdir(exist_ok=True)
    paths = []
    for number, (piece, suffix) in enumerate(zip(pieces, suffixes, strict=True)):
        path = folder / f"{name}.{number}{suffix}"
        path.write_bytes(PACKERS[suffix](piece))
        paths.append(path)
    return paths


@pytest.fixture
def seed(stores: Stores) -> Recording:
    return stores("seed").recording


@pytest.fixture
def whole(stores: Stores) -> Trace:
    return stores("seed", log=True).trace


@pytest.mark.parametrize(
    ("name", "log"), [("seed", True), ("mid", True), ("wide", False), ("json", False)]
)
def test_collecting_twice_adds_nothing(
    name: str, log: bool, stores: Stores, tmp_path: Path
) -> None:
    store = stores(name, log=log)
    copy = tmp_path / "store"
    shutil.copytree(store.trace.folder, copy)
    trace = Trace(copy)
    sources = [store.recording / file for file in (STREAM, LOG)[: 1 + log]]
    for summary in trace.collect(*sources):
        assert summary.records == summary.duplicates > 0
        assert summary.stored == 0
    # Nothing to replay either, so no query can differ.
    assert trace.is_replayed
    assert not trace.replay().fresh


def test_rows_are_the_same_after_collecting_and_replaying_twice(
    seed: Recording, whole: Trace, tmp_path: Path
) -> None:
    sources = [seed / STREAM, seed / LOG]
    trace = build(tmp_path / "store", [*sources, *sources])
    trace.replay()
    same_rows(trace, whole)


def test_log_may_come_before_the_stream(seed: Recording, whole: Trace, tmp_path: Path) -> None:
    same_rows(build(tmp_path / "store", [seed / LOG, seed / STREAM]), whole)


def test_replay_between_two_collections_changes_nothing(
    seed: Recording, whole: Trace, tmp_path: Path
) -> None:
    build(tmp_path / "store", [seed / STREAM])
    same_rows(build(tmp_path / "store", [seed / LOG]), whole)


@pytest.mark.parametrize(
    ("order", "suffixes"),
    [
        ((0, 1, 2), ("", "", "")),
        ((2, 1, 0), (".gz", ".xz", ".bz2")),
        ((1, 2, 0), (".zst", "", ".gz")),
    ],
)
def test_stream_in_pieces(
    order: tuple[int, ...],
    suffixes: tuple[str, ...],
    stores: Stores,
    tmp_path: Path,
) -> None:
    store = stores("seed")
    content = (store.recording / STREAM).read_bytes()
    pieces = cut(content, *line_starts(content, (317, 700)))
    paths = write(tmp_path / "pieces", STREAM, pieces, suffixes)
    same_rows(build(tmp_path / "store", [paths[i] for i in order]), store.trace)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_stream_in_pieces_that_overlap(
    order: tuple[int, ...], stores: Stores, tmp_path: Path
) -> None:
    store = stores("seed")
    content = (store.recording / STREAM).read_bytes()
    lines = content.splitlines(keepends=True)
    pieces = [b"".join(lines[a:b]) for a, b in ((0, 500), (300, 800), (650, len(lines)))]
    paths = write(tmp_path / "pieces", STREAM, pieces, ("", ".gz", ""))
    same_rows(build(tmp_path / "store", [paths[i] for i in order]), store.trace)


def test_stream_in_pieces_collected_one_by_one(stores: Stores, tmp_path: Path) -> None:
    store = stores("seed")
    content = (store.recording / STREAM).read_bytes()
    pieces = cut(content, *line_starts(content, (1, 961)))
    for path in write(tmp_path / "pieces", STREAM, pieces, ("", "", "")):
        build(tmp_path / "store", [path])
    same_rows(Trace(tmp_path / "store"), store.trace)


@pytest.mark.parametrize("suffixes", [("",) * 4, (".gz", ".xz", ".bz2", ".zst")])
def test_log_in_pieces_cut_between_records(
    suffixes: tuple[str, ...], seed: Recording, whole: Trace, tmp_path: Path
) -> None:
    content = (seed / LOG).read_bytes()
    continued = set(inside_records(content))
    lines = [
        next(n for n in range(start, 99_999) if n not in continued) for start in (7, 1500, 4000)
    ]
    pieces = cut(content, *line_starts(content, lines))
    paths = write(tmp_path / "pieces", LOG, pieces, suffixes)
    # In another order too: each piece stands alone.
    order = [paths[2], paths[0], seed / STREAM, paths[3], paths[1]]
    same_rows(build(tmp_path / "store", order), whole)


@pytest.mark.parametrize("suffixes", [("",) * 4, (".gz", ".xz", ".bz2", ".zst")])
def test_log_in_pieces_cut_inside_records(
    suffixes: tuple[str, ...], seed: Recording, whole: Trace, tmp_path: Path
) -> None:
    content = (seed / LOG).read_bytes()
    continued = inside_records(content)
    lines = [continued[len(continued) * share // 10] for share in (2, 5, 9)]
    pieces = cut(content, *line_starts(content, lines))
    paths = write(tmp_path / "pieces", LOG, pieces, suffixes)
    same_rows(build(tmp_path / "store", [seed / STREAM, *paths]), whole)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_log_in_pieces_that_overlap(
    order: tuple[int, ...], seed: Recording, whole: Trace, tmp_path: Path
) -> None:
    content = (seed / LOG).read_bytes()
    lines = content.splitlines(keepends=True)
    continued = set(inside_records(content))
    starts = [n for n in range(len(lines)) if n not in continued]
    a, b, c, d = (starts[len(starts) * share // 10] for share in (3, 4, 6, 8))
    pieces = [b"".join(lines[x:y]) for x, y in ((0, b), (a, d), (c, len(lines)))]
    paths = write(tmp_path / "pieces", LOG, pieces, ("", ".gz", ""))
    same_rows(build(tmp_path / "store", [seed / STREAM, *(paths[i] for i in order)]), whole)


@pytest.mark.parametrize("name", [STREAM, LOG])
@pytest.mark.parametrize("suffixes", [("",) * 4, (".gz", ".xz", ".bz2", ".zst")])
def test_pieces_cut_at_any_byte(
    name: str, suffixes: tuple[str, ...], seed: Recording, whole: Trace, tmp_path: Path
) -> None:
    content = (seed / name).read_bytes()
    # In the middle of a line, of another one, and right behind a line's end.
    third = content.index(b"\n", len(content) * 3 // 4) + 1
    pieces = cut(content, len(content) // 5, len(content) // 2 + 11, third)
    paths = write(tmp_path / "pieces", name, pieces, suffixes)
    other = seed / (LOG if name == STREAM else STREAM)
    same_rows(build(tmp_path / "store", [*paths, other]), whole)


@pytest.mark.parametrize("name", [STREAM, LOG])
def test_pieces_smaller_than_a_record(
    name: str, seed: Recording, whole: Trace, tmp_path: Path
) -> None:
    content = (seed / name).read_bytes()
    middle = len(content) // 2
    pieces = cut(content, middle, middle + 3, middle + 9)
    paths = write(tmp_path / "pieces", name, pieces, ("", "", ".gz", ""))
    other = seed / (LOG if name == STREAM else STREAM)
    same_rows(build(tmp_path / "store", [*paths, other]), whole)


def raw_rows(folder: Path, table: str) -> pl.DataFrame:
    """Return what a store keeps of its sources, apart from where each row was read."""
    frame = StoreReader(Store(folder)).rows(table).drop("source_id", "record_no")
    if table == "objects":
        # Each store hashes payloads with a key of its own.
        hidden = [pl.when(~pl.col("redacted")).then(pl.col(c)).alias(c) for c in VALUES]
        return frame.with_columns(hidden).sort("revision", "sub", "key")
    return frame.select(pl.struct(pl.all()).hash().sort().alias("digest"))


@pytest.mark.parametrize("big", ["mid", "wide"])
def test_big_recording_in_pieces_and_another_order(
    big: str, stores: Stores, tmp_path: Path
) -> None:
    store = stores(big, log=True)
    stream = (store.recording / STREAM).read_bytes()
    log = (store.recording / LOG).read_bytes()
    cuts = [stream.index(b"\n", len(stream) * share // 3) + 1 for share in (1, 2)]
    # An info record starts there: a piece that may be read before the one in front of it.
    starts = [log.index(b"\nI", len(log) * share // 4) + 1 for share in (1, 2, 3)]
    parts = write(tmp_path / "pieces", STREAM, cut(stream, *cuts), ("", "", ""))
    logs = write(tmp_path / "pieces", LOG, cut(log, *starts), ("",) * 4)
    build(tmp_path / "store", [*reversed(logs), *reversed(parts)], replay=False)
    for table in ("objects", "log_lines"):
        mine = raw_rows(tmp_path / "store", table)
        assert mine.equals(raw_rows(store.trace.folder, table)), table


def output(trace: Trace, query: str) -> bytes:
    """Return what ``tracekit query NAME -o json`` writes."""
    arguments = ["query", query, "-o", "json", "--store", str(trace.folder)]
    done = CliRunner().invoke(command, arguments, catch_exceptions=False, standalone_mode=False)
    assert done.stderr == ""
    return done.stdout_bytes


@cache
def outputs(folder: Path) -> dict[str, bytes]:
    return {query: output(Trace(folder), query) for query in PUBLIC_QUERIES}


def same_bytes(told: Trace, expected: Trace) -> None:
    mine, theirs = outputs(told.folder), outputs(expected.folder)
    assert [query for query in PUBLIC_QUERIES if mine[query] != theirs[query]] == []


def test_two_stores_of_one_record_answer_with_the_same_bytes(
    seed: Recording, whole: Trace, tmp_path: Path
) -> None:
    store = tmp_path / "store"
    # Another process, with other hashes of strings: no order may come from a set.
    environment = os.environ | {"PYTHONHASHSEED": "4711", "TRACEKIT_STORE": str(store)}
    for arguments in (["collect", seed / STREAM, seed / LOG], ["replay"]):
        run = [sys.executable, "-m", "tracekit", *map(str, arguments)]
        subprocess.run(run, env=environment, check=True, capture_output=True)
    same_bytes(Trace(store), whole)


def test_replaying_again_answers_with_the_same_bytes(whole: Trace, tmp_path: Path) -> None:
    copy = tmp_path / "store"
    shutil.copytree(whole.folder, copy)
    # Without this row the store does not know that it was replayed.
    store = Store(copy)
    store.replace("replay_state", StoreReader(store).rows("replay_state").clear())
    assert Trace(copy).replay().fresh
    same_bytes(Trace(copy), whole)


def test_big_store_answers_with_the_same_bytes(stores: Stores, tmp_path: Path) -> None:
    store = stores("mid")
    same_bytes(build(tmp_path / "store", [store.recording / STREAM]), store.trace)
