"""Messages whose JSON is not an object: quantities, times, durations, int-or-strings, raw JSON.

Each function takes the message's bytes and returns the JSON value.
Source: the MarshalJSON methods of apimachinery ``resource``, ``intstr``, ``meta/v1``, ``runtime``.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

import orjson

from tracekit.decode._wire import (
    BYTES,
    VARINT,
    iter_fields,
    read_int32,
    read_int64,
    read_text,
)

__all__ = [
    "duration_text",
    "int_or_string",
    "micro_time_text",
    "quantity_text",
    "raw_json",
    "string_list",
    "time_text",
]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_GREGORIAN_CYCLE_S: Final = 146_097 * 86_400  # 400 years, after which the calendar repeats
_NS: Final = 1_000_000_000


@lru_cache(maxsize=4096)
def quantity_text(raw: bytes) -> str:
    """Return a ``resource.Quantity`` as its string; one never set is ``0``."""
    return read_text(_payload(raw)) or "0"


@lru_cache(maxsize=4096)
def time_text(raw: bytes) -> str | None:
    """Return a ``meta/v1.Time`` as RFC 3339 in UTC, whole seconds; None for the zero time."""
    return f"{_instant(_timestamp(raw)[0])}Z" if raw else None


def micro_time_text(raw: bytes) -> str | None:
    """Return a ``meta/v1.MicroTime`` as RFC 3339 in UTC with six digits; None for zero."""
    if not raw:
        return None
    seconds, nanos = _timestamp(raw)
    carry, nanos = divmod(nanos, _NS)
    return f"{_instant(seconds + carry)}.{nanos // 1000:06d}Z"


@lru_cache(maxsize=4096)
def _instant(seconds: int) -> str:
    # datetime ends with year 9999; the stored 64 bits do not.
    cycles, rest = divmod(seconds, _GREGORIAN_CYCLE_S)
    moment = _EPOCH + timedelta(seconds=rest)
    return f"{moment.year + 400 * cycles:04d}-{moment:%m-%dT%H:%M:%S}"


def _timestamp(raw: bytes) -> tuple[int, int]:
    seconds = nanos = 0
    for field in iter_fields(raw, 0, len(raw)):
        if field.wire != VARINT:
            continue
        if field.number == 1:
            seconds = read_int64(raw, field.start)[0]
        elif field.number == 2:
            nanos = read_int32(raw, field.start)[0]
    return seconds, nanos


def duration_text(raw: bytes) -> str:
    """Return a ``meta/v1.Duration`` as Go prints one: ``1h0m0s``, ``1.5s``, ``250ms``, ``0s``."""
    ns = 0
    for field in iter_fields(raw, 0, len(raw)):
        if field.number == 1 and field.wire == VARINT:
            ns = read_int64(raw, field.start)[0]
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    return sign + (_short_duration(ns) if ns < _NS else _long_duration(ns))


def _short_duration(ns: int) -> str:
    if not ns:
        return "0s"
    unit, name = (1, "ns") if ns < 1000 else (1000, "µs") if ns < 1_000_000 else (1_000_000, "ms")
    return _decimal(ns, unit) + name


def _long_duration(ns: int) -> str:
    minutes, ns = divmod(ns, 60 * _NS)
    hours, minutes = divmod(minutes, 60)
    text = f"{hours}h" if hours else ""
    text += f"{minutes}m" if hours or minutes else ""
    return f"{text}{_decimal(ns, _NS)}s"


def _decimal(count: int, unit: int) -> str:
    whole, rest = divmod(count, unit)
    digits = str(unit + rest)[1:].rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)


def int_or_string(raw: bytes) -> int | str:
    """Return an ``intstr.IntOrString``: type 0 is the integer, 1 the string."""
    kind, number, text = 0, 0, ""
    for field in iter_fields(raw, 0, len(raw)):
        if field.number == 3 and field.wire == BYTES:
            text = read_text(raw[field.start : field.end])
        elif field.wire == VARINT and field.number == 2:
            number = read_int32(raw, field.start)[0]
        elif field.wire == VARINT and field.number == 1:
            kind = read_int64(raw, field.start)[0]
    return text if kind == 1 else number


def string_list(raw: bytes) -> list[str]:
    """Return a message that only wraps a list of strings (``Verbs``, ``ExtraValue``)."""
    fields = (f for f in iter_fields(raw, 0, len(raw)) if f.number == 1 and f.wire == BYTES)
    return [read_text(raw[f.start : f.end]) for f in fields]


def raw_json(raw: bytes) -> Any:
    """Return the JSON inside a ``FieldsV1`` or ``RawExtension``; None where there is none.

    Raises:
        ValueError: If the bytes inside are not JSON.
    """
    payload = _payload(raw)
    return orjson.loads(payload) if payload else None


def _payload(raw: bytes) -> bytes:
    """Return field 1 of a message that has no other."""
    if raw[:1] == b"\x0a" and raw[1] == len(raw) - 2 < 128:
        return raw[2:]
    payload = b""
    for field in iter_fields(raw, 0, len(raw)):
        if field.number == 1 and field.wire == BYTES:
            payload = raw[field.start : field.end]
    return payload
