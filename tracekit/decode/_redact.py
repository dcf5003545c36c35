"""Payloads of Secrets and ConfigMaps replaced by a keyed hash, all else kept byte for byte.

A hash tells whether two payloads are the same without telling what they are. It is keyed, so
that nobody without the key can try out likely passwords.
Source: core/v1 Secret and ConfigMap; kubectl's last-applied annotation.
"""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson

from tracekit.decode._wire import (
    BYTES,
    MAGIC,
    Envelope,
    Field,
    WireError,
    iter_fields,
    read_envelope,
    write_bytes,
)

__all__ = ["UNTOLD", "make_redactor", "redact_json_object"]

_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_PREFIX: Final = "redacted:hmac-sha256:"
_MARKER: Final = b"k8s:redacted:"
# What to call a kind that a value does not tell although its key says Secret or ConfigMap.
UNTOLD: Final = "?"
_KINDS: Final = frozenset({"Secret", "ConfigMap"})
_READABLE: Final = frozenset({"protobuf", "json"})
_ENVELOPE_FIELDS: Final = 4
_METADATA, _ANNOTATIONS, _KEY, _VALUE = 1, 12, 1, 2
# Field numbers and JSON names of the payload maps; True where JSON holds base64.
_PAYLOAD_FIELDS: Final = {"Secret": (2, 4), "ConfigMap": (2, 3)}
_PAYLOADS: Final = {
    "Secret": {"data": True, "stringData": False},
    "ConfigMap": {"data": False, "binaryData": True},
}
_DAMAGE: Final = (IndexError, ValueError, TypeError, RecursionError)
# What an unreadable value of these kinds still shows: kind in JSON, in CBOR, which writes text
# or byte strings, or in a protobuf envelope (TypeMeta field 2) whose beginning is damaged.
_TRACES: Final = (
    b'"Secret"', b'"ConfigMap"',
    b"\x12\x06Secret", b"\x12\x09ConfigMap",
    b"\x64kind\x66Secret", b"\x64kind\x69ConfigMap",
    b"\x44kind\x46Secret", b"\x44kind\x49ConfigMap",
)  # fmt: skip

_Hash = Callable[[bytes], str]
_Rewrite = Callable[[bytes, Field], bytes]


def make_redactor(
    key: bytes, *, unreadable: bool = False
) -> Callable[[str, bytes, str], tuple[bytes, bool]]:
    """Return ``redact(kind, value, encoding)``, which gives (value, whether it changed).

    Payload maps of core/v1 Secrets and ConfigMaps keep their keys; each payload, and their
    last-applied annotation, becomes ``redacted:hmac-sha256:`` and 32 hex digits. Such a value
    that cannot be read becomes ``k8s:redacted:`` and a hash as a whole, and so does a
    protobuf value too broken to tell its kind. Ciphertext and other kinds stay.

    Args:
        key: Secret of the store; the same key gives the same hash.
        unreadable: Also replace every value that is encrypted, CBOR or opaque.
    """

    def redact(kind: str, value: bytes, encoding: str) -> tuple[bytes, bool]:
        if kind == UNTOLD and value:
            return _marker(value, key), True
        # Kind and encoding may be those of another state of the key: an unreadable one.
        if kind and kind not in _KINDS and encoding in _READABLE:
            return value, False
        if unreadable and value and encoding not in _READABLE:
            return _marker(value, key), True
        return _redact(kind in _KINDS, value, key)

    return redact


def _hasher(key: bytes) -> _Hash:
    def text(payload: bytes) -> str:
        return _PREFIX + hmac.digest(key, payload, "sha256").hex()[:32]

    return text


def _redact(suspect: bool, value: bytes, key: bytes) -> tuple[bytes, bool]:
    try:
        if value[:4] == MAGIC:
            return _redact_protobuf(value, _hasher(key))
        if value[:1] == b"{":
            return _redact_json(value, key)
    except _DAMAGE:
        if suspect or _may_be_payload(value):
            return _marker(value, key), True
        return value, False
    if value[:8] != b"k8s:enc:" and (suspect or _may_be_payload(value)) and value:
        return _marker(value, key), True
    return value, False


def _marker(value: bytes, key: bytes) -> bytes:
    return _MARKER + hmac.digest(key, value, "sha256").hex()[:32].encode("ascii")


def _may_be_payload(value: bytes) -> bool:
    """Tell whether an unreadable value may be a Secret or ConfigMap."""
    if value[:4] != MAGIC:
        return any(trace in value for trace in _TRACES)
    try:
        first = next(iter_fields(value[: value[5] + 6], 4, value[5] + 6))
        kinds = {
            value[f.start : f.end]
            for f in iter_fields(value, first.start, first.end)
            if first.number == 1 and f.number == 2 and f.wire == BYTES
        }
    except (StopIteration, *_DAMAGE):
        return True
    return not any(kinds) or not kinds.isdisjoint((b"Secret", b"ConfigMap"))


