"""Lines of a wrapped or mixed log put together into records, stream by stream.

A record begins with a header; what follows it in the same stream belongs to it as far as
its look says so (indented lines, multi-line values, utiltrace steps, stacks). Other text is
a record of its own. Each physical line is kept in the ``raw`` of exactly one record.

Source: klog v2 ``serialize/keyvalues.go`` (``=<`` values); utiltrace ``trace.go``; Go's
``runtime`` stack format; facts/formats.md 1.2 to 1.5.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from tracekit.decode.log_origin import component_of_caller, origin_of_words
from tracekit.decode.other_loggers import OtherRecord, read_other
from tracekit.decode.wrappers import HEADER, Peeled, Prefixes, unwrap
from tracekit.decode.wrappers.peeled import YEARLESS, to_us
from tracekit.model.diagnostics import Diagnostic

__all__ = ["Assembler", "LogRecord"]

_SECTION: Final = re.compile(r"(?:\* )?==> (\S.*?)(?: \[([0-9a-f]+)\])? <==\s*")
_VIEWER_TIME: Final = re.compile(
    r"\s*\"?(?:log_time|@timestamp|_?time|timestamp)\"?\s*: ?\"?(\d{4}-\d\d-\d\dT[^\s\"]+)\"?,?\s*"
)
_PREAMBLE: Final = (
    "Log file created at: ", "Running on machine: ", "Binary: Built with ", "Log line format: ",
)  # fmt: skip
_DUMP: Final = re.compile(r"goroutine \d+ \[|panic: |fatal error: |SIG[A-Z]+: ")
_DUMP_LINE: Final = re.compile(
    r"goroutine \d+ \[|created by |exit status |\[signal |\.\.\.|r\w\w? +0x"
    r"|[\w./*()\[\]\-·%~,{}]+\(.*\)$"
)
_STEP: Final = re.compile(r"Trace\[\d+\]: ")
_TABLE_ROW: Final = re.compile(r"\s*(?:Normal|Warning)\s+\w+\s|.*\bFailedScheduling\b")
_COMMENT: Final = re.compile(r"\s*(?:#|\$ |//)")
_CALLER: Final = re.compile(r".{21} *(?:\d+ )?(\S+:\d+)\]")
_LONGEST_CALL: Final = 2000  # characters of a call in a stack
_SPLIT_BYTES: Final = 8192  # conmon's buffer; containerd and docker cut at 16384


@dataclass(slots=True, kw_only=True)
class LogRecord:
    """One record on its way into rows.

    Attributes:
        kind: klog, other (a record of another logger) or text.
        line: 1-based line of the log on which it starts.
        last: 1-based line on which it ends.
        raw: Its physical lines.
        body: The same lines without their wrappings.
        wrapped: How sure its first line's wrapping was: bare, weak or strong.
        width: Characters of its only line; 0 when it has several.
    """

    kind: str
    line: int
    last: int
    raw: list[str]
    body: list[str]
    at_us: int | None
    stamp: YEARLESS | None
    component: str | None
    node: str | None
    wrapped: str
    other: OtherRecord | None = None
    in_block: bool = False
    in_dump: bool = False

    @property
    def width(self) -> int:
        """Characters of its only line; 0 when it has several."""
        return len(self.raw[0]) if len(self.raw) == 1 else 0


@dataclass(slots=True)
class _Part:
    """A line of a stream that still goes on."""

    line: int
    raw: list[str]
    text: list[str]
    first: Peeled


@dataclass(slots=True)
class Assembler:
    """Takes the lines of a log in order and gives back whole records."""

    done: list[LogRecord] = field(default_factory=list)
    damage: list[Diagnostic] = field(default_factory=list)
    prefixes: Prefixes = field(default_factory=Prefixes)
    section: str = ""
    _open: dict[str, LogRecord] = field(default_factory=dict)
    _parts: dict[str, _Part] = field(default_factory=dict)
    _newest: LogRecord | None = None
    _newest_stream: str = ""
    _time_ahead: tuple[str, int] | None = None

    def add(self, line_no: int, line: str) -> None:
        """Take in one physical line without its newline."""
        open_record = self._newest
        if open_record is not None and open_record.in_block and line[:1] in {"\t", " "}:
            # A value of several lines may quote log lines.
            self._extend(open_record, line_no, [line], line)
            return
        found = unwrap(line, self.prefixes)
        if found.damaged:
            self._note("LOG_WRAPPER_DAMAGED", line_no, line)
        part = self._parts.pop(found.stream, None)
        if found.partial:
            part = part or _Part(line_no, [], [], found)
            part.raw.append(line)
            part.text.append(found.text)
            self._parts[found.stream] = part
        elif part is not None:
            part.first.text = "".join([*part.text, found.text])
            self._take(part.line, line_no, [*part.raw, line], part.first)
        else:
            self._take(line_no, line_no, [line], found)

    def finish(self) -> None:
        """Close what is open at the end of the log."""
        for part in self._parts.values():
            part.first.text = "".join(part.text)
            if len(part.text[-1].encode()) >= _SPLIT_BYTES:
                self._note("LOG_RECORD_CUT", part.line, part.text[-1][-80:])
            self._take(part.line, part.line, part.raw, part.first)
        self._parts.clear()
        self.done += self._open.values()
        self._open.clear()
        self._newest = None

    def drain(self) -> list[LogRecord]:
        """Return the records closed so far, in the order of their first lines."""
        records = sorted(self.done, key=lambda r: r.line)
        self.done = []
        return records

    def _take(self, first: int, last: int, raw: list[str], found: Peeled) -> None:
        text = found.text
        before = self._before(found)
        if HEADER.match(text):
            self._begin("klog", first, last, raw, found)
        elif (other := read_other(text)) is not None and not _is_body(before, text):
            self._begin("other", first, last, raw, found).other = other
        elif (at_us := self._viewer_time(text)) is not None:
            self._time(at_us, last, raw)
        elif (section := _SECTION.fullmatch(text)) is not None:
            self.section = section[1]
            self._begin("section", first, last, raw, found)
        elif before is not None and _goes_on(before, found):
            self._extend(before, last, raw, text)
        elif text.strip():
            self._text(first, last, raw, found)

    def _before(self, found: Peeled) -> LogRecord | None:
        """Return the open record of a line's stream.

        MicroShift names the component on the header only: what follows has less around it.
        """
        stream = f"{self.section}|{found.stream}"
        before, newest = self._open.get(stream), self._newest
        if before is not None or newest is None or newest.wrapped == "bare":
            return before
        text = found.text
        goes_on = newest.in_dump or newest.in_block or text[:1] in {"\t", " "}
        is_rest = goes_on or bool(_STEP.match(text) or _DUMP.match(text))
        return newest if is_rest and self._newest_stream.startswith(stream) else None

    def _text(self, first: int, last: int, raw: list[str], found: Peeled) -> None:
        record = self._begin("text", first, last, raw, found)
        record.in_dump = _DUMP.match(found.text) is not None
        if found.text.startswith(_PREAMBLE) or (found.strong and not found.damaged):
            return
        is_rest = found.text.startswith(("\t", " >"))
        self._note("LOG_RECORD_ORPHAN" if is_rest else "LOG_LINE_UNSTRUCTURED", first, raw[0])

    def _begin(self, kind: str, first: int, last: int, raw: list[str], found: Peeled) -> LogRecord:
        component, node = found.component, found.node
        if self.section and component is None:
            component, node = origin_of_words(self.section)
        is_wrapped = found.strong or found.stream or found.text != raw[0]
        record = LogRecord(
            kind=kind, line=first, last=last, raw=raw, body=found.text.split("\n"),
            at_us=found.at_us, stamp=found.stamp, component=component, node=node,
            wrapped="strong" if found.strong else "weak" if is_wrapped else "bare",
            in_block=kind == "klog" and found.text.endswith("=<"),
        )  # fmt: skip
        if kind == "klog" and component is None and is_wrapped:
            caller = _CALLER.match(found.text)
            record.component = component_of_caller(caller[1]) if caller else None
        stream = f"{self.section}|{found.stream}"
        if (closed := self._open.pop(stream, None)) is not None:
            self.done.append(closed)
        self._open[stream] = self._newest = record
        self._newest_stream = stream
        if self._time_ahead is not None and record.at_us is None and kind == "klog":
            line, record.at_us = self._time_ahead
            record.raw.insert(0, line)
        self._time_ahead = None
        return record

    def _extend(self, record: LogRecord, last: int, raw: list[str], text: str) -> None:
        record.raw += raw
        record.body += text.split("\n")
        record.last = last
        if record.in_block and text.startswith(" >"):
            record.in_block = text.endswith("=<")
        elif not record.in_block and record.kind == "klog" and text.endswith("=<"):
            record.in_block = text.startswith(" >")
        record.in_dump = record.in_dump or _DUMP.match(text) is not None

    def _viewer_time(self, text: str) -> int | None:
        match = _VIEWER_TIME.fullmatch(text)
        if match is None or (self._newest is not None and self._newest.wrapped == "bare"):
            return None
        return to_us(match[1])

    def _time(self, at_us: int, last: int, raw: list[str]) -> None:
        """Give the time that a log viewer writes on a line of its own to its record."""
        record = self._newest
        if record is not None and record.at_us is None and record.kind == "klog":
            record.at_us, record.last = at_us, last
            record.raw += raw
        else:
            self._time_ahead = (raw[0], at_us)

    def _note(self, code: str, line: int, text: str) -> None:
        self.damage.append(Diagnostic(code=code, position=line, detail=text[:120]))


def _is_body(before: LogRecord | None, text: str) -> bool:
    """Tell a JSON line that is the body of a request, not a record."""
    return before is not None and before.body[-1].endswith("Body:") and text.startswith("{")


def _goes_on(record: LogRecord, found: Peeled) -> bool:
    """Tell whether a line without a header belongs to the record before it in its stream."""
    text = found.text
    if record.kind == "section" or (record.wrapped == "strong") != found.strong:
        return False
    if record.in_block:
        return True
    if _TABLE_ROW.match(text) or _COMMENT.match(text) or text.startswith(_PREAMBLE):
        return False
    if record.in_dump:
        is_short = len(text) <= _LONGEST_CALL
        return (
            not text.strip()
            or text[:1].isspace()
            or (is_short and _DUMP_LINE.match(text) is not None)
        )
    if not text.strip():
        return False
    if text[:1] in " \t)]}" or _STEP.match(text) or _DUMP.match(text):
        return record.kind != "text" or text[:1].isspace() or _STEP.match(text) is not None
    # Bare klog text: all up to the next header; inside a wrapping each write stands alone.
    return record.kind == "klog" and (record.wrapped != "strong" or record.body[-1].endswith(":"))
