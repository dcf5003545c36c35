"""Records that are no klog text: klog's JSON and test form, zap, controller-runtime, logrus.

Each becomes the columns of a record, and a body from which its pairs are read again.

Source: klog v2 ``buffer.go`` SprintHeader (ktesting); zap and controller-runtime encoders;
logrus TextFormatter; facts/formats.md 1.1, 1.4; sample 67.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import orjson

from tracekit.decode.json_fields import read_record
from tracekit.decode.json_rows import epoch_us, severity_of
from tracekit.decode.klog_fields import unquote
from tracekit.decode.wrappers.peeled import YEARLESS, to_us

__all__ = ["OtherRecord", "read_other", "stamp_of"]

_KTESTING: Final = re.compile(
    r"\s*(?P<caller>[\w./-]+\.go:\d+): (?P<head>[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6})\] (?P<text>.*)",
    re.DOTALL,
)
_HEADLESS: Final = re.compile(r"(?P<caller>[\w./-]+\.go:\d+)\] (?P<text>.*)", re.DOTALL)
_CONSOLE: Final = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)\t"
    r"(?P<level>[A-Z][A-Za-z]+(?:\(-?\d+\))?)\t(?P<rest>.*)",
    re.DOTALL,
)
_LOGRUS: Final = re.compile(
    r'time="(?P<time>[^"]+)" level=(?P<level>\w+) msg=(?P<text>"(?:[^"\\]|\\.)*"|\S+)(?P<rest>.*)',
    re.DOTALL,
)
_PAIR_START: Final = re.compile(r' (?=[A-Za-z_][\w.\-/]*=(?:["\[{<\-\d]|true\b|false\b|null\b))')
_LOGGER: Final = re.compile(r"([\w./-]+): (.*)", re.DOTALL)
_TS: Final = re.compile(r'"ts":\s*(\d{12,14})(?:\.(\d{1,9}))?\s*[,}]')
_LEVELS: Final = {
    "error": "E", "err": "E", "warn": "W", "warning": "W", "fatal": "F", "panic": "F",
    "dpanic": "F", "critical": "F",
}  # fmt: skip
_SECONDS_LIMIT: Final = 100_000_000_000  # epoch seconds stay below until the year 5138


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherRecord:
    """One record of another logger.

    Attributes:
        body: klog text or JSON with the same pairs; empty for a text message.
        at_us: Absolute time the record tells, µs since 1970 UTC.
        stamp: Time without a year.
    """

    severity: str | None
    message: str
    caller: str | None = None
    body: str = ""
    at_us: int | None = None
    stamp: YEARLESS | None = None


def read_other(text: str) -> OtherRecord | None:
    """Read a line as a record of another logger; None when it is none."""
    if text.startswith("{"):
        return _json(text)
    if text.startswith("time="):
        return _logrus(text)
    if (match := _KTESTING.match(text)) is not None:
        return _ktesting(match)
    if (match := _CONSOLE.match(text)) is not None:
        return _console(match)
    if (match := _HEADLESS.match(text)) is not None:
        return OtherRecord(severity=None, message=match["text"], caller=match["caller"])
    return None


def _json(text: str) -> OtherRecord | None:
    record = read_record(text)
    if record is None:
        return None
    message = record.get("msg", record.get("message"))
    if not isinstance(message, str) or not record.keys() & {"ts", "level", "time", "severity"}:
        return None
    level = record.get("level", record.get("severity"))
    caller = record.get("caller")
    return OtherRecord(
        severity=severity_of(record) if level is None else _severity(str(level)),
        message=message,
        caller=caller if isinstance(caller, str) else None,
        body=text,
        at_us=_json_time(text, record),
    )


def _json_time(text: str, record: dict[str, Any]) -> int | None:
    """Read RFC 3339, epoch seconds (zap) or epoch milliseconds (klog)."""
    value = record.get("ts", record.get("time", record.get("timestamp")))
    if isinstance(value, str):
        return to_us(value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    if 0 < value < _SECONDS_LIMIT:
        return round(value * 1_000_000)
    match = _TS.search(text)
    return epoch_us(match[1], match[2]) if match is not None else None


def _severity(level: str) -> str:
    """Give klog's letter of a level; ``Level(-2)`` is V(2), thus information."""
    return _LEVELS.get(level.casefold(), "I")


def _ktesting(match: re.Match[str]) -> OtherRecord:
    """Read klog's form for Go tests: no process id, the message is not quoted."""
    head, text = match["head"], match["text"]
    first = _PAIR_START.search(text)
    message, pairs = (text, "") if first is None else (text[: first.start()], text[first.start() :])
    named = _LOGGER.fullmatch(message)
    if named is not None and ("/" in named[1] or named[1][:1].isupper()):
        message, pairs = named[2], f" logger={_quoted(named[1])}{pairs}"
    return OtherRecord(
        severity=head[0],
        message=message,
        caller=match["caller"],
        body=f"{head}       0 {match['caller']}] {_quoted(message)}{pairs}",
        stamp=stamp_of(head),
    )


def stamp_of(header: str) -> YEARLESS | None:
    """Read the stamp of a klog header; None where it is no time."""
    month, day = int(header[1:3]), int(header[3:5])
    hour, minute, second = int(header[6:8]), int(header[9:11]), int(header[12:14])
    if not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 60):
        return None
    return month, day, ((hour * 60 + minute) * 60 + second) * 1_000_000 + int(header[15:21])


def _console(match: re.Match[str]) -> OtherRecord:
    """Read zap's console form: tabs between time, level, logger, message and pairs."""
    parts = match["rest"].split("\t")
    pairs = read_record(parts[-1]) if len(parts) > 1 and parts[-1].startswith("{") else None
    if pairs is not None:
        parts.pop()
    body: dict[str, Any] = {"level": match["level"], "time": match["time"]}
    if len(parts) > 1:
        body["logger"] = parts[0]
    caller = parts[1] if len(parts) > 2 and ".go:" in parts[1] else None
    body |= {"message": parts[-1], **(pairs or {})}
    return OtherRecord(
        severity=_severity(match["level"]),
        message=parts[-1],
        caller=caller,
        body=orjson.dumps(body).decode(),
        at_us=to_us(match["time"]),
    )


def _logrus(text: str) -> OtherRecord | None:
    match = _LOGRUS.match(text)
    if match is None:
        return None
    quoted = match["text"] if match["text"].startswith('"') else _quoted(match["text"])
    severity = _severity(match["level"])
    head = f"{severity}0101 00:00:00.000000       0 logrus] "
    return OtherRecord(
        severity=severity,
        message=unquote(quoted[1:-1]),
        body=f"{head}{quoted}{match['rest']}",
        at_us=to_us(match["time"]),
    )


def _quoted(text: str) -> str:
    return orjson.dumps(text).decode()
