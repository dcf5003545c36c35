"""Files as people have them: alone, in folders, compressed, or through a pipe.

The compression is told by the first bytes, not by the name. A compressed file that ends
early gives what it holds; ``OpenedSource.cut`` then tells what was wrong.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, cast

import zstandard

from tracekit.errors import SourceError
from tracekit.model.diagnostics import Diagnostic
from tracekit.sources.zstd_frames import FrameTally

__all__ = ["Member", "OpenedSource", "SourceFile", "expand", "open_source"]

HEAD_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """One input.

    Attributes:
        path: Path as given; ``-`` is standard input.
        named: The user named it, rather than a folder or archive that holds it.
        member: Where its bytes are, for a member of an archive; None for a file.
        notes: For an archive itself, what was wrong with it; None for what is to be read.
    """

    path: str
    named: bool
    member: Member | None = None
    notes: tuple[Diagnostic, ...] | None = None

    @property
    def label(self) -> str:
        """The path as text: bytes of a name that are not UTF-8 stand as escapes."""
        return os.fsencode(self.path).decode("utf-8", "backslashreplace")


class Member(Protocol):
    """A file inside an archive."""

    @property
    def modified_ns(self) -> int:
        """Modification time in ns since the Unix epoch."""

    def open(self) -> BinaryIO:
        """Return its bytes from the first on; may be called again."""


@dataclass(slots=True, kw_only=True)
class OpenedSource:
    """An input being read.

    Attributes:
        head: The first bytes, up to 64 KiB, decompressed; still part of ``stream``.
        stream: All bytes, decompressed.
        modified_ns: File modification time in ns since the Unix epoch; None for a pipe.
    """

    head: bytes
    stream: BinaryIO
    modified_ns: int | None
    _reader: _Tolerant

    @property
    def cut(self) -> str:
        """What was wrong with the compressed bytes; empty when nothing was."""
        return self._reader.fault

    def drop(self, count: int) -> None:
        """Leave out the first bytes; ``head`` and ``stream`` begin behind them."""
        while count > 0 and (part := self.stream.read(min(count, HEAD_BYTES))):
            count -= len(part)
        self.head = _read_up_to(self.stream, HEAD_BYTES)
        self.stream = cast(BinaryIO, _Tolerant(self.head, self.stream))


_Opener = Callable[[BinaryIO], BinaryIO]
_MAGIC: tuple[tuple[bytes, _Opener], ...] = (
    (b"\x1f\x8b", lambda raw: cast(BinaryIO, gzip.GzipFile(fileobj=raw))),
    (b"BZh", lambda raw: cast(BinaryIO, bz2.BZ2File(raw))),
    (b"\xfd7zXZ\x00", lambda raw: cast(BinaryIO, lzma.LZMAFile(raw))),  # noqa: SIM115
    (b"\x28\xb5\x2f\xfd", lambda raw: cast(BinaryIO, _ZstdReader(raw))),
)
_DAMAGE = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile, zstandard.ZstdError)


class _ZstdReader(io.RawIOBase):
    """Reads zstd data; a frame that is cut is an error here, as it is for gzip."""

    def __init__(self, raw: BinaryIO) -> None:
        super().__init__()
        self._tally = FrameTally(raw)
        self._inner = zstandard.ZstdDecompressor(max_window_size=2**31).stream_reader(
            cast(BinaryIO, self._tally), read_across_frames=True
        )

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        count = self._inner.readinto(buffer)
        if not count and not self._tally.whole:
            raise EOFError("the last zstd frame is cut")
        return count


class _Tolerant(io.RawIOBase):
    """Reads until the end or until the compressed bytes break; remembers which it was."""

    def __init__(self, head: bytes, inner: BinaryIO) -> None:
        super().__init__()
        self._head, self._inner = head, inner
        self.fault = ""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if self._head:
            taken = self._head[: len(buffer)]
            buffer[: len(taken)] = taken
            self._head = self._head[len(taken) :]
            return len(taken)
        if self.fault:
            return 0
        try:
            return self._read(buffer)
        except _DAMAGE as error:
            self.fault = str(error) or type(error).__name__
            return 0
        except OSError as error:
            if isinstance(self._inner, bz2.BZ2File):
                self.fault = str(error)
                return 0
            raise

    def _read(self, buffer: memoryview) -> int:
        if not isinstance(self._inner, gzip.GzipFile | bz2.BZ2File | lzma.LZMAFile):
            return cast(io.RawIOBase, self._inner).readinto(buffer) or 0
        # Their readinto fills the buffer, and loses what is in it when the data breaks off.
        data = self._inner.read1(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def expand(paths: tuple[str, ...]) -> list[SourceFile]:
    """List the files behind the given paths; folders are walked, sorted by path.

    Raises:
        SourceError: If a path does not exist.
    """
    found: list[SourceFile] = []
    for given in paths:
        path = Path(given)
        if given == "-" or path.is_file():
            found.append(SourceFile(path=given, named=True))
        elif path.is_dir():
            inside = sorted(p for p in path.rglob("*") if p.is_file())
            found.extend(SourceFile(path=str(p), named=False) for p in inside)
        elif path.exists():
            found.append(SourceFile(path=given, named=True))
        else:
            raise SourceError("no such file or folder", where=given, todo="check the path")
    return found


@contextmanager
def open_source(source: SourceFile) -> Iterator[OpenedSource]:
    """Open one input, decompressed.

    Raises:
        SourceError: If it cannot be opened or read.
    """
    try:
        with _raw(source) as raw:
            modified_ns = source.member.modified_ns if source.member else _modified(raw)
            yield _opened(raw, modified_ns)
    except OSError as error:
        raise SourceError(
            f"cannot read it ({error.strerror or error})",
            where=source.label,
            todo="check that the file exists and that you may read it",
        ) from error


@contextmanager
def _raw(source: SourceFile) -> Iterator[BinaryIO]:
    if source.member is not None:
        yield source.member.open()
        return
    if source.path == "-":
        yield sys.stdin.buffer
        return
    with open(source.path, "rb", buffering=0) as file:
        yield cast(BinaryIO, file)


def _opened(raw: BinaryIO, modified_ns: int | None) -> OpenedSource:
    magic = _read_up_to(raw, 8)
    plain = cast(BinaryIO, _Tolerant(magic, raw))
    for prefix, opener in _MAGIC:
        if magic.startswith(prefix):
            plain = opener(cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, plain), 1 << 20)))
            break
    tolerant = _Tolerant(b"", plain)
    head = _read_up_to(cast(BinaryIO, tolerant), HEAD_BYTES)
    reader = _Tolerant(head, cast(BinaryIO, tolerant))
    return OpenedSource(
        head=head, stream=cast(BinaryIO, reader), modified_ns=modified_ns, _reader=tolerant
    )


def _read_up_to(stream: BinaryIO, size: int) -> bytes:
    parts: list[bytes] = []
    while size > 0 and (part := stream.read(size)):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _modified(raw: BinaryIO) -> int | None:
    try:
        status = os.fstat(raw.fileno())
    except (OSError, io.UnsupportedOperation):
        return None
    return status.st_mtime_ns if stat.S_ISREG(status.st_mode) else None
