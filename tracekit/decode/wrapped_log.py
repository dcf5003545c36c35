"""Logs in a wrapping, or of several kinds mixed: each record as its writer had it.

The wrapping goes (``wrappers``), lines become records (``log_records``), and the klog among
them is read as klog is. ``raw`` keeps the whole outer text, ``body`` the record itself.

Source: facts/formats.md 1.1 to 1.5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, Final

from tracekit.decode.blocks import as_utf8, read_block
from tracekit.decode.event_text_rows import EventTextRows
from tracekit.decode.klog_rows import PREAMBLE
from tracekit.decode.kubectl_tables import event_row
from tracekit.decode.log_origin import origin_of_head
from tracekit.decode.log_records import Assembler, LogRecord
from tracekit.decode.message_text import message_text
from tracekit.decode.record_rows import RecordRows
from tracekit.decode.wrappers import HEADER, WRAPPERS, without_noise
from tracekit.model.batches import Batch, Chunk, Session, SourceContext

__all__ = ["LooseLogDecoder", "WrappedLogDecoder", "WrappedLogSession"]

_BLOCK_BYTES: Final = 2 << 20
_HEAD_BYTES: Final = 4 << 20  # how much of a source is looked at to tell who wrote it
_LOOKED_AT: Final = 400  # lines
_MOST_BARE: Final = 50  # bare headers for each record in a wrapping
_LOOSE: Final = re.compile(
    rb"[IWEF]\d{4} \d\d:\d\d:\d\d\.|[\w-]\.go:\d+\]|nodes are available"
    rb"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\blevel=|\d\d:\d\d:\d\d|FailedScheduling|goroutine \d+ \["
)
_MOST_CONTROL: Final = 0.02  # of the bytes of a text
_DUMPED_EVENT: Final = "v1.ObjectReference{Kind:"  # read from the log's rows


class WrappedLogDecoder:
    """Logs inside CRI, docker JSON, journald, stern and other wrappings, or mixed."""

    name = "wrapped-log"

    def recognises(self, head: bytes) -> bool:
        """Tell it by records in a wrapping, or of other loggers beside klog's."""
        records = _first_records(head)
        bare = sum(r.kind == "klog" and r.wrapped == "bare" for r in records)
        odd = sum(_is_odd(r) for r in records)
        known = bare + sum(r.kind in {"klog", "other"} or r.wrapped == "strong" for r in records)
        return known > 0 and odd > 0 and odd * _MOST_BARE >= bare

    def open(self, context: SourceContext) -> Session:
        """Begin a log."""
        return WrappedLogSession(context.path)

    def lead(self, tail: bytes, head: bytes) -> int | None:
        """Give the rest of a line that was cut between two pieces."""
        if tail.endswith(b"\n"):
            return 0
        line, newline, _ = head.partition(b"\n")
        text = without_noise(line.decode("utf-8", "replace"))
        if HEADER.match(text) or any(peel(text) is not None for peel in WRAPPERS):
            return 0
        return len(line) + 1 if newline else None


class LooseLogDecoder(WrappedLogDecoder):
    """Any text that has the look of a log; the last resort."""

    name = "text-log"

    def recognises(self, head: bytes) -> bool:
        """Tell text with times, levels or the scheduler's words from all else."""
        control = sum(head.count(byte) for byte in _CONTROL)
        return control <= len(head) * _MOST_CONTROL and _LOOSE.search(head) is not None


_CONTROL: Final = [bytes([b]) for b in range(32) if b not in b"\t\n\r\x1b\x00"]


class WrappedLogSession:
    """One log, read line by line in order.

    Args:
        path: Path of the log, which may name its writer.
        block_bytes: How much is read at once; rows do not depend on it.
    """

    parallel = False

    def __init__(self, path: str = "", block_bytes: int = _BLOCK_BYTES) -> None:
        self._path, self._block = path, block_bytes
        self._head = bytearray()
        self._assembler = Assembler()
        self._rows = RecordRows()

    def split(self, stream: BinaryIO) -> Iterator[Chunk]:
        """Cut the stream at line ends.

        Yields:
            Chunks in the order of the log; the last one is flagged, an empty log has none.
        """
        parts: list[bytes] = []
        line = 1
        block = read_block(stream, self._block)
        while block:
            following = read_block(stream, self._block)
            cut = block.rfind(b"\n") + 1 if following else len(block)
            parts.append(block[:cut] if cut else block)
            if cut:
                data = b"".join(parts)
                yield Chunk(data, line, not following)
                line += data.count(b"\n")
                parts = [block[cut:]]
            block = following

    def parse(self, chunk: Chunk) -> Batch:
        """Read a chunk: one row of ``log_lines`` per record that ended in it."""
        if len(self._head) < _HEAD_BYTES:
            self._head += chunk.data[: _HEAD_BYTES - len(self._head)]
        data, damage = as_utf8(chunk.data, chunk.record_no)
        lines = data.decode().removesuffix("\n").split("\n") if data else []
        for number, line in enumerate(lines, chunk.record_no):
            self._assembler.add(number, line)
        if chunk.last:
            self._assembler.finish()
        damage += self._assembler.damage
        self._assembler.damage = []
        records = self._assembler.drain()
        frame = self._rows.to_frame(records)
        if chunk.last:
            damage += self._rows.cuts(terminated=data.endswith(b"\n"))
        return Batch(
            table="log_lines", frame=frame, records=frame.height, diagnostics=damage,
            also=_events(records),
        )  # fmt: skip

    def facts(self) -> dict[str, str | int | None]:
        """Tell component and node as far as the log's beginning shows them.

        Where every record names its own, the log as a whole has none.
        """
        facts = origin_of_head(bytes(self._head), self._path)
        return facts | self._rows.common_origin(facts)


def _events(records: list[LogRecord]) -> list[Batch]:
    """Return the events and messages that stand among the records without a header."""
    rows = EventTextRows()
    for record in records:
        body = "\n".join(record.body)
        has_header = record.kind in {"klog", "section"} or (
            record.other is not None and record.other.severity is not None
        )
        if has_header or _DUMPED_EVENT in body:
            continue
        text = event_row(body, record.line) or message_text(body, record.line)
        if text is not None:
            rows.add(text)
    return [rows.batch()] if rows.height else []


def _first_records(head: bytes) -> list[LogRecord]:
    lines = head.decode("utf-8", "replace").split("\n")
    if len(lines) > 1 and len(lines) <= _LOOKED_AT:
        lines.pop()
    assembler = Assembler()
    for number, line in enumerate(lines[:_LOOKED_AT], 1):
        assembler.add(number, line)
    assembler.finish()
    return assembler.drain()


def _is_odd(record: LogRecord) -> bool:
    """Tell a record that plain klog text would not have, once it has begun."""
    if record.kind in {"other", "section"} or record.wrapped != "bare":
        return True
    is_own = record.kind == "text" and record.line > 1 and not record.in_dump
    return is_own and not record.body[0].encode().startswith(PREAMBLE)
