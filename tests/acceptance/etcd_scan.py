"""What an etcd watch recording says, read without the product's decoder of watch lines."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson

from tracekit.decode import decode_value

__all__ = ["Change", "PodChange", "apply_patch", "changes", "condition_changes", "pod_changes"]

JSON = Any


@dataclass(frozen=True, slots=True)
class Change:
    """One event of the stream; ``value`` is None for a delete."""

    revision: int
    key: str
    version: int
    value: bytes | None


@dataclass(frozen=True, slots=True)
class PodChange:
    """One revision of a pod's key: the state after it and the one before.

    ``after`` of a delete is the state before it.
    """

    revision: int
    operation: str
    version: int
    before: JSON
    after: JSON

    @property
    def uid(self) -> str:
        return str(self.after["metadata"]["uid"])


def changes(stream: Path) -> Iterator[Change]:
    """Read every event in its order."""
    with stream.open("rb") as lines:
        for line in lines:
            for event in orjson.loads(line).get("Events") or ():
                kv = event["kv"]
                deleted = event.get("type") == 1
                value = None if deleted else b64decode(kv.get("value", ""))
                key = b64decode(kv["key"]).decode()
                yield Change(kv["mod_revision"], key, kv.get("version", 0), value)


def _is_pod(value: bytes) -> bool:
    # Unknown{typeMeta(1): {apiVersion(1), kind(2)}} behind the magic, all of them short.
    return value[:4] == b"k8s\0" and value[6 : 6 + value[5]] == b"\x0a\x02v1\x12\x03Pod"


@lru_cache(maxsize=1)
def pod_changes(stream: Path) -> list[PodChange]:
    """List every revision of every key that ever held a pod, in order."""
    everything = list(changes(stream))
    pods = {c.key for c in everything if c.value is not None and _is_pod(c.value)}
    found, last = [], dict[str, JSON]()
    for change in everything:
        if change.key not in pods:
            continue
        before = last.pop(change.key, None)
        if change.value is None:
            found.append(PodChange(change.revision, "DELETE", change.version, before, before))
            continue
        after = last[change.key] = decode_value(change.value).object
        found.append(PodChange(change.revision, "PUT", change.version, before, after))
    return found


def condition_changes(stream: Path) -> dict[int, str]:
    """Return the uid of each revision whose Unschedulable message is new for that uid."""
    told: dict[str, str] = {}
    found: dict[int, str] = {}
    for change in pod_changes(stream):
        if change.operation == "DELETE":
            continue
        for condition in change.after["status"].get("conditions", ()):
            if condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable":
                message = condition["message"]
                if told.get(change.uid) != message:
                    told[change.uid], found[change.revision] = message, change.uid
    return found


def apply_patch(document: JSON, patch: list[dict[str, Any]]) -> JSON:
    """Apply add, remove and replace in place.

    Source: RFC 6902 §4.1 to §4.3, RFC 6901 §4.
    """
    for step in patch:
        tokens = [t.replace("~1", "/").replace("~0", "~") for t in step["path"].split("/")[1:]]
        if not tokens:
            assert step["op"] in ("add", "replace")
            document = step["value"]
            continue
        target = document
        for token in tokens[:-1]:
            target = target[int(token) if isinstance(target, list) else token]
        last = tokens[-1]
        if isinstance(target, dict):
            # What is replaced or removed must be there.
            assert step["op"] == "add" or last in target
            if step["op"] == "remove":
                del target[last]
            else:
                target[last] = step["value"]
            continue
        at = len(target) if last == "-" else int(last)
        assert 0 <= at < len(target) + (step["op"] == "add")
        target[at : at + (step["op"] != "add")] = [] if step["op"] == "remove" else [step["value"]]
    return document
