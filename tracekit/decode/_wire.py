"""The protobuf wire format: varints, fields, lengths, and the envelope of a stored value.

Reading is unchecked where it is hot; a caller sees damage as ``IndexError`` (bytes end too
early) or as ``WireError``, and tells its own reader in one place.
Source: protobuf.dev, "Encoding"; apimachinery ``runtime.Unknown``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

__all__ = [
    "BYTES",
    "KNOWN_TYPES",
    "MAGIC",
    "PLAIN_TAIL",
    "VARINT",
    "Envelope",
    "WireError",
    "iter_fields",
    "read_envelope",
    "read_int32",
    "read_int64",
    "read_text",
    "read_varint",
    "skip_field",
    "write_bytes",
    "write_varint",
]

MAGIC: Final = b"k8s\x00"
VARINT: Final = 0
BYTES: Final = 2
_FIXED64, _GROUP, _END_GROUP, _FIXED32 = 1, 3, 4, 5
_MAX_VARINT_BITS: Final = 70
_MAX_TYPES: Final = 4096
_RAW_TAG: Final = 2 << 3 | BYTES
_U64: Final = (1 << 64) - 1

PLAIN_TAIL: Final = b"\x1a\x00\x22\x00"  # contentEncoding and contentType, both empty
# typeMeta with tag and length to (apiVersion, kind); a cluster has few of them.
KNOWN_TYPES: Final[dict[bytes, tuple[str, str]]] = {}


class WireError(ValueError):
    """The bytes are not the protobuf message they should be."""


class Envelope(NamedTuple):
    """A stored value taken apart: whose it is and where the object's own bytes lie.

    Attributes:
        start, end: Range of ``raw`` inside the value.
        content_encoding, content_type: Empty for plain protobuf.
    """

    api_version: str
    kind: str
    start: int
    end: int
    content_encoding: str
    content_type: str

    @property
    def is_protobuf(self) -> bool:
        """Tell whether ``raw`` is the object's plain protobuf."""
        kinds = ("", "application/vnd.kubernetes.protobuf")
        return not self.content_encoding and self.content_type in kinds


def read_varint(buf: bytes, i: int) -> tuple[int, int]:
    """Return the unsigned varint at ``i`` and the index after it.

    Raises:
        WireError: If it is longer than ten bytes.
    """
    byte = buf[i]
    if byte < 128:
        return byte, i + 1
    second = buf[i + 1]
    if second < 128:
        return byte & 127 | second << 7, i + 2
    value = byte & 127
    for shift in range(7, _MAX_VARINT_BITS, 7):
        i += 1
        byte = buf[i]
        value |= (byte & 127) << shift
        if byte < 128:
            return value & _U64, i + 1
    raise WireError("a varint is longer than ten bytes")


def read_int64(buf: bytes, i: int) -> tuple[int, int]:
    """Return the signed 64-bit varint at ``i`` and the index after it."""
    value, i = read_varint(buf, i)
    return (value - (1 << 64) if value >> 63 else value), i


def read_int32(buf: bytes, i: int) -> tuple[int, int]:
    """Return the signed 32-bit varint at ``i``, cut to 32 bits, and the index after it."""
    value, i = read_varint(buf, i)
    value &= 0xFFFFFFFF
    return (value - (1 << 32) if value >> 31 else value), i


def read_text(buf: bytes) -> str:
    """Return a string field's text; bytes that are no UTF-8 become U+FFFD, as in Go's JSON."""
    return buf.decode("utf-8", "replace")


def write_varint(value: int) -> bytes:
    """Return an unsigned varint."""
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def write_bytes(number: int, payload: bytes) -> bytes:
    """Return a length-delimited field with its tag."""
    return write_varint(number << 3 | BYTES) + write_varint(len(payload)) + payload


