"""The key=value pairs of one JSON log record, as klog's text form would have them.

Source: component-base ``logs/json/json.go`` (``ts``, ``logger``, ``caller``, ``msg``, ``v``);
zap, controller-runtime and karpenter name the same things otherwise (facts/formats.md 1.4).
"""

from __future__ import annotations

from typing import Final

import orjson

from tracekit.model.objects import JSON

__all__ = ["HEADER_KEYS", "parse_json_fields", "read_record"]

HEADER_KEYS: Final = frozenset({"ts", "time", "level", "caller", "msg", "message", "v"})
"""Keys that a header tells, so they are no pairs of the message; klog's own only by need."""

_KLOG_KEYS: Final = frozenset({"ts", "caller", "msg", "v"})
_REFERENCES: Final = ({"name"}, {"name", "namespace"})


def read_record(raw: str) -> dict[str, JSON] | None:
    """Read a JSON record; a key that comes twice keeps its first place and its last value.

    Returns:
        The record; None where the text is no JSON object.
    """
    try:
        record = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    return record if isinstance(record, dict) else None


def parse_json_fields(raw: str) -> dict[str, JSON]:
    """Read the pairs of a JSON record without those that its header tells.

    Object references become ``namespace/name``, and ``err`` of an error stands first, as
    text has them. Text that is no JSON stands whole under ``""``.

    Source: klog ``KObj``, ``KObjs`` (String and MarshalLog); ``serialize.FormatKVs`` keeps
    the last of equal keys.
    """
    record = read_record(raw)
    if record is None:
        return {"": raw}
    named = _KLOG_KEYS if "level" not in record else HEADER_KEYS
    pairs = {key: _plain(value) for key, value in record.items() if key not in named}
    if "v" not in record and "err" in pairs and "level" not in record:
        logger = {"logger": pairs.pop("logger")} if "logger" in pairs else {}
        return {**logger, "err": pairs.pop("err"), **pairs}
    return pairs


def _plain(value: JSON) -> JSON:
    if isinstance(value, list):
        return [_reference(item) for item in value]
    return _reference(value)


def _reference(value: JSON) -> JSON:
    """Write an object reference as text does."""
    if not isinstance(value, dict) or value.keys() not in _REFERENCES:
        return value
    if not all(isinstance(part, str) for part in value.values()):
        return value
    namespace = value.get("namespace")
    return f"{namespace}/{value['name']}" if namespace else value["name"]