def _redact_protobuf(value: bytes, text: _Hash) -> tuple[bytes, bool]:
    envelope = read_envelope(value)
    if not envelope.kind:
        raise WireError("the envelope names no kind")
    if envelope.kind not in _KINDS:
        return value, False
    if any(f.number > _ENVELOPE_FIELDS for f in iter_fields(value, len(MAGIC), len(value))):
        raise WireError("the envelope holds what is no envelope's: a payload may have slipped out")
    if envelope.api_version != "v1":
        return value, False
    if not envelope.is_protobuf:
        raise WireError("the object is not plain protobuf")
    changed = _rewrite(
        value, len(MAGIC), len(value), {2: lambda v, f: _object(v, f, envelope, text)}
    )
    changed = MAGIC + changed
    return changed, changed != value


def _object(value: bytes, raw: Field, envelope: Envelope, text: _Hash) -> bytes:
    rewrites: dict[int, _Rewrite] = {
        number: lambda v, f: _entry(v, f, text) for number in _PAYLOAD_FIELDS[envelope.kind]
    }
    rewrites[_METADATA] = lambda v, f: _rewrite(v, f.start, f.end, {
        _ANNOTATIONS: lambda w, g: _annotation(w, g, text),
    })  # fmt: skip
    return _rewrite(value, raw.start, raw.end, rewrites)


def _rewrite(buf: bytes, i: int, end: int, rewrites: Mapping[int, _Rewrite]) -> bytes:
    """Return a message with some length-delimited fields' payloads replaced.

    Raises:
        WireError: If a field to replace is not length-delimited.
    """
    parts: list[bytes] = []
    for field in iter_fields(buf, i, end):
        rewrite = rewrites.get(field.number)
        if rewrite is None:
            parts.append(buf[field.begin : field.end])
            continue
        if field.wire != BYTES:
            raise WireError(f"field {field.number} is not a message")
        payload = rewrite(buf, field)
        if payload == buf[field.start : field.end]:
            parts.append(buf[field.begin : field.end])
        else:
            parts.append(write_bytes(field.number, payload))
    return b"".join(parts)


def _entry(buf: bytes, entry: Field, text: _Hash) -> bytes:
    def hashed(buf: bytes, field: Field) -> bytes:
        return text(buf[field.start : field.end]).encode("ascii")

    return _rewrite(buf, entry.start, entry.end, {_VALUE: hashed})


def _annotation(buf: bytes, entry: Field, text: _Hash) -> bytes:
    keys = [
        buf[f.start : f.end]
        for f in iter_fields(buf, entry.start, entry.end)
        if f.number == _KEY and f.wire == BYTES
    ]
    if _LAST_APPLIED.encode("ascii") in keys:
        return _entry(buf, entry, text)
    return buf[entry.start : entry.end]


def _redact_json(value: bytes, key: bytes) -> tuple[bytes, bool]:
    decoded = orjson.loads(value)
    redacted, changed = redact_json_object(decoded, key)
    if not changed:
        return value, False
    return orjson.dumps(redacted) + (b"\n" if value.endswith(b"\n") else b""), True


def redact_json_object(decoded: Mapping[str, Any], key: bytes) -> tuple[Mapping[str, Any], bool]:
    """Return a Kubernetes object with its payloads replaced, and whether any was.

    Args:
        decoded: JSON of one object; it is not changed.
        key: Secret of the store.

    Raises:
        WireError: If a Secret or ConfigMap has payloads of the wrong JSON type.
    """
    kind = decoded.get("kind")
    if kind not in _KINDS or decoded.get("apiVersion") != "v1":
        return decoded, False
    text = _hasher(key)
    copy = dict(decoded)
    for name, is_base64 in _PAYLOADS[kind].items():
        if decoded.get(name):
            copy[name] = _redact_map(_object_of(decoded[name]), is_base64, text)
    metadata = _object_of(decoded.get("metadata") or {})
    annotations = _object_of(metadata.get("annotations") or {})
    if _LAST_APPLIED in annotations:
        applied = annotations[_LAST_APPLIED]
        hidden = {_LAST_APPLIED: text(_payload(applied, is_base64=False))}
        copy["metadata"] = {**metadata, "annotations": {**annotations, **hidden}}
    return copy, copy != decoded


def _object_of(decoded: Any) -> dict[str, Any]:
    if not isinstance(decoded, dict):
        raise WireError("an object was expected")
    return decoded


def _redact_map(payloads: dict[str, Any], is_base64: bool, text: _Hash) -> dict[str, str]:
    hashed = {name: text(_payload(payload, is_base64)) for name, payload in payloads.items()}
    if not is_base64:
        return hashed
    return {name: b64encode(h.encode("ascii")).decode("ascii") for name, h in hashed.items()}


def _payload(payload: Any, is_base64: bool) -> bytes:
    """Return the bytes that are hashed: the same whether they came as JSON or as protobuf."""
    if not isinstance(payload, str):
        return orjson.dumps(payload)
    raw = payload.encode("utf-8", "surrogatepass")
    if not is_base64:
        return raw
    try:
        return b64decode(raw, validate=True)
    except binascii.Error:
        return raw
