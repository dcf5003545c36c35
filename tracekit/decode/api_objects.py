"""Objects as the Kubernetes API shows them, put where etcd would have them.

What ``kubectl get -o json`` and its kin print has the revision in ``resourceVersion``, and
from kind, namespace and name follows the key. etcd itself stores no ``resourceVersion``, so
it is taken out of the value: one state of an object is then the same from both sources.
Objects whose revision is not told stand at revision 0; Events of that kind, and conditions
torn out of their object, are kept as texts (``event_texts``).

Source: apiserver registry ``storage_factory.go`` (specialDefaultResourcePrefixes, ResourcePrefix);
apiserver storage ``versioner`` PrepareObjectForStorage.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import orjson

from tracekit.decode._schema import kinds
from tracekit.decode.event_text_rows import EventText, EventTextRows, event_text
from tracekit.decode.object_rows import Change, ObjectRows, Redact
from tracekit.model.batches import Batch, Gap

__all__ = ["ApiObjects", "condition_texts", "etcd_key", "is_api_object", "typed"]

_Object = Mapping[str, Any]
_WATCH_TYPES: Final = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"})
_GONE: Final = 410
# Built-in kinds whose key is not their plural; "apis" kinds keep their group in the key.
_PLACES: Final = {
    "Node": "minions",
    "Service": "services/specs",
    "Endpoints": "services/endpoints",
    "ReplicationController": "controllers",
    "Ingress": "ingress",
    "CustomResourceDefinition": "apiextensions.k8s.io/customresourcedefinitions",
    "APIService": "apiregistration.k8s.io/apiservices",
}
_GROUPS_IN_ETCD: Final = frozenset({"", "extensions"}) | {
    version.rpartition("/")[0] for version, _ in kinds()
}
_HISSING: Final = ("s", "x", "z", "ch", "sh")


def etcd_key(api_version: str, kind: str, namespace: str, name: str) -> str:
    """Return the key that the API server gives an object, below ``/registry``.

    Args:
        api_version: ``v1`` or ``GROUP/VERSION``; groups that no API server has built in are
            custom resources, whose keys have the group.
        kind: As the object says.
        namespace: Empty for objects of no namespace.
        name: As the object says.

    Source: kube-apiserver ``storage_factory.go``; customresource ``etcd.go``.
    """
    group = api_version.rpartition("/")[0]
    built_in = group in _GROUPS_IN_ETCD or "." not in group
    place = _PLACES.get(kind) if built_in else None
    if place is None:
        place = _plural(kind) if built_in else f"{group}/{_plural(kind)}"
    return "/".join(("/registry", place, *((namespace,) if namespace else ()), name))


def _plural(kind: str) -> str:
    """Return the plural as Kubernetes guesses it from the kind.

    Source: apimachinery ``meta`` UnsafeGuessKindToResource.
    """
    word = kind.lower()
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(_HISSING) else f"{word}s"


def is_api_object(value: object) -> bool:
    """Tell whether JSON is what the API or a watch on it prints, or a list of such."""
    if not isinstance(value, dict):
        return False
    if value.get("type") in _WATCH_TYPES and isinstance(value.get("object"), dict):
        return True
    return isinstance(value.get("kind"), str) and isinstance(value.get("apiVersion"), str)


class ApiObjects:
    """Rows of ``objects`` and ``event_texts`` from what the Kubernetes API printed.

    Args:
        redact: Replaces payloads; None keeps them.
        last_revision: Highest revision that the source told before.
    """

    def __init__(self, redact: Redact | None, last_revision: int = 0) -> None:
        self.rows = ObjectRows(redact)
        self.texts = EventTextRows()
        self.last_revision = last_revision

    def take(self, value: object, record_no: int) -> None:
        """Take in one JSON value: a watch event, a list, an object, or a part of one."""
        if isinstance(value, list):
            for item in value:
                self._one(item, record_no)
            return
        if not isinstance(value, dict):
            self.note("OBJECT_UNREADABLE", record_no, f"a {type(value).__name__} is no object")
        elif value.get("type") in _WATCH_TYPES and isinstance(value.get("object"), dict):
            self._watch_event(str(value["type"]), value["object"], record_no)
        else:
            self._one(value, record_no)

    def note(self, code: str, position: int, detail: str) -> None:
        """Add a diagnostic."""
        self.rows.note(code, position, detail)

    def batch(self) -> Batch:
        """Return the rows so far, those of ``event_texts`` beside those of ``objects``."""
        batch = self.rows.batch()
        if self.texts.height:
            batch.records += self.texts.height
            batch.also.append(self.texts.batch())
        return batch

    def _watch_event(self, kind: str, value: dict[str, Any], record_no: int) -> None:
        if kind == "BOOKMARK":
            self.last_revision = max(self.last_revision, _revision(value))
        elif kind == "ERROR":
            self._refused(value, record_no)
        else:
            self._one(value, record_no, deleted=kind == "DELETED")

    def _refused(self, status: _Object, record_no: int) -> None:
        """Take in a Status that ended the watch.

        Source: apimachinery ``meta/v1`` Status; 410 is reason Expired or Gone.
        """
        words = str(status.get("message") or status.get("reason") or "no reason given")
        self.note("API_REFUSED", record_no, words)
        if status.get("code") == _GONE:
            start = self.last_revision + 1
            self.rows.gaps.append(Gap(from_revision=start, to_revision=None, cause=words[:200]))

    def _one(self, value: object, record_no: int, *, deleted: bool = False) -> None:
        if not isinstance(value, dict):
            self.note("OBJECT_UNREADABLE", record_no, f"a {type(value).__name__} is no object")
            return
        kind = value.get("kind")
        items = value.get("items")
        if isinstance(items, list) and (kind is None or str(kind).endswith("List")):
            self._items(value, items, record_no)
        elif kind == "Status" and value.get("status") == "Failure":
            self._refused(value, record_no)
        elif isinstance(kind, str) and isinstance(value.get("apiVersion"), str):
            self._object(value, record_no, deleted)
        else:
            self._fragment(value, record_no)

    def _items(self, listed: _Object, items: list[Any], record_no: int) -> None:
        for item in items:
            self._one(typed(item, listed), record_no)
        if not items:
            self.last_revision = max(self.last_revision, _revision(listed))

    def _object(self, value: dict[str, Any], record_no: int, deleted: bool) -> None:
        metadata = value.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if not isinstance(name, str) or not name:
            self._fragment(value, record_no)
            return
        revision = _revision(value)
        self.last_revision = max(self.last_revision, revision)
        if not revision and value["kind"] == "Event":
            self.texts.add(event_text(value, record_no))
            return
        try:
            change = _change(value, revision, record_no, deleted)
        except TypeError as error:  # what only YAML can say: other keys than text, binary, dates
            self.note("OBJECT_UNREADABLE", record_no, str(error))
            return
        self.rows.add(change)

    def _fragment(self, value: dict[str, Any], record_no: int) -> None:
        """Take in what lacks a name: the conditions in it are told all the same."""
        found = list(condition_texts(value, record_no))
        for text in found:
            self.texts.add(text)
        if not found:
            kind = value.get("kind")
            words = f"a {kind} without a name" if isinstance(kind, str) else "no Kubernetes object"
            self.note("OBJECT_UNKNOWN", record_no, words)


def typed(item: object, listed: _Object) -> object:
    """Return an item of a list with the kind that a ``PodList`` tells for all of them."""
    kind = listed.get("kind")
    if not isinstance(item, dict) or "kind" in item or not isinstance(kind, str):
        return item
    if kind in ("List", "") or not kind.endswith("List"):
        return item
    return {"apiVersion": listed.get("apiVersion"), "kind": kind.removesuffix("List"), **item}


def condition_texts(
    value: _Object, record_no: int, pod: tuple[str, str] = ("", "")
) -> list[EventText]:
    """List the conditions that a part of an object holds.

    Args:
        value: A condition, a status, or an object without a name.
        record_no: Where it stands in the source.
        pod: Namespace and name that its surroundings tell.
    """
    status = value.get("status")
    if isinstance(status, str) and isinstance(value.get("type"), str):
        return [_condition(value, record_no, pod)]
    holder = status if isinstance(status, dict) else value
    conditions = holder.get("conditions")
    if not isinstance(conditions, list):
        return []
    return [
        _condition(c, record_no, pod)
        for c in conditions
        if isinstance(c, dict) and isinstance(c.get("type"), str)
    ]


def _condition(condition: _Object, record_no: int, pod: tuple[str, str]) -> EventText:
    at = condition.get("lastTransitionTime")
    return EventText(
        record_no=record_no,
        form="condition",
        namespace=pod[0],
        kind="Pod",
        name=pod[1],
        reason=str(condition.get("reason") or ""),
        type=f"{condition.get('type')}={condition.get('status')}",
        message=str(condition.get("message") or ""),
        at=at if isinstance(at, str) else None,
        at_error_seconds=1.0 if isinstance(at, str) else None,
    )


def _change(value: dict[str, Any], revision: int, record_no: int, deleted: bool) -> Change:
    metadata = {k: v for k, v in value["metadata"].items() if k != "resourceVersion"}
    stored = orjson.dumps({**value, "metadata": metadata})
    namespace, name = metadata.get("namespace"), metadata["name"]
    key = etcd_key(
        value["apiVersion"], value["kind"], namespace if isinstance(namespace, str) else "", name
    )
    return Change(
        revision=revision,
        sub=0,
        key=key,
        deleted=deleted,
        version=0,
        create_revision=0,
        lease=0,
        value=b"" if deleted else stored,
        previous=stored if deleted else b"",
        record_no=record_no,
    )


def _revision(value: _Object) -> int:
    metadata = value.get("metadata")
    told = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    # An etcd revision is an int64; other digits are not one.
    digits = isinstance(told, str) and told.isascii() and told.isdecimal() and len(told) < 19
    return int(told) if digits and told else 0
