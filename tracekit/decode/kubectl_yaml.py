"""``kubectl get -o yaml``: documents, lists, and pieces of them that people paste.

A list is read an item at a time. A block of YAML is what begins in the first column; inside
quotes a line break stands for one space, which the parser knows.

Source: cli-runtime ``printers/yaml.go``, sigs.k8s.io/yaml (go-yaml v2: YAML 1.1 with the
booleans true and false, no dates).
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, cast

import yaml

from tracekit.decode.api_objects import ApiObjects, typed
from tracekit.model.batches import Batch, Chunk, SourceContext

__all__ = ["KubectlYamlDecoder", "KubectlYamlSession"]

_BOM: Final = b"\xef\xbb\xbf"
_TOP: Final = re.compile(
    rb"^(?:- )?(?:apiVersion: \S+|kind: [A-Z]\w+"
    rb"|(?:items|metadata|spec|status|conditions):)[ \t]*\r?$",
    re.MULTILINE,
)
_DOCUMENT: Final = re.compile(rb"^(?:---|- |apiVersion: |kind: |items:)", re.MULTILINE)
_CONDITION: Final = re.compile(
    rb"^[ \t-]*(?:lastTransitionTime|reason|message|status|type): ", re.MULTILINE
)
_LIST_HEAD: Final = re.compile(rb"^(kind|apiVersion): *([\w./]+)", re.MULTILINE)
# A plain scalar cannot begin with an asterisk, so this is an alias, or text in a block scalar.
_ALIAS: Final = re.compile(rb"(?:^|[:\[,-])[ \t]+\*\w|<<:", re.MULTILINE)
_FLOW_DEPTH: Final = re.compile(rb"(?:[\[{][ \t\r\n]*){200}|^[ ]{2000}|(?:- ){200}", re.MULTILINE)
_ITEM_BYTES: Final = 64 << 20
_NODES_PER_BYTE: Final = 4


# Reads what kubectl writes: times stay text, only true and false are booleans.
_Loader: Final[Any] = type("_Loader", (yaml.CSafeLoader,), {})
_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in pairs
        if tag not in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool")
    ]
    for first, pairs in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|false|True|False|TRUE|FALSE)$"), list("tfTF")
)


@dataclass(frozen=True, slots=True)
class _YamlChunk(Chunk):
    """One document, or one item of a list.

    Attributes:
        owner: Kind and apiVersion that the list tells for its items.
        item: The data is one item, as a list of one.
    """

    owner: tuple[str, str] = ("", "")
    item: bool = False


class KubectlYamlDecoder:
    """YAML of Kubernetes objects, as kubectl and must-gather write it."""

    name = "kubectl-yaml"

    def recognises(self, head: bytes) -> bool:
        """Tell whether a line in the first column is a field of an object, or of its part."""
        text = head.removeprefix(_BOM).lstrip()
        if text[:1] in (b"{", b"[") or b"\0" in text or not _TOP.search(text):
            return False
        return b"apiVersion: " in text or len(_CONDITION.findall(text)) > 2

    def open(self, context: SourceContext) -> KubectlYamlSession:
        """Begin a source."""
        return KubectlYamlSession(context)

    def lead(self, tail: bytes, head: bytes) -> int | None:
        """Give the rest of a document that was cut between two pieces."""
        if _DOCUMENT.match(head):
            return 0
        end = _DOCUMENT.search(head)
        return end.start() if end else None


class KubectlYamlSession:
    """One source of YAML documents."""

    parallel = False

    def __init__(self, context: SourceContext) -> None:
        self._redact = context.redact
        self._last_revision = 0
        self._facts: dict[str, str | int | None] = {"cluster_uid": None}

    def split(self, stream: BinaryIO) -> Iterator[Chunk]:
        """Cut into documents, and lists into their items."""
        document = _Document()
        lines = io.BufferedReader(cast(io.RawIOBase, stream), 1 << 20)
        number = 0
        for number, line in enumerate(lines, 1):
            yield from document.feed(line.removeprefix(_BOM) if number == 1 else line, number)
        yield from document.end()
        yield _YamlChunk(b"", number + 1, last=True)

    def parse(self, chunk: Chunk) -> Batch:
        """Decode one document or item."""
        objects = ApiObjects(self._redact, self._last_revision)
        if isinstance(chunk, _YamlChunk) and chunk.data.strip():
            self._document(objects, chunk)
        self._last_revision = objects.last_revision
        self._facts["cluster_uid"] = objects.rows.cluster_uid or self._facts["cluster_uid"]
        return objects.batch()

    def facts(self) -> dict[str, str | int | None]:
        """Return the uid of kube-system, where seen."""
        return self._facts

    def _document(self, objects: ApiObjects, chunk: _YamlChunk) -> None:
        try:
            value = _load(chunk.data)
        except yaml.YAMLError as error:
            # The error's own words may quote a Secret; its kind and place do not.
            mark = getattr(error, "problem_mark", None)
            line = chunk.record_no + mark.line if mark else chunk.record_no
            words = getattr(error, "problem", None) or type(error).__name__
            objects.note("OBJECT_UNREADABLE", line, str(words)[:200])
            return
        except (ValueError, RecursionError) as error:
            objects.note("OBJECT_UNREADABLE", chunk.record_no, str(error)[:200])
            return
        if chunk.item and isinstance(value, list):
            kind, api_version = chunk.owner
            owner = {"kind": kind, "apiVersion": api_version}
            for one in value:
                objects.take(typed(one, owner), chunk.record_no)
        elif value is not None:
            objects.take(value, chunk.record_no)


class _Document:
    """The document being read, a line at a time."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._start = 1
        self._item: list[bytes] = []
        self._item_start = 0
        self._in_items = False

    def feed(self, line: bytes, number: int) -> Iterator[_YamlChunk]:
        """Take one line; yield what it completes."""
        text = line.rstrip()
        if text == b"---" or text.startswith(b"--- ") or text == b"...":
            yield from self.end()
            return
        if self._in_items and (line[:1] in b" \t\r\n-" or not text):
            if line[:1] == b"-":
                yield from self._end_item()
                self._item_start = number
            self._item.append(line)
            return
        if self._in_items:
            yield from self._end_item()
            self._in_items = False
        if not self._lines:
            self._start = number
        if text == b"items:":
            self._in_items = True
            self._lines.append(b"items: []\n")
        else:
            self._lines.append(line)

    def end(self) -> Iterator[_YamlChunk]:
        """End the document."""
        yield from self._end_item()
        lines, self._lines, self._in_items = self._lines, [], False
        if lines:
            yield _YamlChunk(b"".join(lines), self._start)

    def _end_item(self) -> Iterator[_YamlChunk]:
        item, self._item = self._item, []
        if b"".join(item[:1]).strip():
            told = dict(_LIST_HEAD.findall(b"".join(self._lines)))
            names = (told.get(name, b"").decode() for name in (b"kind", b"apiVersion"))
            owner = cast(tuple[str, str], tuple(names))
            yield _YamlChunk(b"".join(item), self._item_start, owner=owner, item=True)


def _load(data: bytes) -> Any:
    """Parse YAML that nobody vouches for.

    Raises:
        ValueError: If it is nested or repeated beyond what an object ever is.
        yaml.YAMLError: If it is no YAML.
    """
    if len(data) > _ITEM_BYTES:
        raise ValueError("a document of more than 64 MiB")
    if _FLOW_DEPTH.search(data):
        raise ValueError("nested too deep")
    value = yaml.load(data.decode("utf-8", "replace"), Loader=_Loader)
    if _ALIAS.search(data):
        _refuse_growth(value, _NODES_PER_BYTE * len(data))
    return value


def _refuse_growth(value: Any, limit: int) -> None:
    """Refuse aliases that unfold to much more than was written.

    Raises:
        ValueError: If there are more nodes than ``limit``.
    """
    todo = [value]
    while todo:
        limit -= 1
        if limit < 0:
            raise ValueError("aliases unfold to more than was written")
        node = todo.pop()
        if isinstance(node, dict):
            todo.extend(node.values())
        elif isinstance(node, list):
            todo.extend(node)
