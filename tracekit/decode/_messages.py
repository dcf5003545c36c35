"""Messages to JSON objects: one closure per field, made when the field is first met.

A message decoder is ``decode(buf, i, end, out, unknown)``: it reads ``buf[i:end]`` into the
dict ``out`` and appends ``Message.number`` to ``unknown`` for every field the table lacks.
The inner loops check no bounds: a field that reaches too far leaves the index beyond ``end``,
which the message's own end test sees.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from tracekit.decode import _forms
from tracekit.decode._schema import FieldSpec, message_fields
from tracekit.decode._wire import (
    BYTES,
    VARINT,
    WireError,
    iter_fields,
    read_int32,
    read_int64,
    read_text,
    read_varint,
    skip_field,
)

__all__ = ["decode_message"]

_Out = dict[str, Any]
_Unknown = list[str]
_Reader = Callable[[bytes, int, _Out, _Unknown], int]
_Take = Callable[[bytes, int, int, _Unknown], Any]
_Decode = Callable[[bytes, int, int, _Out, _Unknown], _Out]


def _read_bool(buf: bytes, i: int) -> tuple[bool, int]:
    value, i = read_varint(buf, i)
    return bool(value), i


_KEY_TAG, _VALUE_TAG = 1 << 3 | BYTES, 2 << 3 | BYTES
_NUMBERS: Final[dict[str, Callable[[bytes, int], tuple[int, int]]]] = {
    "int32": read_int32,
    "int64": read_int64,
    "bool": _read_bool,
}
_ZEROS: Final[dict[str, Any]] = {"int32": 0, "int64": 0, "bool": False}
_FORMS: Final[dict[str, Callable[[bytes], Any]]] = {
    "string": read_text,
    "bytes": lambda raw: b64encode(raw).decode("ascii"),
    "quantity": _forms.quantity_text,
    "int_or_string": _forms.int_or_string,
    "time": _forms.time_text,
    "micro_time": _forms.micro_time_text,
    "duration": _forms.duration_text,
    "json": _forms.raw_json,
    "strings": _forms.string_list,
}


def decode_message(name: str, buf: bytes, i: int, end: int) -> tuple[_Out, tuple[str, ...]]:
    """Decode one message to the JSON object the API server shows.

    Args:
        name: Full name in the table, as ``core.v1.Pod``.
        buf: Bytes that hold the message.
        i: Index of its first byte.
        end: Index after its last byte.

    Returns:
        The object, and the fields the table lacks as ``Message.number``, each once, sorted.

    Raises:
        ValueError: If the bytes are not such a message; ``IndexError`` if they end early.
    """
    message = _message(name)
    unknown: _Unknown = []
    decoded = message.decode(buf, i, end, message.zeros.copy(), unknown)
    return decoded, tuple(sorted(set(unknown)))


class _Message:
    """A message's decoder and what its JSON shows before a byte is read."""

    __slots__ = ("decode", "name", "required", "zeros")

    def __init__(self, name: str) -> None:
        self.name = name
        fields = message_fields(name)
        self.zeros = _zeros(fields)
        self.required = _required(fields)
        self.decode = _decoder(name, fields, self.required)

    def take(self, buf: bytes, i: int, end: int, unknown: _Unknown) -> _Out:
        return self.decode(buf, i, end, self.zeros.copy(), unknown)


@cache
def _message(name: str) -> _Message:
    return _Message(name)


def _zeros(fields: dict[int, FieldSpec]) -> _Out:
    zeros: _Out = {}
    for field in fields.values():
        if field.json == ".":
            zeros |= _message(field.type).zeros
        elif field.presence == "null":
            zeros[field.json] = None
        elif field.presence == "always" and not field.is_message:
            form = _FORMS.get(field.type)
            zeros[field.json] = form(b"") if form else _ZEROS[field.type]
    return zeros


def _required(fields: dict[int, FieldSpec]) -> tuple[tuple[str, str], ...]:
    """Return (JSON name, message) of the structs that are shown even when not stored."""
    found: list[tuple[str, str]] = []
    for field in fields.values():
        if field.json == ".":
            found.extend(_message(field.type).required)
        elif field.presence == "always" and field.is_message:
            found.append((field.json, field.type))
    return tuple(found)


