"""Archives as people have them (must-gather, support bundles): members are sources.

A member is called ``ARCHIVE!MEMBER`` and read where it lies: in the tar file itself, or in
one nameless temporary file that a compressed tar is unpacked into. Nothing is written under
a name that an archive chose, so none can leave its place; links are not followed and devices
not opened. What an archive may hold and grow to is limited.

Source: POSIX.1-2001 pax (ustar header, checksum); Python ``tarfile``.
"""

from __future__ import annotations

import io
import os
import shutil
import tarfile
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Final, cast

from tracekit.errors import SourceError
from tracekit.model.diagnostics import Diagnostic
from tracekit.sources.files import OpenedSource, SourceFile, open_source

__all__ = ["ArchiveLimits", "unpack"]

_BLOCK: Final = 1 << 20
_HEADER: Final = 512
_CHECKSUM: Final = slice(148, 156)
_HEADER_READ: Final = 1 << 20  # a name or pax header that is longer is no name
_GIB: Final = 1 << 30
_DAMAGE: Final = (tarfile.TarError, ValueError, OverflowError, EOFError, UnicodeError)


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveLimits:
    """How much an archive may hold.

    Attributes:
        members: Files in it, those of archives inside it included.
        unpacked_bytes: Bytes that compressed archives are unpacked to, all of a command.
        small_bytes: What may always be unpacked to, whatever the ratio.
        ratio: Unpacked bytes for each compressed one, above ``small_bytes``.
        free_bytes: Space that stays free on the disk of the temporary file.
        depth: Archives inside archives.
    """

    members: int = 100_000
    unpacked_bytes: int = 256 * _GIB
    small_bytes: int = _GIB
    ratio: int = 200
    free_bytes: int = _GIB
    depth: int = 3


def unpack(sources: Sequence[SourceFile], limits: ArchiveLimits | None = None) -> list[SourceFile]:
    """Put the members of archives in the place of the archives.

    Args:
        sources: Files; archives are told by their first bytes, decompressed.
        limits: How much they may hold.

    Returns:
        The sources; behind each archive, which then has ``notes``, its members by path.

    Raises:
        SourceError: If the disk has no room for what is unpacked.
    """
    unpacking = _Unpacking(limits or ArchiveLimits())
    found: list[SourceFile] = []
    for source in sources:
        if not os.path.isfile(source.path):  # a pipe can be read only once
            found.append(source)
            continue
        try:
            found += unpacking.source(source, depth=0)
        except _UnreadableError:
            found.append(source)  # to be told in its turn
    return found


class _UnreadableError(Exception):
    """A source that cannot be opened."""


class _Held:
    """Bytes of a file that stays open as long as someone refers to them."""

    def __init__(self, handle: int) -> None:
        self.handle = handle
        self.size = os.fstat(handle).st_size
        weakref.finalize(self, os.close, handle)


class _Slice(io.RawIOBase):
    """A part of held bytes as a stream of its own; several can be read at once."""

    def __init__(self, held: _Held, start: int, size: int) -> None:
        super().__init__()
        self._held, self._start, self._size = held, start, size
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        count = max(0, min(len(buffer), self._size - self._at))
        data = os.pread(self._held.handle, count, self._start + self._at) if count else b""
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


class _Headers(_Slice):
    """A tar whose headers are read; one that asks for more than any header has is refused."""

    def read(self, size: int = -1, /) -> bytes:
        if size > _HEADER_READ or size < 0:
            raise tarfile.ReadError("a header of more than 1 MiB")
        return super().read(size) or b""


@dataclass(frozen=True, slots=True)
class _Member:
    """A file inside an archive: where its bytes are."""

    held: _Held
    start: int
    size: int
    modified_ns: int

    def open(self) -> BinaryIO:
        """Return its bytes as a stream."""
        return cast(BinaryIO, _Slice(self.held, self.start, self.size))


@dataclass(slots=True)
class _Archive:
    """One archive while its members are listed."""

    source: SourceFile
    notes: list[Diagnostic] = field(default_factory=list)
    members: dict[str, _Member] = field(default_factory=dict)

    def note(self, code: str, detail: str) -> None:
        position = len(self.members)
        self.notes.append(Diagnostic(code=code, position=position, detail=detail[:200]))