def skip_field(buf: bytes, i: int, tag: int) -> int:
    """Return the index after the value of a field whose tag ended at ``i``.

    Raises:
        WireError: If the field number is zero or the wire type does not exist.
    """
    wire, number = tag & 7, tag >> 3
    if not number:
        raise WireError("a field has number 0")
    if wire == VARINT:
        return read_varint(buf, i)[1]
    if wire == BYTES:
        length, i = read_varint(buf, i)
        return i + length
    if wire == _FIXED64:
        return i + 8
    if wire == _FIXED32:
        return i + 4
    if wire == _GROUP:
        return _skip_group(buf, i, number)
    raise WireError(f"a field has wire type {wire}")


def _skip_group(buf: bytes, i: int, number: int) -> int:
    # A stack of our own: groups nest as deep as a hostile value likes.
    open_groups = [number]
    while open_groups:
        tag, i = read_varint(buf, i)
        if tag & 7 == _GROUP:
            open_groups.append(tag >> 3)
        elif tag & 7 == _END_GROUP:
            if open_groups.pop() != tag >> 3:
                raise WireError("a group ends that was not open")
        else:
            i = skip_field(buf, i, tag)
    return i


class Field(NamedTuple):
    """One field on the wire.

    Attributes:
        begin, end: The whole field, tag included.
        start: First byte of the payload of a length-delimited field, else of the value.
    """

    number: int
    wire: int
    begin: int
    start: int
    end: int


def iter_fields(buf: bytes, i: int, end: int) -> Iterator[Field]:
    """Yield the fields of a message in wire order.

    Raises:
        WireError: If a field reaches beyond the message's end.
    """
    while i < end:
        begin = i
        tag, start = read_varint(buf, i)
        i = skip_field(buf, start, tag)
        if i > end:
            raise WireError("a field is longer than its message")
        if tag & 7 == BYTES:
            start = read_varint(buf, start)[1]
        yield Field(tag >> 3, tag & 7, begin, start, i)


def read_envelope(value: bytes) -> Envelope:
    """Take apart a value that starts with ``MAGIC``.

    Raises:
        WireError: If the envelope is broken or holds no object.

    Source: apimachinery ``runtime.Unknown``: 1 typeMeta, 2 raw, 3 contentEncoding, 4 contentType.
    """
    return _plain_envelope(value) or _any_envelope(value)


def _plain_envelope(value: bytes) -> Envelope | None:
    """Read the layout every API server writes: typeMeta, raw, two empty strings."""
    i = value[5] + 6
    types = KNOWN_TYPES.get(value[4:i])
    if types is None or value[i] != _RAW_TAG:
        return None
    length, i = read_varint(value, i + 1)
    if value[i + length :] != PLAIN_TAIL:
        return None
    return Envelope(*types, i, i + length, "", "")


def _any_envelope(value: bytes) -> Envelope:
    types, encoding, content_type = ("", ""), "", ""
    raw: tuple[int, int] | None = None
    for field in iter_fields(value, len(MAGIC), len(value)):
        if field.number > 4:
            continue
        if field.wire != BYTES:
            raise WireError("the envelope has a field of the wrong wire type")
        if field.number == 1:
            again = _read_type(value, field)
            types = again[0] or types[0], again[1] or types[1]
        elif field.number == 2:
            raw = field.start, field.end
        elif field.number == 3:
            encoding = read_text(value[field.start : field.end])
        else:
            content_type = read_text(value[field.start : field.end])
    if raw is None:
        raise WireError("the envelope holds no object")
    return Envelope(*types, *raw, encoding, content_type)


def _read_type(value: bytes, meta: Field) -> tuple[str, str]:
    texts = {1: "", 2: ""}
    for field in iter_fields(value, meta.start, meta.end):
        if field.wire == BYTES:
            texts[field.number] = read_text(value[field.start : field.end])
    types = texts[1], texts[2]
    if meta.begin == len(MAGIC) and meta.start == meta.begin + 2 and len(KNOWN_TYPES) < _MAX_TYPES:
        KNOWN_TYPES[value[meta.begin : meta.end]] = types
    return types