def _decoder(
    name: str, fields: dict[int, FieldSpec], required: tuple[tuple[str, str], ...]
) -> _Decode:
    readers: dict[int, _Reader] = {}

    def decode(buf: bytes, i: int, end: int, out: _Out, unknown: _Unknown) -> _Out:
        while i < end:
            tag = buf[i]
            if tag < 128:
                i += 1
            else:
                tag, i = read_varint(buf, i)
            try:
                reader = readers[tag]
            except KeyError:
                reader = _first_reader(readers, name, fields, tag)
            i = reader(buf, i, out, unknown)
        if i != end:
            raise WireError("a field is longer than its message")
        for json, message in required:
            if json not in out:
                out[json] = _message(message).take(b"", 0, 0, unknown)
        return out

    return decode


def _first_reader(
    readers: dict[int, _Reader], name: str, fields: dict[int, FieldSpec], tag: int
) -> _Reader:
    """Make and keep the reader of a tag that was not met before."""
    field = fields.get(tag >> 3)
    if field is None:
        # Not kept: a hostile value has as many unknown tags as it likes.
        return _skipper(f"{name}.{tag >> 3}", tag)
    reader = _reader(field, tag & 7)
    if reader is None:
        raise WireError(f"field {name}.{field.number} has wire type {tag & 7}")
    readers[tag] = reader
    return reader


def _skipper(name: str, tag: int) -> _Reader:
    def read(buf: bytes, i: int, out: _Out, unknown: _Unknown) -> int:
        i = skip_field(buf, i, tag)
        unknown.append(name)
        return i

    return read


def _reader(field: FieldSpec, wire: int) -> _Reader | None:
    """Return the reader of a field, or None where its type cannot have this wire type."""
    number = _NUMBERS.get(field.type)
    keep_zero = field.presence != "nonzero"
    if number is not None:
        if field.shape == "list" and wire == BYTES:
            return _packed_reader(field.json, number)
        if wire != VARINT:
            return None
        if field.shape == "list":
            return _number_list_reader(field.json, number)
        return _number_reader(field.json, number, keep_zero)
    if wire != BYTES:
        return None
    return _bytes_reader(field, keep_zero)


def _bytes_reader(field: FieldSpec, keep_zero: bool) -> _Reader:
    if field.json == ".":
        return _inline_reader(_message(field.type))
    if field.shape == "map":
        return _map_reader(field.json, _take(field.type))
    if field.shape == "list":
        return _list_reader(field.json, _take(field.type))
    if field.type == "string":
        return _string_reader(field.json, keep_zero)
    if field.is_message:
        return _message_reader(field.json, _message(field.type))
    return _form_reader(field.json, _FORMS[field.type], keep_zero)


def _take(type_: str) -> _Take:
    form = _FORMS.get(type_)
    if form is None:
        return _message(type_).take
    if type_ == "string":
        return _take_text

    def take(buf: bytes, i: int, end: int, unknown: _Unknown) -> Any:
        return form(buf[i:end])

    return take


def _take_text(buf: bytes, i: int, end: int, unknown: _Unknown) -> str:
    return str(buf[i:end], "utf-8", "replace")


def _number_reader(
    name: str, number: Callable[[bytes, int], tuple[int, int]], keep_zero: bool
) -> _Reader:
    small = bool if number is _read_bool else int

    def read(buf: bytes, i: int, out: _Out, unknown: _Unknown) -> int:
        if buf[i] < 128:
            value = small(buf[i])
            i += 1
        else:
            value, i = number(buf, i)
        if value or keep_zero:
            out[name] = value
        else:
            out.pop(name, None)
        return i

    return read


def _number_list_reader(name: str, number: Callable[[bytes, int], tuple[int, int]]) -> _Reader:
    def read(buf: bytes, i: int, out: _Out, unknown: _Unknown) -> int:
        value, i = number(buf, i)
        _items(out, name).append(value)
        return i

    return read


