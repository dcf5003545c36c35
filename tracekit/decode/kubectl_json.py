"""What kubectl prints: JSON objects, lists and watch streams, and text for people.

Both come mixed in one file (a session copied from a terminal, ``kubectl cluster-info dump``
without a folder), so both decoders read both; they differ in what they recognise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import orjson

from tracekit.decode.api_objects import ApiObjects, condition_texts, is_api_object
from tracekit.decode.json_pieces import JsonPiece, JsonPieces, loads
from tracekit.decode.kubectl_tables import event_row, is_event_header, read_header
from tracekit.decode.kubectl_text import KubectlText
from tracekit.decode.line_chunks import line_chunks
from tracekit.decode.message_text import message_text
from tracekit.model.batches import Batch, Chunk, SourceContext

__all__ = ["KubectlJsonDecoder", "KubectlSession", "KubectlTextDecoder"]

_BOM: Final = b"\xef\xbb\xbf"
_LOOKED_AT: Final = 400  # lines of the head
_JSON_KEYS: Final = re.compile(
    rb'^[ \t]*"(?:apiVersion|items|involvedObject|metadata|conditions|object)" ?: ?', re.MULTILINE
)
_COMPACT: Final = re.compile(
    rb'\{"type": ?"(?:ADDED|MODIFIED|DELETED|BOOKMARK|ERROR)", ?"object": ?\{'
    rb'|\{"object": ?\{|\{(?:"kind": ?"\w+", ?)?"apiVersion": ?"[\w./]+"'
)
_AUDIT: Final = re.compile(rb'"(?:apiVersion": ?"audit\.k8s\.io/|auditID"|stageTimestamp")')
# A pretty value ends with its bracket in the first column, a compact one before the next.
_VALUE_END: Final = re.compile(rb"^[}\]][ \t\r]*(?:\n|\Z)|^(?=[{\[])", re.MULTILINE)
_DESCRIPTION: Final = re.compile(r"(?:Name|Namespace|Node|Status|Reason|Events):(?:\s+\S.*)?$")
_LOG: Final = re.compile(
    rb"\b[IWEF]\d{4} \d\d:\d\d:\d\d\.\d|^time=\"|\blevel=\w+ |^\d{4}-\d\d-\d\dT\S+ (?:std|[A-Z])"
    rb"|^[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d |^\{\"(?:ts|log|level)\""
)


class KubectlJsonDecoder:
    """``kubectl get -o json``, single, listed or watched; also from ``--raw`` and ``jq``."""

    name = "kubectl-json"

    def recognises(self, head: bytes) -> bool:
        """Tell whether the first value is an object of the Kubernetes API, or a list of such."""
        start = head.removeprefix(_BOM).lstrip()
        if start[:1] not in (b"{", b"["):
            return False
        line, _, rest = start.partition(b"\n")
        if line.strip() == b"[" and rest.startswith(b'{"'):
            line = rest.partition(b"\n")[0].rstrip(b", \r")
        if len(line.strip()) > 1:
            return _is_compact_api(line.strip(), cut=not rest and len(head) > 60_000)
        return _JSON_KEYS.search(start) is not None and _AUDIT.search(start) is None

    def open(self, context: SourceContext) -> KubectlSession:
        """Begin a source."""
        return KubectlSession(context)

    def lead(self, tail: bytes, head: bytes) -> int | None:
        """Give the rest of a value that was cut between two pieces: up to its last bracket."""
        last = tail.rstrip(b"\r\n").rpartition(b"\n")[2]
        closed = last.endswith((b"}", b"]")) and last[:1] not in b" \t"
        if closed and (tail.endswith(b"\n") or head[:1] in (b"{", b"[")):
            return 0
        start = 0 if tail.endswith(b"\n") else head.find(b"\n") + 1
        end = _VALUE_END.search(head, start) if start or tail.endswith(b"\n") else None
        return end.end() if end else None


class KubectlTextDecoder:
    """``kubectl describe``, ``kubectl get events`` or ``pods`` as tables, pasted messages."""

    name = "kubectl-text"

    def recognises(self, head: bytes) -> bool:
        """Tell whether a line is of a table or a known message, and none is of a log."""
        lines = head.removeprefix(_BOM).split(b"\n")[:_LOOKED_AT]
        if any(_LOG.search(line[:400]) for line in lines):
            return False
        known = (_is_known(line.decode("utf-8", "replace").rstrip()) for line in lines)
        return b"\0" not in head and any(known)

    def open(self, context: SourceContext) -> KubectlSession:
        """Begin a source."""
        return KubectlSession(context)

    def lead(self, tail: bytes, head: bytes) -> int | None:
        """Tell that each file stands for itself: what is pasted often lacks its last newline."""
        return 0


def _is_compact_api(line: bytes, *, cut: bool) -> bool:
    if _AUDIT.search(line[:4096]):
        return False
    if cut:
        return _COMPACT.match(line) is not None or b'"apiVersion"' in line[:4096]
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return _COMPACT.match(line) is not None
    return is_api_object(value[0] if isinstance(value, list) and value else value)


def _is_known(line: str) -> bool:
    if len(line) > 4096:
        line = line[:4096]
    return bool(
        event_row(line, 1)
        or read_header(line)
        or message_text(line, 1)
        or (is_event_header(line) and "Message" in line)
        or _DESCRIPTION.match(line)
    )


class KubectlSession:
    """One source; ``parse`` keeps the value and the table that it is inside of."""

    parallel = False

    def __init__(self, context: SourceContext) -> None:
        self._redact = context.redact
        self._json, self._text = JsonPieces(), KubectlText()
        self._last_revision = 0
        self._tabled: dict[tuple[str, str], tuple[int, dict[str, Any]]] = {}
        self._facts: dict[str, str | int | None] = {"cluster_uid": None}

    def split(self, stream: BinaryIO) -> Iterator[Chunk]:
        """Cut at line ends."""
        return line_chunks(stream)

    def parse(self, chunk: Chunk) -> Batch:
        """Decode the objects and texts that a chunk completes."""
        objects = ApiObjects(self._redact, self._last_revision)
        data = chunk.data.removeprefix(_BOM) if chunk.record_no == 1 else chunk.data
        for line_no, line in enumerate(data.split(b"\n"), chunk.record_no):
            if self._json.wants(line):
                self._text.interrupt()
                self._pieces(objects, self._json.feed(line, line_no))
            elif line:
                self._text.feed(line.decode("utf-8", "replace").rstrip("\r"), line_no)
        if chunk.last:
            self._pieces(objects, self._json.finish())
            self._text.flush()
        self._hear(objects, last=chunk.last)
        self._last_revision = objects.last_revision
        self._facts["cluster_uid"] = objects.rows.cluster_uid or self._facts["cluster_uid"]
        return objects.batch()

    def facts(self) -> dict[str, str | int | None]:
        """Return the uid of kube-system, where seen."""
        return self._facts

    def _pieces(self, objects: ApiObjects, pieces: list[JsonPiece]) -> None:
        for piece in pieces:
            if piece.fault:
                objects.note("OBJECT_CUT", piece.line_no, piece.fault)
                continue
            try:
                self._value(objects, piece, loads(piece.data))
            except ValueError as error:
                self._broken(objects, piece, str(error))

    def _value(self, objects: ApiObjects, piece: JsonPiece, value: object) -> None:
        if piece.kind.endswith("List") and isinstance(value, dict) and "kind" not in value:
            kind = piece.kind.removesuffix("List")
            if kind:
                value = {"apiVersion": piece.api_version, "kind": kind, **value}
        if isinstance(value, dict) and self._text.pod and not is_api_object(value):
            texts = condition_texts(value, piece.line_no, self._text.context)
            for text in texts:
                objects.texts.add(text)
            if texts:
                return
        objects.take(value, piece.line_no)

    def _broken(self, objects: ApiObjects, piece: JsonPiece, why: str) -> None:
        """Read values that stand behind each other in one line; else tell the damage."""
        parts = piece.data.replace(b"}{", b"}\n{").split(b"\n") if b"}{" in piece.data else []
        values: list[object] = []
        try:
            values = [loads(part) for part in parts]
        except ValueError:
            values = []
        for value in values:
            objects.take(value, piece.line_no)
        if not values:
            # The words of a broken object may be a Secret's, so they are not shown.
            code = "OBJECT_UNREADABLE" if piece.data[-1:] in b"]}" else "OBJECT_CUT"
            objects.note(code, piece.line_no, why)

    def _hear(self, objects: ApiObjects, *, last: bool) -> None:
        """Move what the text told into rows; of a pod in many tables the last row stays."""
        heard = self._text.take()
        for text in heard.texts:
            objects.texts.add(text)
        for line_no, words in heard.unknown:
            objects.note("TEXT_UNKNOWN", line_no, words)
        for line_no, pod in heard.pods:
            metadata = pod["metadata"]
            self._tabled[metadata["namespace"], metadata["name"]] = line_no, pod
        if last:
            for line_no, pod in self._tabled.values():
                objects.take(pod, line_no)
