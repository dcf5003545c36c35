"""klog and glog text logs: cut at record starts, years counted, every byte kept.

A record is a header line and all lines up to the next header. Splitting finds them in one
sweep per block; ``klog_rows`` makes the rows, in as many threads as there are.

Source: klog v2 ``klog.go``, ``klog_file.go``; glog writes the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, Final

import polars as pl

from tracekit.decode.blocks import as_utf8, read_block, shown
from tracekit.decode.klog_clock import YearClock, day_numbers
from tracekit.decode.klog_fields import is_cut_header
from tracekit.decode.klog_rows import (
    PREAMBLE,
    START,
    Ints,
    Records,
    find_records,
    to_frame,
)
from tracekit.decode.log_cuts import begins_a_known_message, is_cut
from tracekit.decode.log_origin import origin_of_head
from tracekit.model.batches import Batch, Chunk, SourceContext
from tracekit.model.diagnostics import Diagnostic

__all__ = ["KlogChunk", "KlogDecoder", "KlogSession"]

_BLOCK_BYTES: Final = 16 << 20
_HEAD_BYTES: Final = 4 << 20  # how much of a source is looked at to tell who wrote it
_DETAIL_CHARS: Final = 120
_RECENT: Final = 200  # records before the last one that show its whole message

_ANY_START: Final = re.compile(rb"^" + START.pattern, re.MULTILINE)


@dataclass(frozen=True, slots=True, eq=False)
class KlogChunk(Chunk):
    """A chunk with what splitting found out on the way.

    Attributes:
        records: Where its records are.
        days: Day of each header since 2000-01-01 in the log's yearless clock.
    """

    records: Records = field(kw_only=True)
    days: Ints = field(kw_only=True)


class KlogDecoder:
    """klog and glog text, headers at the start of the line."""

    name = "klog"

    def recognises(self, head: bytes) -> bool:
        """Tell klog by a header or glog's preamble at the start of a line.

        Logs inside another wrapper (JSON lines, CRI, journald) start their lines otherwise.
        """
        headers = len(_ANY_START.findall(head)) + head.startswith(PREAMBLE[0])
        # A JSON-formatted log may begin with plain klog lines.
        return headers > head.count(b"\n{") + head.startswith(b"{")

    def open(self, context: SourceContext) -> KlogSession:
        """Begin a log."""
        return KlogSession(path=context.path)

    def lead(self, tail: bytes, head: bytes) -> int | None:
        """Give the rest of a record that was cut between two pieces.

        A log may begin with text of its own, so text alone is no rest: either the piece
        before ends inside a line, or this one begins as only a multi-line value goes on.
        """
        if _ANY_START.match(head) or head.startswith(PREAMBLE[0]):
            return 0
        if tail.endswith(b"\n") and not head.startswith((b"\t", b" >")):
            return 0
        start = _ANY_START.search(head)
        return start.start() if start else None


class KlogSession:
    """One log: splitting finds the records, parsing fills the rows of ``log_lines``.

    Args:
        block_bytes: How much is read at once; rows do not depend on it.
        path: Path of the log, which may name its writer.
    """

    parallel = True

    def __init__(self, block_bytes: int = _BLOCK_BYTES, path: str = "") -> None:
        self._block, self._path = block_bytes, path
        self._head = bytearray()

    def split(self, stream: BinaryIO) -> Iterator[Chunk]:
        """Cut the stream at record starts; a chunk holds a block, or one record if longer.

        Yields:
            Chunks in the order of the log; the last one is flagged, an empty log has none.
        """
        parts: list[bytes | memoryview] = []
        line, clock = 1, YearClock()
        block = read_block(stream, self._block)
        while block:
            following = read_block(stream, self._block)
            cut = _last_start(block) if following else len(block)
            parts.append(memoryview(block)[:cut] if cut else block)
            if cut:
                data = b"".join(parts)
                records = find_records(data, is_first=line == 1)
                days, clock = clock.place(day_numbers(records.stamps))
                self._remember(data)
                yield KlogChunk(data, line, not following, records=records, days=days)
                line += records.newlines
                parts = [block[cut:]]
            block = following

    def parse(self, chunk: Chunk) -> Batch:
        """Read the headers of a chunk: one row of ``log_lines`` per record, in order.

        ``stamp_us`` is the header's time in the year 2000 + 4 * (New Years passed before it):
        leap years all, so 29 February has its place; null where the date is none.
        """
        data, damage = as_utf8(chunk.data, chunk.record_no)
        if isinstance(chunk, KlogChunk):
            days = chunk.days
            records = chunk.records
            if data is not chunk.data:
                records = find_records(data, is_first=chunk.record_no == 1)
        else:
            records = find_records(data, is_first=chunk.record_no == 1)
            days, _ = YearClock().place(day_numbers(records.stamps))
        frame = to_frame(data, records, days, chunk.record_no)
        damage += _unheaded(data, records, chunk.record_no)
        if chunk.last:
            damage += _cut(frame, terminated=data.endswith(b"\n"))
        return Batch(table="log_lines", frame=frame, records=frame.height, diagnostics=damage)

    def facts(self) -> dict[str, str | int | None]:
        """Tell component and node as far as the log's beginning shows them.

        ``created_year`` is the year of a file's "Log file created at" line.
        """
        return origin_of_head(bytes(self._head), self._path)

    def _remember(self, data: bytes) -> None:
        if len(self._head) < _HEAD_BYTES:
            self._head += data[: _HEAD_BYTES - len(self._head)]


def _last_start(block: bytes) -> int:
    """Return where the last record starts that does so behind a newline of the block, else 0."""
    at = len(block)
    while (at := block.rfind(b"\n", 0, at)) >= 0:
        if START.match(block, at + 1):
            return at + 1
    return 0


def _unheaded(data: bytes, records: Records, first_line: int) -> list[Diagnostic]:
    """Report the lines before the first header, glog's preamble apart."""
    damage: list[Diagnostic] = []
    for row in range(records.lead):
        at = int(records.starts[row])
        line = data[at : int(records.line_ends[row])]
        if line.startswith(PREAMBLE):
            continue
        is_inside = line.startswith((b"\t", b" >"))
        code = "LOG_RECORD_ORPHAN" if is_inside else "LOG_LINE_UNSTRUCTURED"
        position = first_line + int(records.lines[row])
        damage.append(Diagnostic(code=code, position=position, detail=shown(line)))
    return damage


def _cut(frame: pl.DataFrame, *, terminated: bool) -> list[Diagnostic]:
    """Report a log that stops inside its last record."""
    if not frame.height:
        return []
    number, message, raw = frame.select("record_no", "message", "raw").row(-1)
    recent = frame["message"].tail(_RECENT).to_list()[:-1]
    if not is_cut(raw, is_last=True, terminated=terminated) and not (
        "\n" not in raw and begins_a_known_message(message, recent)
    ):
        return []
    detail = raw.rpartition("\n")[2][:_DETAIL_CHARS]
    position = number + (raw.count("\n") if is_cut_header(detail) else 0)
    return [Diagnostic(code="LOG_RECORD_CUT", position=position, detail=detail)]
