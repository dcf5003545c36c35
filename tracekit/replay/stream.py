"""Rows of ``objects`` as changes: values decoded, each with the state before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tracekit.errors import DecodeError
from tracekit.model.diagnostics import Diagnostic
from tracekit.model.objects import JSON, ObjectRevision

__all__ = ["Decode", "decode_changes"]

Decode = Callable[[bytes], Mapping[str, JSON] | None]
_READABLE = ("protobuf", "json")


def decode_changes(
    rows: Iterable[Mapping[str, Any]], decode: Decode, notes: list[Diagnostic]
) -> Iterator[ObjectRevision]:
    """Decode rows in (revision, sub) order.

    The state before a change is the last one the record has of the key, or what the watch
    told (--prev-kv). A DELETE carries that state as its object.

    Args:
        rows: Rows of ``objects``; kind, namespace, name and uid of a delete are those of
            the key's last state.
        decode: Gives the Kubernetes JSON of a stored value.
        notes: Takes what cannot be read.
    """
    last: dict[str, Mapping[str, JSON]] = {}
    for row in rows:
        key = row["key"]
        before = last.get(key)
        if before is None and row["prev_value"]:
            before = _value(row, row["prev_value"], decode, notes)
        if row["operation"] == "DELETE":
            last.pop(key, None)
            if before is None:
                notes.append(_note("DELETE_WITHOUT_STATE", row, key))
            yield _change(row, before, before)
            continue
        after = None
        if row["encoding"] in _READABLE:
            after = _value(row, row["value"], decode, notes)
        if after is not None:
            last[key] = after
        yield _change(row, after, before if row["version"] != 1 else None)


def _is_new(before: Mapping[str, JSON] | None, after: Mapping[str, JSON] | None) -> bool:
    return (before is None or _uid(before) != _uid(after)) and _is_as_created(after)


def _uid(state: Mapping[str, JSON] | None) -> JSON:
    return ((state or {}).get("metadata") or {}).get("uid")


def _is_as_created(pod: Mapping[str, JSON] | None) -> bool:
    """Tell that a pod stands as its creating write left it, where no etcd version tells.

    One writer, at the time of creation; whatever comes after it leaves a mark: a binding the
    node, a status its conditions and a field owner, a gate the one condition it is born with.

    Source: apiserver ``managedfields``; BindingREST.setPodHostAndAnnotations. Of the pods in
    the three recordings with a truth for it, none is taken for created that was not.
    """
    metadata = (pod or {}).get("metadata") or {}
    owners: list[JSON] = metadata.get("managedFields") or []
    if pod is None or pod.get("kind") != "Pod" or len(owners) != 1:
        return False
    status, born = pod.get("status") or {}, metadata.get("creationTimestamp")
    return (
        born is not None
        and owners[0].get("time") == born
        and not owners[0].get("subresource")
        and metadata.get("generation", 1) == 1
        and not metadata.get("deletionTimestamp")
        and not (pod.get("spec") or {}).get("nodeName")
        and all(c.get("reason") == "SchedulingGated" for c in status.get("conditions") or ())
    )


def _value(
    row: Mapping[str, Any], value: bytes, decode: Decode, notes: list[Diagnostic]
) -> Mapping[str, JSON] | None:
    try:
        return decode(value)
    except DecodeError as error:
        notes.append(_note("VALUE_UNREADABLE", row, f"{row['key']}: {error}"))
        return None


def _note(code: str, row: Mapping[str, Any], detail: str) -> Diagnostic:
    return Diagnostic(code=code, position=row["revision"], detail=detail[:200])


def _change(
    row: Mapping[str, Any],
    after: Mapping[str, JSON] | None,
    before: Mapping[str, JSON] | None,
) -> ObjectRevision:
    metadata = (after or {}).get("metadata") or {}
    return ObjectRevision(
        revision=row["revision"],
        sub=row["sub"],
        key=row["key"],
        operation=row["operation"],
        version=row["version"] or int(after is not before and _is_new(before, after)),
        api_version=(after or {}).get("apiVersion") or row["api_version"] or "",
        kind=(after or {}).get("kind") or row["kind"] or "",
        namespace=metadata.get("namespace") or row["namespace"] or "",
        name=metadata.get("name") or row["name"] or "",
        uid=metadata.get("uid") or row["uid"] or "",
        object=after,
        previous=before,
    )
