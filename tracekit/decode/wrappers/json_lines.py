"""A log line inside a JSON object: docker json-file, fluent-bit, journald, cloud exports.

docker cuts at 16 KiB: a part without a last newline goes on in the next of its stream.

Source: docker ``daemon/logger/jsonfilelog``; ``systemd.journal-fields(7)``; fluent-bit's
Kubernetes filter.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

import orjson

from tracekit.decode.log_origin import origin_of_words
from tracekit.decode.wrappers.peeled import HEADER, Peeled, to_us

__all__ = ["peel"]

_DOCKER: Final = re.compile(r'\{\s*"(?:log|stream|time|attrs)":')
_TEXT_KEYS: Final = ("MESSAGE", "message", "msg", "textPayload", "_raw", "line", "log")
_TIME_KEYS: Final = ("time", "@timestamp", "timestamp", "log_time")
_BROKEN: Final = re.compile(r'\{\s*"log":\s*"((?:[^"\\]|\\.)*)')
_BROKEN_TIME: Final = re.compile(r'"time"?:\s*"([^"]+)"')


def peel(line: str) -> Peeled | None:
    """Take the line out of a JSON object; None when the object is a record of its own."""
    if not line.startswith("{"):
        return None
    try:
        record = orjson.loads(line)
    except orjson.JSONDecodeError:
        return _broken(line)
    if not isinstance(record, dict):
        return None
    if isinstance(record.get("log"), str) and _DOCKER.match(line):
        return _docker(record)
    key = next((k for k in _TEXT_KEYS if isinstance(record.get(k), str)), None)
    if key is None or not (HEADER.match(record[key]) or "__REALTIME_TIMESTAMP" in record):
        return None
    component, node = _origin(record)
    text = record[key].rstrip("\n")
    stream = f"{component} {node} {record.get('stream', '')} {record.get('_PID', '')}"
    return Peeled(
        text=text, at_us=_time(record), stream=stream, component=component, node=node, strong=True
    )


def _docker(record: dict[str, Any]) -> Peeled:
    text = record["log"]
    whole = text.endswith("\n") or not {"stream", "time"} <= record.keys()
    component, node = _origin(record)
    return Peeled(
        text=text.rstrip("\n").removesuffix("\r"),
        at_us=_time(record),
        stream=str(record.get("stream", "")),
        partial=not whole,
        component=component,
        node=node,
        strong=True,
    )


def _broken(line: str) -> Peeled | None:
    """Read what a damaged docker line still tells."""
    match = _BROKEN.match(line)
    if match is None:
        return None
    try:
        text = json.loads(f'"{match[1]}"', strict=False)
    except ValueError:
        text = match[1]
    time = _BROKEN_TIME.search(line, match.end())
    at_us = to_us(time[1]) if time is not None else None
    words = str(text).encode("utf-8", "replace").decode().rstrip("\n")
    return Peeled(text=words, at_us=at_us, strong=True, damaged=True)


def _time(record: dict[str, Any]) -> int | None:
    micros = record.get("__REALTIME_TIMESTAMP")
    if isinstance(micros, str) and micros.isdecimal():
        return int(micros)
    found = (record[k] for k in _TIME_KEYS if isinstance(record.get(k), str))
    return next((at for at in map(to_us, found) if at is not None), None)


def _origin(record: dict[str, Any]) -> tuple[str | None, str | None]:
    pod = record.get("kubernetes")
    if isinstance(pod, dict):
        component, node = origin_of_words(f"{pod.get('pod_name')} {pod.get('container_name')}")
        return component, str(pod["host"]) if pod.get("host") else node
    unit, host = record.get("_SYSTEMD_UNIT"), record.get("_HOSTNAME")
    if isinstance(unit, str):
        component, _ = origin_of_words(unit.removesuffix(".service"))
        return component, str(host) if host else None
    return None, None