def _packed_reader(name: str, number: Callable[[bytes, int], tuple[int, int]]) -> _Reader:
    def read(buf: bytes, i: int, out: _Out, unknown: _Unknown) -> int:
        length, i = read_varint(buf, i)
        end = i + length
        while i < end:
            value, i = number(buf, i)
            _items(out, name).append(value)
        if i != end:
            raise WireError("a packed number is longer than its list")
        return i

    return read


def _items(out: _Out, name: str) -> list[Any]:
    items: list[Any] | None = out.get(name)
    if items is None:
        items = out[name] = []
    return items


def _string_reader(name: str, keep_zero: bool) -> _Reader:
    def read(buf: bytes, i: int, out: _Out, unknown: _Unknown) -> int:
        length = buf[i]
        if length > 127:
            length, i = read_varint(buf, i)
        else:
            i += 1
        end = i + length
        if length or keep_zero:
            out[name] = str(buf[i:end], "utf-8", "replace")
        else:
            out.pop(name, None)
        return end

    return read


def _form_reader(name: str, form: Callable[[bytes], Any], keep_zero: bool) -> _Reader:
    def read(buf: bytes, i: int, out: _Out, unknown: _Unknown) -> int:
        length = buf[i]
        if length > 127:
            length, i = read_varint(buf, i)
        else:
            i += 1
        end = i + length
        value = form(buf[i:end])
        if value or keep_zero:
            out[name] = value
        else:
            out.pop(name, None)
        return end

    return read


def _message_reader(name: str, message: _Message) -> _Reader:
    decode, zeros = message.decode, message.zeros

    def read(buf: bytes, i: int, out: _Out, unknown: _Unknown) -> int:
        length = buf[i]
        if length > 127:
            length, i = read_varint(buf, i)
        else:
            i += 1
        # A message stored twice is one message: the second merges into the first.
        inner = out.get(name)
        if inner is None:
            inner = out[name] = zeros.copy()
        decode(buf, i, i + length, inner, unknown)
        return i + length

    return read


def _inline_reader(message: _Message) -> _Reader:
    decode = message.decode

    def read(buf: bytes, i: int, out: _Out, unknown: _Unknown) -> int:
        length = buf[i]
        if length > 127:
            length, i = read_varint(buf, i)
        else:
            i += 1
        decode(buf, i, i + length, out, unknown)
        return i + length

    return read


def _list_reader(name: str, take: _Take) -> _Reader:
    def read(buf: bytes, i: int, out: _Out, unknown: _Unknown) -> int:
        length = buf[i]
        if length > 127:
            length, i = read_varint(buf, i)
        else:
            i += 1
        items = out.get(name)
        if items is None:
            items = out[name] = []
        items.append(take(buf, i, i + length, unknown))
        return i + length

    return read


def _map_reader(name: str, take: _Take) -> _Reader:
    def read(buf: bytes, i: int, out: _Out, unknown: _Unknown) -> int:
        length, i = read_varint(buf, i)
        end = i + length
        entries = out.get(name)
        if entries is None:
            entries = out[name] = {}
        # The layout every writer uses: key, then value, both shorter than 128 bytes.
        if (
            length > 3
            and buf[i] == _KEY_TAG
            and (key_end := i + 2 + buf[i + 1]) < min(end - 1, i + 130)
            and buf[key_end] == _VALUE_TAG
            and key_end + 2 + buf[key_end + 1] == end
        ):
            entries[str(buf[i + 2 : key_end], "utf-8", "replace")] = take(
                buf, key_end + 2, end, unknown
            )
        else:
            key, start, stop = _entry(buf, i, end)
            entries[key] = take(buf, start, stop, unknown)
        return end

    return read


def _entry(buf: bytes, i: int, end: int) -> tuple[str, int, int]:
    """Return a map entry's key and the range of its value."""
    key, start, stop = "", 0, 0
    for field in iter_fields(buf, i, end):
        if field.wire == BYTES and field.number == 1:
            key = read_text(buf[field.start : field.end])
        elif field.wire == BYTES and field.number == 2:
            start, stop = field.start, field.end
    return key, start, stop
