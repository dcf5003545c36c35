"""Whether the JSON of an object has the shape its kind prescribes.

Protobuf cannot be misshapen: its schema says what each field is. JSON can, whoever wrote it,
and what reads objects afterwards relies on the shape. So it is checked once, here.

Source: the same field table that the protobuf decoder reads.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from tracekit.decode._schema import FieldSpec, message_fields, message_of

__all__ = ["shape_fault"]

_METADATA = message_of("v1", "Pod")
_SCALARS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "bytes": (str,),
    "bool": (bool,),
    "int32": (int,),
    "int64": (int,),
    "quantity": (str, int, float),
    "int_or_string": (str, int),
    "time": (str,),
    "micro_time": (str,),
    "duration": (str,),
    "strings": (list,),
}
_MOST = 2**63 - 1


def shape_fault(document: Any) -> str:
    """Name the first field of an object whose JSON has the wrong type; empty when none has.

    Fields that the schema does not know, and null anywhere, are no fault. Of a kind without
    a schema only its metadata is looked at.
    """
    if not isinstance(document, dict):
        return "the object"
    for name in ("kind", "apiVersion"):
        if not isinstance(document.get(name, ""), str):
            return name
    message = message_of(document.get("apiVersion", ""), document.get("kind", ""))
    if message is not None:
        return _message_fault(message, document)
    field = _fields(_METADATA or "").get("metadata")
    fault = _field_fault(field, document.get("metadata")) if field else ""
    return f"metadata.{fault}" if fault else ""


@cache
def _fields(message: str) -> dict[str, FieldSpec]:
    """Fields by JSON name, those of inlined sub-messages among them."""
    found: dict[str, FieldSpec] = {}
    for field in message_fields(message).values():
        if field.json == ".":
            found |= _fields(field.type)
        else:
            found[field.json] = field
    return found


def _message_fault(message: str, value: Any) -> str:
    if not isinstance(value, dict):
        return "its object"
    known = _fields(message)
    for name, inner in value.items():
        field = known.get(name)
        if field is not None and (fault := _field_fault(field, inner)):
            return name if fault == "." else f"{name}.{fault}"
    return ""


def _field_fault(field: FieldSpec, value: Any) -> str:
    """Return "." for a fault of the field itself, the path below it for one inside."""
    if value is None:
        return ""
    match field.shape:
        case "list":
            items = value if isinstance(value, list) else None
        case "map":
            items = list(value.values()) if isinstance(value, dict) else None
        case _:
            items = [value]
    if items is None:
        return "."
    return next((fault for item in items if (fault := _value_fault(field, item))), "")


def _value_fault(field: FieldSpec, value: Any) -> str:
    if field.is_message:
        return (
            _message_fault(field.type, value) if value is not None or field.shape != "one" else ""
        )
    types = _SCALARS.get(field.type)
    if types is None or value is None:
        return ""
    if isinstance(value, bool) and bool not in types:
        return "."
    if not isinstance(value, types):
        return "."
    return "." if isinstance(value, int) and abs(value) > _MOST else ""
