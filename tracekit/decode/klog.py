"""klog and glog text logs: cut at record starts, years counted, every byte kept.

A record is a header line and all lines up to the next header. Splitting finds them in one
sweep per block; ``klog_rows`` makes the rows, in as many threads as there are.

Source: klog v2 ``klog.go``, ``klog_file.go``; glog writes the same.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO, Final

import numpy as np

from tracekit.decode.klog_fields import ends_open
from tracekit.decode.klog_rows import (
    NO_DAY,
    PREAMBLE,
    START,
    Bytes,
    Ints,
    Records,
    find_records,
    to_frame,
)
from tracekit.model.batches import Batch, Chunk, SourceContext
from tracekit.model.diagnostics import Diagnostic

__all__ = ["KlogChunk", "KlogDecoder", "KlogSession"]

_BLOCK_BYTES: Final = 16 << 20
_HEAD_BYTES: Final = 4 << 20  # how much of a source is looked at to tell who wrote it
_DETAIL_CHARS: Final = 120
_CYCLE_DAYS: Final = 1461  # days from 1 January of a leap year to that of the next
_HALF_YEAR_DAYS: Final = 180

_ANY_START: Final = re.compile(rb"^" + START.pattern, re.MULTILINE)
_CREATED: Final = re.compile(rb"^Log file created at: (\d{4})/\d\d/\d\d ", re.MULTILINE)
_MACHINE: Final = re.compile(rb"^Running on machine: (\S+)", re.MULTILINE)
_KUBELET_NODE: Final = re.compile(
    rb'\] (?:"(?:Attempting to register|Successfully registered) node" node="'
    rb'|FLAG: --hostname-override="'
    rb"|(?:Attempting to register|Successfully registered) node )"
    rb'([^"\s]+)'
)
# Files that only one component has; the caller of a header names them.
_WRITERS: Final[dict[str, tuple[bytes, ...]]] = {
    "kube-scheduler": (
        b"schedule_one.go", b"scheduling_queue.go", b"default_binder.go", b"generic_scheduler.go",
    ),
    "kubelet": (
        b"kubelet.go", b"pod_workers.go", b"kuberuntime_manager.go", b"kubelet_node_status.go",
    ),
    "kube-controller-manager": (
        b"controllermanager.go", b"replica_set.go", b"garbagecollector.go",
        b"node_lifecycle_controller.go", b"taint_eviction.go", b"taint_controller.go",
    ),
    "kube-apiserver": (b"apf_controller.go", b"available_controller.go", b"crd_finalizer.go"),
}  # fmt: skip


def _day_numbers() -> Ints:
    """Days since 1 January by month * 100 + day in a leap year, NO_DAY where none is."""
    days = np.full(10_000, NO_DAY, np.int64)
    passed = 0
    for month in range(1, 13):
        length = calendar.monthrange(2000, month)[1]
        days[month * 100 + 1 : month * 100 + 1 + length] = passed + np.arange(length)
        passed += length
    return days


_DAY_NUMBERS: Final = _day_numbers()


@dataclass(frozen=True, slots=True, eq=False)
class KlogChunk(Chunk):
    """A chunk with what splitting found out on the way.

    Attributes:
        records: Where its records are.
        days: Day of each header since 2000-01-01 in the log's yearless clock.
    """

    records: Records = field(kw_only=True)
    days: Ints = field(kw_only=True)


@dataclass(frozen=True, slots=True)
class _YearClock:
    """The day last seen and how many New Years had passed before it."""

    step: int = 0
    day: int | None = None

    def place(self, stamps: Bytes) -> tuple[Ints, _YearClock]:
        """Return the day of each header since 2000-01-01, and the clock behind the last.

        A step back by more than half a year is a New Year; a step ahead by more than half a
        year is a late line of the year before, not a new year for each such line.
        """
        digits = stamps[:, 1:5].astype(np.int64) - 48
        days = _DAY_NUMBERS[digits @ np.array([1000, 100, 10, 1])]
        known = days != NO_DAY
        seen = days[known]
        if not seen.size:
            return days, self
        before = np.concatenate([seen[:1] if self.day is None else [self.day], seen[:-1]])
        jump = seen - before
        turns = (jump < -_HALF_YEAR_DAYS).astype(np.int64) - (jump > _HALF_YEAR_DAYS)
        steps = self.step + np.cumsum(turns)
        days[known] = seen + steps * _CYCLE_DAYS
        return days, _YearClock(int(steps[-1]), int(seen[-1]))


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
        return KlogSession()

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
    """

    parallel = True

    def __init__(self, block_bytes: int = _BLOCK_BYTES) -> None:
        self._block = block_bytes
        self._head = bytearray()

    def split(self, stream: BinaryIO) -> Iterator[Chunk]:
        """Cut the stream at record starts; a chunk holds a block, or one record if longer.

        Yields:
            Chunks in the order of the log; the last one is flagged, an empty log has none.
        """
        parts: list[bytes | memoryview] = []
        line, clock = 1, _YearClock()
        block = _read(stream, self._block)
        while block:
            following = _read(stream, self._block)
            cut = _last_start(block) if following else len(block)
            parts.append(memoryview(block)[:cut] if cut else block)
            if cut:
                data = b"".join(parts)
                records = find_records(data, is_first=line == 1)
                days, clock = clock.place(records.stamps)
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
        data, damage = _as_utf8(chunk)
        if isinstance(chunk, KlogChunk):
            days = chunk.days
            records = chunk.records
            if data is not chunk.data:
                records = find_records(data, is_first=chunk.record_no == 1)
        else:
            records = find_records(data, is_first=chunk.record_no == 1)
            days, _ = _YearClock().place(records.stamps)
        frame = to_frame(data, records, days, chunk.record_no)
        damage += _unheaded(data, records, chunk.record_no)
        if chunk.last:
            damage += _cut(data, records, chunk.record_no)
        return Batch(table="log_lines", frame=frame, records=frame.height, diagnostics=damage)

    def facts(self) -> dict[str, str | int | None]:
        """Tell component and node as far as the log's beginning shows them.

        ``created_year`` is the year of a file's "Log file created at" line.
        """
        head = bytes(self._head)
        found = [
            name
            for name, files in _WRITERS.items()
            if any(b" " + file + b":" in head for file in files)
        ]
        component = found[0] if len(found) == 1 else None
        machine = _MACHINE.search(head)
        if machine is None and component == "kubelet":
            machine = _KUBELET_NODE.search(head)
        created = _CREATED.search(head)
        return {
            "component": component,
            "node": machine[1].decode("utf-8", "replace") if machine else None,
            "created_year": int(created[1]) if created else None,
        }

    def _remember(self, data: bytes) -> None:
        if len(self._head) < _HEAD_BYTES:
            self._head += data[: _HEAD_BYTES - len(self._head)]


