"""Archives: members become sources, nothing leaves its place, nothing grows without end."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import tarfile
from pathlib import Path

import pytest
import zstandard

from tracekit.sources import expand, open_source, unpack
from tracekit.sources.archives import ArchiveLimits
from tracekit.sources.files import SourceFile

PACKED = {
    "tar": lambda data: data,
    "tar.gz": gzip.compress,
    "tar.xz": lzma.compress,
    "tar.bz2": bz2.compress,
    "tar.zst": zstandard.compress,
}


def tar_of(files: dict[str, bytes], *, links: dict[str, str] | None = None) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mtime = len(data), 1_700_000_000
            tar.addfile(info, io.BytesIO(data))
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
    return buffer.getvalue()


def unpacked(path: Path, data: bytes, limits: ArchiveLimits | None = None) -> list[SourceFile]:
    path.write_bytes(data)
    return unpack(expand((str(path),)), limits)


def contents(sources: list[SourceFile]) -> dict[str, bytes]:
    found = {}
    for source in sources:
        if source.notes is None:
            with open_source(source) as opened:
                found[source.path.partition("!")[2]] = opened.stream.read()
    return found


def codes(sources: list[SourceFile]) -> list[str]:
    return [note.code for source in sources for note in source.notes or ()]


@pytest.mark.parametrize("ending", PACKED)
def test_members_are_sources(tmp_path: Path, ending: str) -> None:
    files = {"a/two.log": b"two" * 5000, "a/one.log.gz": gzip.compress(b"one"), "a/empty": b""}
    sources = unpacked(tmp_path / f"x.{ending}", PACKED[ending](tar_of(files)))
    assert contents(sources) == {"a/one.log.gz": b"one", "a/two.log": b"two" * 5000}
    assert [s.named for s in sources] == [True, False, False]
    with open_source(sources[1]) as opened:
        assert opened.modified_ns == 1_700_000_000 * 10**9
    assert codes(sources) == []


def test_no_name_leaves_the_archive_and_no_link_is_followed(tmp_path: Path) -> None:
    data = tar_of({"../../etc/x": b"1", "/abs/y": b"2", "./z\n": b"3"}, links={"l": "/etc/passwd"})
    sources = unpacked(tmp_path / "x.tar", data)
    assert contents(sources) == {"etc/x": b"1", "abs/y": b"2", "z\ufffd": b"3"}
    assert codes(sources) == ["ARCHIVE_MEMBER_REFUSED"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.tar"]


def test_archives_in_archives(tmp_path: Path) -> None:
    inner = gzip.compress(tar_of({"deep.log": b"deep"}))
    sources = unpacked(tmp_path / "x.tar", tar_of({"in.tgz": inner, "flat": b"flat"}))
    assert contents(sources) == {"flat": b"flat", "in.tgz!deep.log": b"deep"}


def test_too_deep_is_left_out(tmp_path: Path) -> None:
    data = tar_of({"x": b"x"})
    for _ in range(5):
        data = tar_of({"n.tar": data})
    sources = unpacked(tmp_path / "x.tar", data)
    assert contents(sources) == {}
    assert codes(sources) == ["ARCHIVE_LIMIT"]


def test_bombs_stop_at_the_limits(tmp_path: Path) -> None:
    bomb = gzip.compress(tar_of({"zeros": bytes(8 << 20)}))
    small = ArchiveLimits(small_bytes=1 << 20, ratio=10)
    sources = unpacked(tmp_path / "x.tgz", bomb, small)
    assert "ARCHIVE_LIMIT" in codes(sources)
    assert sum(map(len, contents(sources).values())) <= 1 << 20
    many = unpacked(
        tmp_path / "y.tar", tar_of({f"{i}": b"x" for i in range(9)}), ArchiveLimits(members=5)
    )
    assert len(contents(many)) == 5
    assert codes(many) == ["ARCHIVE_LIMIT"]
    full = unpacked(tmp_path / "z.tgz", bomb, ArchiveLimits(free_bytes=1 << 60))
    assert codes(full) == ["ARCHIVE_LIMIT"]


@pytest.mark.parametrize("ending", PACKED)
def test_cut_archive_gives_what_came_before(tmp_path: Path, ending: str) -> None:
    files = {"a": b"a" * 100, "b": random.Random(1).randbytes(2 << 20)}
    packed = PACKED[ending](tar_of(files))
    sources = unpacked(tmp_path / f"x.{ending}", packed[: int(len(packed) * 0.7)])
    assert "ARCHIVE_CUT" in codes(sources)
    found = contents(sources)
    assert found["a"] == files["a"]
    assert 0 < len(found["b"]) < len(files["b"])
    assert files["b"].startswith(found["b"])


def test_broken_headers_are_damage(tmp_path: Path) -> None:
    whole = bytearray(tar_of({"a": b"a", "b": b"b"}))
    whole[1024:1100] = b"\xff" * 76
    assert codes(unpacked(tmp_path / "x.tar", bytes(whole))) in ([], ["ARCHIVE_CUT"])


def test_other_files_and_pipes_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "plain.log").write_bytes(b"I0101 " * 200)
    (tmp_path / "empty").write_bytes(b"")
    sources = expand((str(tmp_path), "-"))
    assert unpack(sources) == sources
