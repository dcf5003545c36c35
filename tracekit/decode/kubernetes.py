"""What etcd stores for a Kubernetes object, read: whose it is, and its JSON.

Four kinds of value exist: ``k8s``, a zero byte and protobuf for built-in kinds, JSON for
custom resources, CBOR behind a feature gate, and ciphertext. The last two stay opaque.
Source: apiserver storage (``runtime.Unknown``, ``serializer/cbor``, ``value/encrypt``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import orjson

from tracekit.decode._messages import decode_message
from tracekit.decode._redact import make_redactor, redact_json_object
from tracekit.decode._schema import message_of
from tracekit.decode._wire import (
    BYTES,
    KNOWN_TYPES,
    MAGIC,
    PLAIN_TAIL,
    Envelope,
    WireError,
    iter_fields,
    read_envelope,
    read_text,
    read_varint,
)
from tracekit.errors import DecodeError

__all__ = [
    "DecodedValue",
    "ValueMeta",
    "decode_value",
    "make_redactor",
    "read_meta",
    "redact_json_object",
]

_CBOR: Final = b"\xd9\xd9\xf7"
_ENCRYPTED: Final = b"k8s:enc:"
_METADATA: Final = "meta.v1.ObjectMeta"
_DAMAGE: Final = (IndexError, ValueError, RecursionError)


@dataclass(frozen=True, slots=True)
class ValueMeta:
    """Whose value it is, read without decoding the object.

    Attributes:
        encoding: protobuf, json, cbor, encrypted, opaque (unreadable) or none (no bytes).
        api_version, kind, namespace, name, uid: As the object says; empty when it does not,
            or when it is not readable.
    """

    encoding: str
    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True)
class DecodedValue:
    """A stored value as JSON.

    Attributes:
        object: The Kubernetes JSON of the stored fields; None for an opaque value.
        unknown_kind: The kind is not in the table; only its metadata is read.
        unknown_fields: Fields of a newer Kubernetes, as ``Message.number``; they are in the
            value but not in ``object``.
    """

    object: dict[str, Any] | None
    unknown_kind: bool
    unknown_fields: tuple[str, ...]


_NAMELESS: Final = {
    name: ValueMeta(name, "", "", "", "", "") for name in ("cbor", "encrypted", "opaque", "none")
}
_OPAQUE: Final = _NAMELESS["opaque"]


def read_meta(value: bytes) -> ValueMeta:
    """Read whose value it is; never raises, an unreadable value is ``opaque``.

    Source: apimachinery ``meta/v1`` ObjectMeta: 1 name, 3 namespace, 5 uid.
    """
    try:
        if value[:4] == MAGIC:
            return _leading_meta(value) or _protobuf_meta(value)
        if value[:1] == b"{":
            return _json_meta(orjson.loads(value), "json")
    except _DAMAGE:
        return _OPAQUE
    if value[:3] == _CBOR:
        return _NAMELESS["cbor"]
    if value[:8] == _ENCRYPTED:
        return _NAMELESS["encrypted"]
    return _OPAQUE if value else _NAMELESS["none"]


def _leading_meta(value: bytes) -> ValueMeta | None:
    """Read the layout every API server writes; None for any other.

    That is typeMeta, raw and two empty strings, and in raw ObjectMeta first with its strings
    in order, present even when empty, each shorter than 128 bytes.
    """
    try:
        i = value[5] + 6
        types = KNOWN_TYPES.get(value[4:i])
        if types is None or value[i] != 0x12:
            return None
        length, i = read_varint(value, i + 1)
        if value[i + length :] != PLAIN_TAIL or value[i] != 0x0A:
            return None
        texts = _leading_texts(value, i, i + length)
    except IndexError:
        return None
    return texts and ValueMeta("protobuf", *types, *texts)


def _leading_texts(value: bytes, i: int, end: int) -> tuple[str, str, str] | None:
    """Return namespace, name and uid of the ObjectMeta whose tag is at ``i``."""
    length, i = read_varint(value, i + 1)
    end = min(end, i + length)
    name_len = value[i + 1]
    generate = i + 2 + name_len
    generate_len = value[generate + 1]
    space = generate + 2 + generate_len
    space_len = value[space + 1]
    link = space + 2 + space_len
    link_len = value[link + 1]
    uid = link + 2 + link_len
    uid_len = value[uid + 1]
    tags = value[i], value[generate], value[space], value[link], value[uid]
    if tags != (0x0A, 0x12, 0x1A, 0x22, 0x2A) or uid + 2 + uid_len > end:
        return None
    if (name_len | generate_len | space_len | link_len | uid_len) > 127:
        return None
    return (
        str(value[space + 2 : link], "utf-8", "replace"),
        str(value[i + 2 : generate], "utf-8", "replace"),
        str(value[uid + 2 : uid + 2 + uid_len], "utf-8", "replace"),
    )


def _protobuf_meta(value: bytes) -> ValueMeta:
    envelope = read_envelope(value)
    if _is_json(envelope):
        return _json_meta(orjson.loads(value[envelope.start : envelope.end]), "protobuf")
    if not envelope.is_protobuf:
        return _OPAQUE
    try:
        texts = _metadata_texts(value, envelope)
    except _DAMAGE:
        texts = {}
    named = (texts.get(number, "") for number in (3, 1, 5))
    return ValueMeta("protobuf", envelope.api_version, envelope.kind, *named)


def _metadata_texts(value: bytes, envelope: Envelope) -> dict[int, str]:
    texts: dict[int, str] = {}
    for outer in iter_fields(value, envelope.start, envelope.end):
        if outer.number == 1 and outer.wire == BYTES:
            for field in iter_fields(value, outer.start, outer.end):
                if field.number < 6 and field.wire == BYTES:
                    texts[field.number] = read_text(value[field.start : field.end])
    return texts


def _json_meta(decoded: Any, encoding: str) -> ValueMeta:
    if not isinstance(decoded, dict):
        return _OPAQUE
    metadata = decoded.get("metadata")
    if not isinstance(metadata, dict):
        metadata = {}
    words = (
        *(decoded.get(name) for name in ("apiVersion", "kind")),
        *(metadata.get(name) for name in ("namespace", "name", "uid")),
    )
    return ValueMeta(encoding, *(word if isinstance(word, str) else "" for word in words))


def _is_json(envelope: Envelope) -> bool:
    return envelope.content_type == "application/json" and not envelope.content_encoding


def decode_value(value: bytes) -> DecodedValue:
    """Decode a stored value to the JSON the API server would show for it.

    Returns:
        The object; ``object`` is None for CBOR, ciphertext, and bytes of no known kind.

    Raises:
        DecodeError: If a protobuf or JSON value is broken.
    """
    try:
        if value[:4] == MAGIC:
            return _decode_protobuf(value)
        if value[:1] == b"{":
            return DecodedValue(orjson.loads(value), False, ())
    except _DAMAGE as damage:
        words = str(damage) if isinstance(damage, ValueError) else "its bytes end too early"
        raise DecodeError(f"a stored value is broken: {words}") from damage
    return DecodedValue(None, False, ())


def _decode_protobuf(value: bytes) -> DecodedValue:
    envelope = read_envelope(value)
    if _is_json(envelope):
        return DecodedValue(orjson.loads(value[envelope.start : envelope.end]), False, ())
    if not envelope.is_protobuf:
        words = envelope.content_encoding or envelope.content_type
        raise WireError(f"its object is stored as {words!r}")
    message = message_of(envelope.api_version, envelope.kind)
    head = {"kind": envelope.kind, "apiVersion": envelope.api_version}
    if message is None:
        return DecodedValue(head | _metadata_only(value, envelope), True, ())
    fields, unknown = decode_message(message, value, envelope.start, envelope.end)
    return DecodedValue(head | fields, False, unknown)


def _metadata_only(value: bytes, envelope: Envelope) -> dict[str, Any]:
    """Read field 1, which is ObjectMeta in every stored kind."""
    for field in iter_fields(value, envelope.start, envelope.end):
        if field.number == 1 and field.wire == BYTES:
            return {"metadata": decode_message(_METADATA, value, field.start, field.end)[0]}
    return {"metadata": {}}
