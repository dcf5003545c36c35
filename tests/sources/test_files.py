"""Files and pipes opened, decompressed and cut."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from tracekit.errors import SourceError
from tracekit.sources import SourceFile, expand, open_source

TEXT = b"".join(b"line %d of some length\n" % n for n in range(20_000))
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda text: zstandard.ZstdCompressor().compress(text),
    "plain": lambda text: text,
}


def _read(path: Path) -> tuple[bytes, str]:
    with open_source(SourceFile(path=str(path), named=True)) as opened:
        parts = []
        while part := opened.stream.read(10_000):
            parts.append(part)
        return b"".join(parts), opened.cut


@pytest.mark.parametrize("kind", COMPRESS)
def test_compression_is_told_by_content_not_by_name(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "no-ending"
    path.write_bytes(COMPRESS[kind](TEXT))
    assert _read(path) == (TEXT, "")


@pytest.mark.parametrize("kind", COMPRESS)
def test_members_one_behind_the_other_are_all_read(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "f"
    path.write_bytes(COMPRESS[kind](TEXT[:100_000]) + COMPRESS[kind](TEXT[100_000:]))
    assert _read(path) == (TEXT, "")


@pytest.mark.parametrize("kind", [k for k in COMPRESS if k != "plain"])
def test_a_cut_file_gives_what_it_holds_and_says_so(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "f"
    packed = COMPRESS[kind](TEXT)
    path.write_bytes(packed[: len(packed) // 2])
    text, fault = _read(path)
    assert TEXT.startswith(text)
    assert fault


def test_the_head_is_part_of_the_stream(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(TEXT)
    with open_source(SourceFile(path=str(path), named=True)) as opened:
        assert opened.head == TEXT[: 64 * 1024]
        assert opened.stream.read(10) == TEXT[:10]
        assert opened.modified_ns == path.stat().st_mtime_ns


@pytest.mark.parametrize("count", [0, 7, 64 * 1024, 64 * 1024 + 5, len(TEXT), len(TEXT) + 9])
def test_dropped_bytes_are_left_out_of_head_and_stream(tmp_path: Path, count: int) -> None:
    path = tmp_path / "f"
    path.write_bytes(TEXT)
    with open_source(SourceFile(path=str(path), named=True)) as opened:
        opened.drop(count)
        assert opened.head == TEXT[count : count + 64 * 1024]
        parts = []
        while part := opened.stream.read(30_000):
            parts.append(part)
        assert b"".join(parts) == TEXT[count:]


def test_folders_are_walked_in_order_of_path(tmp_path: Path) -> None:
    for name in ("b/2", "a", "b/1"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    found = expand((str(tmp_path), str(tmp_path / "a")))
    assert [(Path(f.path).relative_to(tmp_path).as_posix(), f.named) for f in found] == [
        ("a", False), ("b/1", False), ("b/2", False), ("a", True),
    ]  # fmt: skip


def test_a_missing_path_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="no such file or folder; check the path"):
        expand((str(tmp_path / "nothing"),))
