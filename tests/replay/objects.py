"""Kubernetes objects as the API server stores them, small."""

from __future__ import annotations

from typing import Any

__all__ = ["condition", "controlled_by", "event", "merge", "node", "owned", "pod"]

JSON = dict[str, Any]


def merge(document: JSON, changes: JSON) -> JSON:
    """Return a copy with ``changes`` laid over it; lists and plain values are replaced."""
    merged = dict(document)
    for name, value in changes.items():
        old = merged.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            merged[name] = merge(old, value)
        else:
            merged[name] = value
    return merged


def condition(kind: str, status: str, reason: str = "", message: str = "") -> JSON:
    told = {"type": kind, "status": status, "reason": reason, "message": message}
    return {name: value for name, value in told.items() if value}


def _object(api_version: str, kind: str, name: str, uid: str, changes: JSON) -> JSON:
    plain = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", "uid": uid},
    }
    return merge(plain, changes)


def pod(name: str = "a", uid: str = "u1", **changes: Any) -> JSON:
    plain = _object("v1", "Pod", name, uid, {"spec": {}, "status": {"phase": "Pending"}})
    return merge(plain, changes)


def node(name: str = "n1", **changes: Any) -> JSON:
    plain = _object("v1", "Node", name, f"uid-{name}", {"spec": {}, "status": {}})
    del plain["metadata"]["namespace"]
    return merge(plain, changes)


def owned(kind: str, name: str, uid: str, owner: JSON | None = None, **changes: Any) -> JSON:
    """Return a controller; with ``owner`` a controlled one."""
    group = {"Job": "batch/v1", "CronJob": "batch/v1", "ReplicationController": "v1"}
    document = _object(group.get(kind, "apps/v1"), kind, name, uid, changes)
    return document if owner is None else merge(document, {"metadata": controlled_by(owner)})


def controlled_by(owner: JSON) -> JSON:
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    return {"ownerReferences": [reference]}


def event(name: str, uid: str, **changes: Any) -> JSON:
    return _object("v1", "Event", name, uid, changes)