def _read(stream: BinaryIO, size: int) -> bytes:
    """Read ``size`` bytes, or what is left; a pipe may give them in smaller pieces."""
    block = stream.read(size)
    if len(block) == size or not block:
        return block
    parts = [block]
    missing = size - len(block)
    while missing and (more := stream.read(missing)):
        parts.append(more)
        missing -= len(more)
    return b"".join(parts)


def _last_start(block: bytes) -> int:
    """Return where the last record starts that does so behind a newline of the block, else 0."""
    at = len(block)
    while (at := block.rfind(b"\n", 0, at)) >= 0:
        if START.match(block, at + 1):
            return at + 1
    return 0


def _as_utf8(chunk: Chunk) -> tuple[bytes, list[Diagnostic]]:
    """Return the chunk as valid UTF-8, with a diagnostic for each line that was not."""
    if chunk.data.isascii() or _is_utf8(chunk.data):
        return chunk.data, []
    damage = [
        Diagnostic(code="LOG_NOT_UTF8", position=chunk.record_no + number, detail=_shown(line))
        for number, line in enumerate(chunk.data.split(b"\n"))
        if not _is_utf8(line)
    ]
    return chunk.data.decode("utf-8", "replace").encode(), damage


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _shown(line: bytes) -> str:
    return line[: _DETAIL_CHARS + 4].decode("utf-8", "backslashreplace")[:_DETAIL_CHARS]


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
        damage.append(Diagnostic(code=code, position=position, detail=_shown(line)))
    return damage


def _cut(data: bytes, records: Records, first_line: int) -> list[Diagnostic]:
    """Report a log that stops inside its last record."""
    if not records.starts.size:
        return []
    raw = data[int(records.starts[-1]) :].decode()
    terminated = raw.endswith("\n")
    raw = raw.removesuffix("\n")
    if not ends_open(raw, terminated=terminated):
        return []
    position = first_line + int(records.lines[-1])
    detail = raw.rpartition("\n")[2][:_DETAIL_CHARS]
    return [Diagnostic(code="LOG_RECORD_CUT", position=position, detail=detail)]
