"""Object revisions for the replay tests: read from a recording, or written by hand."""

from __future__ import annotations

import base64
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from tracekit.decode.kubernetes import decode_value, read_meta
from tracekit.model.objects import ObjectRevision, Operation

__all__ = ["Recorder", "read_revisions"]

JSON = dict[str, Any]


def _event_lines(path: Path) -> Iterator[JSON]:
    with path.open("rb") as lines:
        for line in lines:
            yield from orjson.loads(line).get("Events") or ()


def read_revisions(path: Path, kinds: Collection[str] = ()) -> list[ObjectRevision]:
    """Read an ``etcdctl watch -w json`` recording; ``kinds`` leaves the others out."""
    recorder, revision, sub = Recorder(), 0, -1
    kept: dict[str, bool] = {}
    for event in _event_lines(path):
        kv, key = event["kv"], base64.b64decode(event["kv"]["key"]).decode()
        sub = sub + 1 if kv["mod_revision"] == revision else 0
        revision = kv["mod_revision"]
        if "value" in kv:
            value = base64.b64decode(kv["value"])
            kept[key] = not kinds or read_meta(value).kind in kinds
            if kept[key]:
                decoded = decode_value(value).object
                recorder.put(key, decoded, revision=revision, sub=sub, version=kv["version"])
        elif kept.get(key):
            recorder.delete(key, revision=revision, sub=sub)
    return recorder.revisions


class Recorder:
    """Keeps the last state of each key and writes down the revisions, as the store gives them."""

    def __init__(self) -> None:
        self.revisions: list[ObjectRevision] = []
        self._last: dict[str, JSON | None] = {}
        self._versions: dict[str, int] = {}

    def put(
        self,
        key: str,
        document: JSON | None,
        *,
        revision: int = 0,
        sub: int = 0,
        version: int = 0,
    ) -> JSON | None:
        """Write a state; ``revision`` and ``version`` count by themselves where not given."""
        self._versions[key] = version or self._versions.get(key, 0) + 1
        self._note(key, "PUT", document, (revision, sub), self._last.get(key))
        self._last[key] = document
        return document

    def delete(self, key: str, *, revision: int = 0, sub: int = 0) -> None:
        """Delete a key; the revision carries the state before."""
        self._versions.pop(key, None)
        last = self._last.pop(key, None)
        self._note(key, "DELETE", last, (revision, sub), last)

    def forget(self, key: str) -> None:
        """Lose the state of a key, as a hole in the record does."""
        self._last.pop(key, None)

    def _note(
        self,
        key: str,
        operation: Operation,
        document: JSON | None,
        place: tuple[int, int],
        previous: Mapping[str, Any] | None,
    ) -> None:
        metadata = (document or {}).get("metadata", {})
        before = self.revisions[-1].revision if self.revisions else 0
        self.revisions.append(
            ObjectRevision(
                revision=place[0] or before + 1,
                sub=place[1],
                key=key,
                operation=operation,
                version=self._versions.get(key, 0),
                api_version=(document or {}).get("apiVersion", ""),
                kind=(document or {}).get("kind", ""),
                namespace=metadata.get("namespace", ""),
                name=metadata.get("name", ""),
                uid=metadata.get("uid", ""),
                object=document,
                previous=previous,
            )
        )