class _Unpacking:
    """All archives of one command; they share the limits."""

    def __init__(self, limits: ArchiveLimits) -> None:
        self._limits = limits
        self._members = self._bytes = 0

    def source(self, source: SourceFile, depth: int) -> list[SourceFile]:
        """Return a source as it is, or an archive and its members."""
        if not _is_tar(_head(source)):
            return [source]
        archive = _Archive(source)
        with open_source(source) as opened:
            held = self._hold(archive, opened)
        if depth >= self._limits.depth:
            archive.note("ARCHIVE_LIMIT", f"an archive inside {depth} others")
        else:
            self._list(archive, *held)
        listed: list[SourceFile] = []
        for name, member in sorted(archive.members.items()):
            path = f"{source.path}!{name}"
            one = SourceFile(path=path, named=False, member=member)
            listed += self.source(one, depth + 1)
        itself = SourceFile(
            path=source.path, named=source.named, member=source.member, notes=tuple(archive.notes)
        )
        return [itself, *listed]

    def _hold(self, archive: _Archive, opened: OpenedSource) -> tuple[_Held, int, int]:
        """Return where the plain tar is: in its file, or unpacked."""
        source = archive.source
        if _is_tar(_raw_head(source)):
            if isinstance(source.member, _Member):
                return source.member.held, source.member.start, source.member.size
            held = _Held(os.open(source.path, os.O_RDONLY))
            return held, 0, held.size
        handle, name = tempfile.mkstemp(prefix="tracekit-")
        os.unlink(name)
        try:
            self._spool(archive, opened, handle)
        except BaseException:
            os.close(handle)
            raise
        if opened.cut:
            archive.note("ARCHIVE_CUT", opened.cut)
        held = _Held(handle)
        return held, 0, held.size

    def _spool(self, archive: _Archive, opened: OpenedSource, handle: int) -> None:
        limits, packed = self._limits, _packed_bytes(archive.source)
        most = max(limits.small_bytes, limits.ratio * packed)
        most = min(most, limits.unpacked_bytes - self._bytes)
        written = 0
        try:
            while data := opened.stream.read(_BLOCK):
                free = shutil.disk_usage(tempfile.gettempdir()).free
                if written + len(data) > most or free < limits.free_bytes:
                    archive.note("ARCHIVE_LIMIT", f"{packed} bytes unpack to more than {written}")
                    break
                written += os.write(handle, data)
        except OSError as error:
            raise SourceError(
                f"cannot unpack it ({error.strerror or error})",
                where=archive.source.path,
                todo="free space in the folder for temporary files, or set TMPDIR",
            ) from error
        self._bytes += written

    def _list(self, archive: _Archive, held: _Held, start: int, size: int) -> None:
        headers = cast(BinaryIO, _Headers(held, start, size))
        try:
            with tarfile.open(fileobj=headers, mode="r:") as tar:
                for info in _infos(tar):
                    if not self._take(archive, info, held, start, size):
                        return
        except _DAMAGE as error:
            if not archive.notes:
                archive.note("ARCHIVE_CUT", str(error) or type(error).__name__)

    def _take(
        self, archive: _Archive, info: tarfile.TarInfo, held: _Held, start: int, size: int
    ) -> bool:
        """Take in one member; False when no more may come."""
        if info.isdir():
            return True
        if not info.isreg() or info.issparse():
            archive.note("ARCHIVE_MEMBER_REFUSED", f"{_clean(info.name)}: {_kind(info)}")
            return True
        self._members += 1
        if self._members > self._limits.members:
            archive.note("ARCHIVE_LIMIT", f"more than {self._limits.members} files")
            return False
        left = size - info.offset_data
        if info.size > left:
            archive.note("ARCHIVE_CUT", f"{_clean(info.name)}: {left} of {info.size} bytes")
        if info.size:
            modified_ns = int(max(0, min(float(info.mtime), 2**33)) * 1e9)
            archive.members[_clean(info.name)] = _Member(
                held, start + info.offset_data, max(0, min(info.size, left)), modified_ns
            )
        return True


def _infos(tar: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yield the headers of a tar without keeping them."""
    while (info := tar.next()) is not None:
        tar.members.clear()  # type: ignore[attr-defined]
        yield info


def _head(source: SourceFile) -> bytes:
    """Return the first bytes of a source, decompressed.

    Raises:
        _UnreadableError: If it cannot be opened.
    """
    try:
        with open_source(source) as opened:
            return opened.head
    except SourceError as error:
        raise _UnreadableError from error


def _raw_head(source: SourceFile) -> bytes:
    """Return the first bytes of a source as they lie, compressed or not."""
    if source.member is not None:
        return source.member.open().read(_HEADER)
    with open(source.path, "rb") as file:
        return file.read(_HEADER)


def _packed_bytes(source: SourceFile) -> int:
    if isinstance(source.member, _Member):
        return source.member.size
    return os.stat(source.path).st_size


def _is_tar(head: bytes) -> bool:
    """Tell a tar by the checksum of its first header, which old ones without magic have too."""
    block = head[:_HEADER]
    if len(block) < _HEADER or not block[0]:
        return False
    try:
        told = int(block[_CHECKSUM].strip(b" \0") or b"x", 8)
    except ValueError:
        return False
    return told == sum(block) - sum(block[_CHECKSUM]) + 8 * ord(" ")


def _clean(name: str) -> str:
    """Return a member's name as a plain path below its archive."""
    parts = [part for part in name.split("/") if part not in ("", ".", "..")]
    shown = "/".join(parts)
    return "".join(c if c.isprintable() else "�" for c in shown) or "�"


def _kind(info: tarfile.TarInfo) -> str:
    if info.issym() or info.islnk():
        return f"a link to {info.linkname}"
    return "a sparse file" if info.issparse() else "no regular file"
