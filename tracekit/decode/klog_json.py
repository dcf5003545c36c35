"""klog with ``--logging-format=json``: the same rows of ``log_lines`` as its text form gives.

A line is a record. Quotes and commas of a chunk are found in one sweep, and as the writer's
key order is fixed, caller and message stand between known quotes; only records of another
layout or with an escaped message are read one by one. Text between the records (start-up,
panics) stays, each run of lines a record of its own.

Source: component-base ``logs/json/json.go``, ``json_test.go``; facts/formats.md 1.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from tracekit.decode.blocks import as_utf8, read_block
from tracekit.decode.json_rows import RECORD, json_frame
from tracekit.decode.klog_clock import year_of
from tracekit.decode.log_origin import origin_of_head
from tracekit.model.batches import Batch, Chunk, SourceContext

__all__ = ["JsonKlogChunk", "JsonKlogDecoder", "JsonKlogSession"]

_BLOCK_BYTES: Final = 8 << 20
_HEAD_BYTES: Final = 4 << 20  # how much of a source is looked at to tell who wrote it
_OPENING: Final = b'{"ts":'
_LEVEL: Final = b'"level":'  # zap's own loggers have it, klog has not
_KEYS: Final = (b'"msg":', b'"caller":')


@dataclass(frozen=True, slots=True)
class JsonKlogChunk(Chunk):
    """A chunk, and the year of the log's first record."""

    base_year: int = field(kw_only=True)


class JsonKlogDecoder:
    """klog as JSON lines, epoch milliseconds first."""

    name = "klog-json"

    def recognises(self, head: bytes) -> bool:
        """Tell it by lines that begin with ``ts`` in milliseconds and have no ``level``."""
        lines = head.split(b"\n")
        if len(lines) > 1 and not head.endswith(b"\n"):
            lines.pop()
        own = sum(_is_record(line) for line in lines)
        return own > 0 and own * 2 >= sum(1 for line in lines if line[:1] == b"{")

    def open(self, context: SourceContext) -> JsonKlogSession:
        """Begin a log."""
        return JsonKlogSession(path=context.path)

    def lead(self, tail: bytes, head: bytes) -> int | None:
        """Give the rest of a line that was cut between two pieces."""
        if tail.endswith(b"\n") or head.startswith(_OPENING):
            return 0
        return head.find(b"\n") + 1 or None


class JsonKlogSession:
    """One log: splitting cuts at records, parsing fills the rows of ``log_lines``.

    Args:
        block_bytes: How much is read at once; rows do not depend on it.
        path: Path of the log, which may name its writer.
    """

    parallel = True

    def __init__(self, block_bytes: int = _BLOCK_BYTES, path: str = "") -> None:
        self._block, self._path = block_bytes, path
        self._head = bytearray()

    def split(self, stream: BinaryIO) -> Iterator[Chunk]:
        """Cut the stream before JSON records.

        Yields:
            Chunks in the order of the log; the last one is flagged, an empty log has none.
        """
        parts: list[bytes] = []
        line, base_year = 1, None
        block = read_block(stream, self._block)
        while block:
            following = read_block(stream, self._block)
            cut = block.rfind(b"\n" + _OPENING) + 1 if following else len(block)
            parts.append(block[:cut] if cut else block)
            if cut:
                data = b"".join(parts)
                base_year = base_year or _first_year(data)
                if len(self._head) < _HEAD_BYTES:
                    self._head += data[: _HEAD_BYTES - len(self._head)]
                yield JsonKlogChunk(data, line, not following, base_year=base_year or 2000)
                line += data.count(b"\n")
                parts = [block[cut:]]
            block = following

    def parse(self, chunk: Chunk) -> Batch:
        """Read a chunk: one row of ``log_lines`` per record, in order.

        ``wrapped_at`` is the record's own time, ``stamp_us`` the same in the yearless clock.
        """
        assert isinstance(chunk, JsonKlogChunk)
        data, damage = as_utf8(chunk.data, chunk.record_no)
        frame, odd = json_frame(data, base_year=chunk.base_year, first_line=chunk.record_no)
        return Batch(table="log_lines", frame=frame, records=frame.height, diagnostics=damage + odd)

    def facts(self) -> dict[str, str | int | None]:
        """Tell component and node as far as the log's beginning shows them."""
        return origin_of_head(bytes(self._head), self._path)


def _is_record(line: bytes) -> bool:
    return (
        RECORD.match(line) is not None and _LEVEL not in line and any(key in line for key in _KEYS)
    )


def _first_year(data: bytes) -> int | None:
    """Return the year of the first record."""
    start = 0 if data.startswith(_OPENING) else data.find(b"\n" + _OPENING) + 1
    match = RECORD.match(data, start)
    return year_of(int(match[1]) * 1000) if match else None
