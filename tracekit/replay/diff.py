"""Differences between two JSON values as RFC 6902 patches, and what of them is a heartbeat.

Lists of Kubernetes objects are matched by the field that names their items (a condition's
type, a container's name), so that a condition put in front reads as one addition, not as a
change of every condition behind it.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import orjson

__all__ = [
    "Operation",
    "apply",
    "changed_pointers",
    "diff",
    "split_heartbeats",
    "without_managed_fields",
]

Operation = dict[str, Any]

# The merge keys of core/v1 (patchMergeKey), most telling first; ``containerPort`` and
# ``mountPath`` are numbers or unique paths and read fine by index.
_IDENTITIES = ("type", "name", "uid", "ip", "key")

_HEARTBEAT = re.compile(
    r"/status/conditions/\d+/(?:lastHeartbeatTime|lastProbeTime)|/spec/renewTime|"
    r"/metadata/managedFields/\d+/time"
)


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1") if "~" in name or "/" in name else name


def _same(old: Any, new: Any) -> bool:
    """Tell equality as JSON has it: unlike Python, 1, 1.0 and true are three values."""
    if type(old) is not type(new) or old != new:
        return False
    if isinstance(old, dict | list):
        return orjson.dumps(old) == orjson.dumps(new)
    return True


def _identities(items: Sequence[Any]) -> tuple[str, list[str]] | None:
    """Find the field that names every item, and the names; None where there is none."""
    if not items or not all(isinstance(item, dict) for item in items):
        return None
    for field in _IDENTITIES:
        names = [item.get(field) for item in items]
        if all(isinstance(name, str) for name in names) and len(set(names)) == len(names):
            return field, cast("list[str]", names)
    return None


def _diff_by_index(old: Sequence[Any], new: Sequence[Any], path: str, ops: list[Operation]) -> None:
    """Pair items by place; equal items at both ends stay out of it."""
    start, stop_old, stop_new = 0, len(old), len(new)
    shorter = min(stop_old, stop_new)
    while start < shorter and _same(old[start], new[start]):
        start += 1
    while stop_old > start < stop_new and _same(old[stop_old - 1], new[stop_new - 1]):
        stop_old, stop_new = stop_old - 1, stop_new - 1
    for index in range(start, min(stop_old, stop_new)):
        _diff(old[index], new[index], f"{path}/{index}", ops)
    for index in range(stop_old - 1, stop_new - 1, -1):
        ops.append({"op": "remove", "path": f"{path}/{index}"})
    for index in range(stop_old, stop_new):
        ops.append({"op": "add", "path": f"{path}/{index}", "value": new[index]})


def _diff_by_name(
    old: Mapping[str, Any], new: Sequence[tuple[str, Any]], path: str, ops: list[Operation]
) -> None:
    """Pair items by name; the names both have stand in the same order in both."""
    wanted = {name for name, _ in new}
    for index, name in reversed(list(enumerate(old))):
        if name not in wanted:
            ops.append({"op": "remove", "path": f"{path}/{index}"})
    for index, (name, item) in enumerate(new):
        if name not in old:
            ops.append({"op": "add", "path": f"{path}/{index}", "value": item})
    for index, (name, item) in enumerate(new):
        if name in old:
            _diff(old[name], item, f"{path}/{index}", ops)


def _diff_lists(old: Sequence[Any], new: Sequence[Any], path: str, ops: list[Operation]) -> None:
    before, after = _identities(old), _identities(new)
    if before is not None and after is not None and before[0] == after[0]:
        wanted, known = set(after[1]), dict(zip(before[1], old, strict=True))
        if [n for n in before[1] if n in wanted] == [n for n in after[1] if n in known]:
            _diff_by_name(known, list(zip(after[1], new, strict=True)), path, ops)
            return
    _diff_by_index(old, new, path, ops)


def _diff_maps(
    old: Mapping[str, Any], new: Mapping[str, Any], path: str, ops: list[Operation]
) -> None:
    for name, value in old.items():
        if name not in new:
            ops.append({"op": "remove", "path": f"{path}/{_escape(name)}"})
        elif value is not new[name]:
            _diff(value, new[name], f"{path}/{_escape(name)}", ops)
    for name, value in new.items():
        if name not in old:
            ops.append({"op": "add", "path": f"{path}/{_escape(name)}", "value": value})


def _diff(old: Any, new: Any, path: str, ops: list[Operation]) -> None:
    if _same(old, new):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        _diff_maps(old, new, path, ops)
    elif isinstance(old, list) and isinstance(new, list):
        _diff_lists(old, new, path, ops)
    else:
        ops.append({"op": "replace", "path": path, "value": new})


def diff(old: Any, new: Any) -> list[Operation]:
    """Compute the patch that turns one JSON value into another.

    Args:
        old: JSON value before.
        new: JSON value after.

    Returns:
        Operations ``add``, ``remove`` and ``replace`` in the order to apply them; applying
        them to ``old`` gives ``new``. Values are shared with ``new``, not copied.

    Source: RFC 6902; RFC 6901 for the pointers.
    """
    ops: list[Operation] = []
    _diff(old, new, "", ops)
    return ops


def _descend(doc: Any, token: str) -> Any:
    return doc[int(token)] if isinstance(doc, list) else doc[token]


def _apply_one(doc: Any, op: Operation) -> Any:
    tokens = [t.replace("~1", "/").replace("~0", "~") for t in op["path"].split("/")[1:]]
    value = copy.deepcopy(op.get("value"))
    if not tokens:
        return value
    target = doc
    for token in tokens[:-1]:
        target = _descend(target, token)
    if op["op"] == "remove":
        del target[int(tokens[-1]) if isinstance(target, list) else tokens[-1]]
    elif isinstance(target, list):
        place = int(tokens[-1])
        target[place : place + (op["op"] == "replace")] = [value]
    else:
        target[tokens[-1]] = value
    return doc


def apply(patch: Iterable[Operation], doc: Any) -> Any:
    """Apply a patch of ``add``, ``remove`` and ``replace`` operations.

    Args:
        patch: Operations, in order.
        doc: JSON value before; left as it is.

    Returns:
        The JSON value after.

    Source: RFC 6902 §4.
    """
    result = copy.deepcopy(doc)
    for op in patch:
        result = _apply_one(result, op)
    return result


def changed_pointers(patch: Iterable[Operation]) -> list[str]:
    """List the JSON pointers a patch touches, each once, in its order."""
    return list(dict.fromkeys(op["path"] for op in patch))


def split_heartbeats(pointers: Iterable[str]) -> tuple[list[str], list[str]]:
    """Set heartbeats apart from real changes.

    Args:
        pointers: JSON pointers that changed.

    Returns:
        Pointers that are no heartbeats, and those that are: a condition's lastHeartbeatTime
        or lastProbeTime, a lease's renewTime, a managedFields time.
    """
    changed: list[str] = []
    heartbeats: list[str] = []
    for pointer in pointers:
        (heartbeats if _HEARTBEAT.fullmatch(pointer) else changed).append(pointer)
    return changed, heartbeats


def without_managed_fields(document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Give the object without ``metadata.managedFields``, copying only what must differ."""
    metadata = document.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return document
    kept = {name: value for name, value in metadata.items() if name != "managedFields"}
    return {**document, "metadata": kept}
