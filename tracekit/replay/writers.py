"""Who wrote a change, as far as ``metadata.managedFields`` proves it.

An entry whose time moved, or that is new, names the writer. Within one second the time
does not move; then the owner of the changed fields is the writer, because an update takes
over every field it changes. Bindings and delete requests leave managedFields as they are,
so nothing names their writer.

Source: apimachinery util/managedfields; apiserver fieldmanager ("Time" of
metav1.ManagedFieldsEntry); facts/replay.md §7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import orjson

from tracekit.replay.diff import Operation

__all__ = ["field_owners", "writer_of"]

_Object = Mapping[str, Any]
_Entry = Mapping[str, Any]
# Written by requests that managedFields does not record: Binding and delete.
_UNRECORDED = (
    "/spec/nodeName",
    "/metadata/deletionTimestamp",
    "/metadata/deletionGracePeriodSeconds",
)


def _entries(document: _Object) -> Sequence[_Entry]:
    return (document.get("metadata") or {}).get("managedFields") or ()


def _identity(entry: _Entry) -> tuple[object, ...]:
    return tuple(entry.get(k) for k in ("manager", "operation", "subresource", "apiVersion"))


def _only(managers: Iterable[object]) -> str | None:
    distinct = set(managers)
    return str(distinct.pop()) if len(distinct) == 1 and None not in distinct else None


@lru_cache(maxsize=4096)
def _item_key(field: str) -> Any:
    """Parse the JSON of a ``k:`` or ``v:`` path element; None when it is none."""
    try:
        return orjson.loads(field[2:])
    except orjson.JSONDecodeError:
        return None


def _names_item(field: str, item: Any, index: int) -> bool:
    """Tell whether a fieldsV1 path element names this list item.

    Source: structured-merge-diff fieldpath/serialize-pe.go.
    """
    if field.startswith("k:"):
        keys = _item_key(field)
        return (
            isinstance(item, dict)
            and isinstance(keys, dict)
            and all(item.get(name) == value for name, value in keys.items())
        )
    if field.startswith("v:"):
        return bool(_item_key(field) == item)
    return field == f"i:{index}"


def _owns(fields: Any, document: Any, tokens: Sequence[str]) -> bool:
    """Tell whether an entry's fields cover the value at a pointer of the document."""
    if not fields:
        return False
    for token in tokens:
        if not isinstance(fields, dict):
            return False
        if not fields:
            return True  # an atomic value is owned as a whole
        if isinstance(document, list):
            index = int(token)
            document = document[index] if index < len(document) else None
            step = next((f for f in fields if _names_item(f, document, index)), None)
        else:
            document = document.get(token) if isinstance(document, dict) else None
            step = f"f:{token}" if f"f:{token}" in fields else None
        if step is None:
            return False
        fields = fields[step]
    return True


def field_owners(document: _Object, pointer: str) -> list[str]:
    """Name the field managers that own the value at a JSON pointer.

    Args:
        document: Kubernetes JSON with managedFields.
        pointer: RFC 6901 pointer into it.

    Returns:
        Managers in the order of managedFields, each once.
    """
    tokens = [t.replace("~1", "/").replace("~0", "~") for t in pointer.split("/")[1:]]
    owners = (
        str(e.get("manager"))
        for e in _entries(document)
        if _owns(e.get("fieldsV1"), document, tokens)
    )
    return list(dict.fromkeys(owners))


def writer_of(before: _Object | None, after: _Object, patch: Sequence[Operation]) -> str | None:
    """Name the field manager that wrote a revision.

    Args:
        before: State before; None for a creation.
        after: State after.
        patch: Patch between the two without managedFields.

    Returns:
        The manager; None when managedFields proves none, or more than one.
    """
    entries = _entries(after)
    if before is None:
        return _only(e.get("manager") for e in entries)
    if any(op["path"] in _UNRECORDED for op in patch):
        return None
    known = {_identity(e): e.get("time") for e in _entries(before)}
    fresh = [e for e in entries if known.get(_identity(e), "") != e.get("time")]
    if fresh:
        return _only(e.get("manager") for e in fresh)
    written = (op["path"] for op in patch if op["op"] != "remove")
    return _only(owner for path in written for owner in field_owners(after, path))
