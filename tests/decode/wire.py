"""A tiny protobuf writer, so that tests make values of their own."""

from __future__ import annotations

__all__ = ["group", "stored", "string_map", "sub", "varint", "varint_field"]


def varint(number: int) -> bytes:
    out, number = b"", number & (1 << 64) - 1
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def varint_field(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def sub(number: int, payload: bytes | str) -> bytes:
    """Write a length-delimited field: a string, bytes or a message."""
    raw = payload.encode() if isinstance(payload, str) else payload
    return varint(number << 3 | 2) + varint(len(raw)) + raw


def string_map(number: int, entries: dict[str, bytes]) -> bytes:
    return b"".join(sub(number, sub(1, key) + sub(2, value)) for key, value in entries.items())


def group(number: int, payload: bytes) -> bytes:
    return varint(number << 3 | 3) + payload + varint(number << 3 | 4)


def stored(
    api_version: str, kind: str, raw: bytes, *, encoding: str = "", content_type: str = ""
) -> bytes:
    """Wrap an object as the API server stores it: magic, typeMeta, raw, two strings."""
    head = b"k8s\x00" + sub(1, sub(1, api_version) + sub(2, kind))
    return head + sub(2, raw) + sub(3, encoding) + sub(4, content_type)
