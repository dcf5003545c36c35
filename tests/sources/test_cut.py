"""A compressed file that ends early gives what it holds, and says that it was cut."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from tracekit.sources import SourceFile, open_source

TEXT = "".join(f"line {number} {number * 7919 % 104729}\n" for number in range(60_000)).encode()
SKIPPABLE = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"hello"


def zstd(checksum: bool = True, size: bool = True) -> Callable[[bytes], bytes]:
    compressor = zstandard.ZstdCompressor(write_checksum=checksum, write_content_size=size)
    return compressor.compress


def frames(text: bytes) -> bytes:
    half = len(text) // 2
    streamed = zstandard.ZstdCompressor().compressobj()
    return b"".join(
        [zstd()(text[:half]), SKIPPABLE, streamed.compress(text[half:]), streamed.flush()]
    )


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstd(),
    "zstd bare": zstd(checksum=False, size=False),
    "zstd of a repeated byte": lambda text: zstd()(text + b"\0" * 1_000_000),
    "zstd frames": frames,
    "gzip members": lambda text: gzip.compress(text[:9]) + gzip.compress(text[9:]),
}


def read(path: Path) -> tuple[bytes, str]:
    parts: list[bytes] = []
    with open_source(SourceFile(path=str(path), named=True)) as opened:
        while part := opened.stream.read(1 << 20):
            parts.append(part)
        return b"".join(parts), opened.cut


@pytest.mark.parametrize("name", PACKERS)
def test_a_whole_file_is_read_whole(name: str, tmp_path: Path) -> None:
    packed = tmp_path / "packed"
    packed.write_bytes(PACKERS[name](TEXT))
    text, cut = read(packed)
    assert text.rstrip(b"\0") == TEXT
    assert cut == ""


@pytest.mark.parametrize("name", PACKERS)
@pytest.mark.parametrize("share", [0.001, 0.3, 0.75, 1.0])
def test_a_cut_file_gives_what_came_before(name: str, share: float, tmp_path: Path) -> None:
    packed = PACKERS[name](TEXT)
    kept = min(round(len(packed) * share), len(packed) - 1)
    cut_file = tmp_path / "cut"
    cut_file.write_bytes(packed[:kept])
    text, cut = read(cut_file)
    assert (TEXT + b"\0" * 1_000_000).startswith(text)
    assert cut
    # A block of bzip2 or zstd is all or nothing: 900 kB and 128 kB.
    if share == 0.75:
        assert len(text) > len(TEXT) * 0.75 - 900_000
    if name.startswith(("gzip", "xz")) and share >= 0.3:
        assert len(text) > len(TEXT) * share * 0.8
