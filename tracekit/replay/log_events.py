"""Kubernetes Events that a log tells of: recorders write them beside sending them.

Controllers log ``Event occurred`` (``Event(v1.ObjectReference{...})`` before 1.19); an event
that the API server refused stands whole, as Go prints it, in the line that says so.

Source: client-go ``tools/record/event.go`` recordToSink, ``tools/events/event_broadcaster.go``;
facts/formats.md 1.5; samples 04, 10, 13, 43.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["EVENT_WORDS", "LoggedEvent", "logged_event"]

EVENT_WORDS: Final = (
    "Event occurred",
    "Event(v1.ObjectReference{",
    "Server rejected event",
    "Regarding:v1.ObjectReference{",
)
"""Words of which each such message has one."""

_REFERENCE: Final = (
    r'Kind:"(?P<kind>[^"]*)", Namespace:"(?P<namespace>[^"]*)", '
    r'Name:"(?P<name>[^"]*)", UID:"(?P<uid>[^"]*)"'
)
_QUOTED: Final = re.compile(
    rf"Event\(v1\.ObjectReference\{{{_REFERENCE}[^}}]*\}}\): "
    r"type: '(?P<type>\w*)' reason: '(?P<reason>\w*)' (?P<message>.*)",
    re.DOTALL,
)
_DUMPED: Final = re.compile(rf"(?:Regarding|InvolvedObject):v1\.ObjectReference\{{{_REFERENCE}")
_PARTS: Final = {
    "reason": re.compile(r'\bReason:"(\w*)"'),
    "message": re.compile(r'\b(?:Note|Message):"((?:[^"\\]|\\.)*)"'),
    "type": re.compile(r'\bType:"(\w*)"'),
    "reporter": re.compile(r'\b(?:ReportingController|Component):"([^"]+)"'),
}
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)

_Fields = Callable[[str], Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedEvent:
    """One event that a log record tells of.

    Attributes:
        stamp_us: Time of the record in its log's yearless clock; None without one.
        wrapped_us: Time that the record's wrapping tells, µs UTC.
        reporter: Component that reported it, where the record tells.
        is_lost: The API server refused it, so the log alone has it.
    """

    source_id: str
    record_no: int
    stamp_us: int | None
    wrapped_us: int | None
    namespace: str
    kind: str
    name: str
    uid: str
    reason: str
    type: str
    message: str
    reporter: str | None = None
    is_lost: bool = False


def logged_event(row: Mapping[str, Any], fields: _Fields) -> LoggedEvent | None:
    """Read a row of ``log_lines`` as an event; None when it tells of none.

    Args:
        row: source_id, record_no, stamp_us, wrapped_us, message, structured and raw.
        fields: Parses the key=value pairs of a structured record.
    """
    if row["structured"]:
        return _occurred(row, fields) if row["message"] == EVENT_WORDS[0] else None
    if (match := _QUOTED.search(row["message"])) is not None:
        return _event(row, match.groupdict())
    if (match := _DUMPED.search(row["message"])) is not None:
        found = {name: part.search(row["message"]) for name, part in _PARTS.items()}
        told = {name: _ESCAPED.sub(r"\1", m[1]) if m else "" for name, m in found.items()}
        if told["reason"]:
            return _event(row, match.groupdict() | told, is_lost=True)
    return None


def _occurred(row: Mapping[str, Any], fields: _Fields) -> LoggedEvent | None:
    pairs = fields(row["raw"])
    namespace, _, name = str(pairs.get("object", "")).rpartition("/")
    if not name or not pairs.get("reason"):
        return None  # cut before it says what happened
    told = {key: str(pairs.get(key, "")) for key in ("kind", "type", "reason")}
    message = str(pairs.get("message", pairs.get("note", "")))
    return _event(row, {"namespace": namespace, "name": name, "uid": "", "message": message} | told)


def _event(
    row: Mapping[str, Any], told: Mapping[str, str], *, is_lost: bool = False
) -> LoggedEvent:
    return LoggedEvent(
        source_id=row["source_id"],
        record_no=row["record_no"],
        stamp_us=row["stamp_us"],
        wrapped_us=row["wrapped_us"],
        namespace=told["namespace"],
        kind=told["kind"],
        name=told["name"],
        uid=told["uid"],
        reason=told["reason"],
        type=told["type"],
        message=told["message"],
        reporter=told.get("reporter") or None,
        is_lost=is_lost,
    )
