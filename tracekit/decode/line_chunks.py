"""A stream of text cut at line ends, block by block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, Final

from tracekit.decode.blocks import read_block
from tracekit.model.batches import Chunk

__all__ = ["line_chunks"]

_BLOCK_BYTES: Final = 4 << 20


def line_chunks(stream: BinaryIO) -> Iterator[Chunk]:
    """Yield whole lines, about 4 MiB at a time; a longer line stays whole.

    Yields:
        Chunks; the last one, which may be empty, has ``last`` set.
    """
    rest: list[bytes] = []
    record_no = 1
    while block := read_block(stream, _BLOCK_BYTES):
        cut = block.rfind(b"\n") + 1
        if cut:
            data = b"".join([*rest, block[:cut]])
            rest = []
            yield Chunk(data, record_no)
            record_no += data.count(b"\n")
        if cut < len(block):
            rest.append(block[cut:])
    yield Chunk(b"".join(rest), record_no, last=True)
