"""Tell whether zstd data ends where a frame ends.

The decompressor takes the end of its input for the end of the data and says nothing when a
frame is cut, so a recording that was copied in part would pass for a whole one. The lengths
of a frame's parts stand in its headers: walking them needs no decompression.

Source: RFC 8878 §3.1 (frames, blocks, skippable frames).
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import BinaryIO, cast

__all__ = ["FrameTally"]

_SKIPPABLE = 0x184D2A50
_RLE = 1


class FrameTally(io.RawIOBase):
    """Passes compressed bytes on, and walks the frames in them."""

    def __init__(self, raw: BinaryIO) -> None:
        super().__init__()
        self._raw = cast(io.RawIOBase, raw)
        self._have = b""
        self._skip = 0
        self._checksum = 0
        self._expect(4, self._magic)

    @property
    def whole(self) -> bool:
        """Whether the bytes so far are whole frames."""
        return self._next == self._magic and not self._have and not self._skip

    def readable(self) -> bool:
        """Tell that this can be read."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read compressed bytes."""
        count = self._raw.readinto(buffer) or 0
        self._feed(bytes(buffer[:count]))
        return count

    def _feed(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            if self._skip:
                step = min(self._skip, len(data) - at)
                self._skip -= step
                at += step
                continue
            part = data[at : at + self._wanted - len(self._have)]
            self._have += part
            at += len(part)
            if len(self._have) == self._wanted:
                header, self._have = self._have, b""
                self._next(header)

    def _expect(self, size: int, then: Callable[[bytes], None]) -> None:
        self._wanted, self._next = size, then

    def _magic(self, header: bytes) -> None:
        if int.from_bytes(header, "little") & ~0xF == _SKIPPABLE:
            self._expect(4, self._skippable)
        else:
            self._expect(1, self._descriptor)

    def _skippable(self, header: bytes) -> None:
        self._skip = int.from_bytes(header, "little")
        self._expect(4, self._magic)

    def _descriptor(self, header: bytes) -> None:
        flags = header[0]
        size_flag, is_single = flags >> 6, bool(flags & 0x20)
        self._checksum = 4 if flags & 0x04 else 0
        content_size = 1 if is_single and not size_flag else (0, 2, 4, 8)[size_flag]
        self._skip = (not is_single) + (0, 1, 2, 4)[flags & 3] + content_size
        self._expect(3, self._block)

    def _block(self, header: bytes) -> None:
        word = int.from_bytes(header, "little")
        is_last, kind, size = word & 1, word >> 1 & 3, word >> 3
        self._skip = 1 if kind == _RLE else size
        if is_last:
            self._skip += self._checksum
            self._expect(4, self._magic)
        else:
            self._expect(3, self._block)
