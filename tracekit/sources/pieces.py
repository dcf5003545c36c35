"""Recordings cut into pieces: what a piece leaves open, the next one begins with.

``split -b`` cuts in the middle of a line, ``split -l`` in the middle of a record of many
lines. Given in their order in one command, the pieces are read as the whole was: the bytes
that end an open record are read with the piece that began it, and left out of their own.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import BinaryIO

from tracekit.sources.files import HEAD_BYTES, OpenedSource, SourceFile, open_source

__all__ = ["Lead", "PiecedStream", "Pieces"]

Lead = Callable[[bytes, bytes], int | None]
_TAIL_BYTES = 64


class Pieces:
    """The sources of one command, in order, and what of each was read with the one before."""

    def __init__(self, sources: Sequence[SourceFile]) -> None:
        self._sources = sources
        self._taken = [b""] * len(sources)

    def source(self, place: int) -> SourceFile:
        """Return a source."""
        return self._sources[place]

    def head(self, place: int, opened: OpenedSource) -> bytes:
        """Return the first bytes of a source, with those of the next where it is a scrap.

        A piece that ends inside its first record tells no format by itself.
        """
        head = opened.head
        for following in range(place + 1, len(self._sources) if head else 0):
            if len(head) >= HEAD_BYTES or b"\n" in head or self._sources[following].path == "-":
                break
            with open_source(self._sources[following]) as behind:
                head += behind.head
        return head[:HEAD_BYTES]

    def taken(self, place: int) -> bytes:
        """Return the bytes at the start of a source that the one before has read."""
        return self._taken[place]

    def after(self, place: int, lead: Lead) -> Callable[[bytes], bytes]:
        """Return the function that gives the bytes which end what a source left open.

        Args:
            place: Place of the source.
            lead: ``lead(tail, head)`` gives how many bytes of ``head`` belong to the record
                that ``tail`` leaves open; None when more bytes are needed to tell.
        """

        def ending(tail: bytes) -> bytes:
            found = b""
            for following in range(place + 1, len(self._sources)):
                taken, whole = self._take(following, tail, lead)
                self._taken[following] = taken
                found += taken
                if not whole or not taken:
                    break
                tail = taken[-_TAIL_BYTES:]
            return found

        return ending

    def _take(self, place: int, tail: bytes, lead: Lead) -> tuple[bytes, bool]:
        """Read what a source begins with; tell whether that was all of it."""
        source = self._sources[place]
        if source.path == "-" or source.notes is not None:
            return b"", False
        with open_source(source) as opened:
            head = opened.head
            opened.drop(len(head))
            while (count := lead(tail, head)) is None:
                if not opened.head:
                    return head, True
                head += opened.head
                opened.drop(len(opened.head))
            return head[:count], False


class PiecedStream(io.RawIOBase):
    """A stream that goes on with what ``ending`` gives for its last bytes."""

    def __init__(self, inner: BinaryIO, ending: Callable[[bytes], bytes]) -> None:
        super().__init__()
        self._inner, self._ending = inner, ending
        self._tail = b""
        self._rest: bytes | None = None

    def readable(self) -> bool:
        """Tell that it can be read."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill the buffer from the source, then from what follows it."""
        if self._rest is None:
            count: int = self._inner.readinto(buffer)  # type: ignore[attr-defined]
            if count:
                self._tail = bytes(buffer[max(0, count - _TAIL_BYTES) : count])
                return count
            self._rest = self._ending(self._tail) if self._tail else b""
        part = self._rest[: len(buffer)]
        buffer[: len(part)] = part
        self._rest = self._rest[len(part) :]
        return len(part)
