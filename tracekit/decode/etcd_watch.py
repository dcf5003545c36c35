"""``etcdctl watch --prefix … -w json``: one response a line, as etcdctl prints it.

What the format really looks like (etcd's ``watch_command.go`` and ``printer_json.go``):
keys in capitals because ``clientv3.WatchResponse`` has no json tags; ``type`` absent for a
PUT and 1 for a DELETE; several events in a line; ``progress notify: N`` as plain text
between the lines; a canceled response with ``CompactRevision``; fields that are zero left
out. A recording that was cut ends in half a line.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import orjson
import polars as pl

from tracekit.decode.kubernetes import ValueMeta, read_meta
from tracekit.model.batches import Batch, Chunk, Gap, SourceContext
from tracekit.model.diagnostics import Diagnostic

__all__ = ["EtcdWatchDecoder", "EtcdWatchSession"]

BLOCK_BYTES = 8 << 20
_DETAIL = 200
_NOTHING = ValueMeta("none", "", "", "", "", "")
_RESPONSE = b'{"Header":'
_PROGRESS = b"progress notify:"
_CANCELED = b"watch was canceled"
_OPAQUE = {"encrypted": "VALUE_ENCRYPTED", "cbor": "VALUE_CBOR", "opaque": "VALUE_UNREADABLE"}
_SCHEMA: dict[str, pl.DataType] = {
    "revision": pl.Int64(),
    "sub": pl.Int64(),
    "key": pl.String(),
    "operation": pl.String(),
    "version": pl.Int64(),
    "create_revision": pl.Int64(),
    "lease": pl.Int64(),
    "encoding": pl.String(),
    "api_version": pl.String(),
    "kind": pl.String(),
    "namespace": pl.String(),
    "name": pl.String(),
    "uid": pl.String(),
    "value": pl.Binary(),
    "prev_value": pl.Binary(),
    "redacted": pl.Boolean(),
    "record_no": pl.Int64(),
}


class EtcdWatchDecoder:
    """Recordings of ``etcdctl watch -w json``."""

    name = "etcd-watch-json"

    def recognises(self, head: bytes) -> bool:
        """Tell whether one of the first lines is a watch response."""
        for line in head.split(b"\n", 20)[:20]:
            start = line.lstrip(b"\xef\xbb\xbf \t")[:400]
            if start.startswith(_RESPONSE) and b'"cluster_id"' in start:
                return True
            if start and not start.startswith((_PROGRESS, _CANCELED, b"{")):
                return False
        return False

    def open(self, context: SourceContext) -> EtcdWatchSession:
        """Begin a recording."""
        return EtcdWatchSession(context)

    def lead(self, tail: bytes, head: bytes) -> int | None:
        """Give the rest of a line that was cut between two pieces."""
        if tail.endswith(b"\n") or head.startswith(_RESPONSE):
            return 0
        return head.find(b"\n") + 1 or None


class EtcdWatchSession:
    """One recording; ``parse`` keeps the place inside the running revision."""

    parallel = False

    def __init__(self, context: SourceContext) -> None:
        self._redact = context.redact
        self._revision, self._sub = -1, -1
        self._facts: dict[str, str | int | None] = {"cluster_uid": None, "etcd_cluster_id": None}

    def split(self, stream: BinaryIO) -> Iterator[Chunk]:
        """Cut at line ends, about 8 MiB at a time; a longer line stays whole."""
        rest, record_no = b"", 1
        while block := stream.read(BLOCK_BYTES):
            cut = block.rfind(b"\n") + 1
            if not cut:
                rest += block
                continue
            data = rest + block[:cut]
            rest = block[cut:]
            yield Chunk(data, record_no)
            record_no += data.count(b"\n")
        if rest:
            yield Chunk(rest, record_no, last=True)

    def parse(self, chunk: Chunk) -> Batch:
        """Decode the responses of a chunk: one row an event."""
        rows = _Rows(self, self._redact)
        for number, line in enumerate(chunk.data.split(b"\n"), chunk.record_no):
            if line:
                self._line(rows, number, line)
        return rows.batch()

    def facts(self) -> dict[str, str | int | None]:
        """Return the etcd cluster id and the uid of kube-system, where seen."""
        return self._facts

    def place(self, revision: int) -> int:
        """Return the place of the next event inside its revision."""
        self._sub = self._sub + 1 if revision == self._revision else 0
        self._revision = revision
        return self._sub

    def found_cluster(self, uid: str) -> None:
        """Remember the uid of the kube-system namespace."""
        self._facts["cluster_uid"] = uid

    def _line(self, rows: _Rows, number: int, line: bytes) -> None:
        try:
            response = orjson.loads(line)
        except orjson.JSONDecodeError:
            self._text(rows, number, line)
            return
        try:
            self._response(rows, number, response)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            rows.note("WATCH_LINE_UNREADABLE", number, f"{error!r} in {_shown(line)}")

    def _response(self, rows: _Rows, number: int, response: dict[str, Any]) -> None:
        if self._facts["etcd_cluster_id"] is None:
            self._facts["etcd_cluster_id"] = str(response["Header"]["cluster_id"])
        for event in response.get("Events") or ():
            rows.add(number, event)
        if compacted := response.get("CompactRevision"):
            rows.note("WATCH_COMPACTED", number, f"compacted up to revision {compacted}")
            rows.gaps.append(Gap(from_revision=self._revision + 1, to_revision=compacted - 1,
                                 cause=f"etcd had compacted revisions below {compacted}"))
        elif response.get("Canceled"):
            rows.note("WATCH_CANCELED", number, _shown(orjson.dumps(response)))

    def _text(self, rows: _Rows, number: int, line: bytes) -> None:
        text = line.lstrip(b"\xef\xbb\xbf").strip()
        if not text or text.startswith(_PROGRESS):
            return
        if text.startswith(_CANCELED):
            rows.note("WATCH_CANCELED", number, _shown(text))
        elif text.startswith(b"{"):
            rows.note("WATCH_LINE_CUT", number, _shown(text))
        else:
            rows.note("WATCH_LINE_UNREADABLE", number, _shown(text))


class _Rows:
    """Columns that grow, an event at a time."""

    def __init__(
        self,
        session: EtcdWatchSession,
        redact: Callable[[str, bytes, str], tuple[bytes, bool]] | None,
    ) -> None:
        self._session, self._redact = session, redact
        self._columns: list[list[Any]] = [[] for _ in _SCHEMA]
        self._append = tuple(column.append for column in self._columns)
        self.diagnostics: list[Diagnostic] = []
        self.gaps: list[Gap] = []
        self._records = 0

    def note(self, code: str, number: int, detail: str) -> None:
        self.diagnostics.append(Diagnostic(code=code, position=number, detail=detail))

    def add(self, number: int, event: dict[str, Any]) -> None:
        kv = event["kv"]
        previous = event.get("prev_kv")
        revision = kv["mod_revision"]
        key = binascii.a2b_base64(kv["key"]).decode("utf-8", "backslashreplace")
        deleted = event.get("type", 0) in (1, "DELETE")
        value = b"" if deleted else binascii.a2b_base64(kv.get("value", ""))
        before = binascii.a2b_base64(previous["value"]) if previous and "value" in previous else b""
        meta = read_meta(value or before) if value or before else _NOTHING
        if meta.kind == "Namespace" and meta.name == "kube-system":
            self._session.found_cluster(meta.uid)
        self._check(meta, number, key)
        value, changed = self._redacted(meta, value)
        before, _ = self._redacted(meta, before)
        self._records += 1
        row = (
            revision,
            self._session.place(revision),
            key,
            "DELETE" if deleted else "PUT",
            kv.get("version", 0),
            kv.get("create_revision", 0),
            kv.get("lease", 0),
            "none" if deleted else meta.encoding,
            meta.api_version,
            meta.kind,
            meta.namespace,
            meta.name,
            meta.uid,
            None if deleted else value,
            before or None,
            changed,
            number,
        )
        for append, cell in zip(self._append, row, strict=True):
            append(cell)

    def _check(self, meta: ValueMeta, number: int, key: str) -> None:
        code = _OPAQUE.get(meta.encoding)
        if code and not _is_bookkeeping(key):
            self.note(code, number, key[:_DETAIL])

    def _redacted(self, meta: ValueMeta, value: bytes) -> tuple[bytes, bool]:
        if self._redact is None or not value:
            return value, False
        return self._redact(meta.kind, value, meta.encoding)

    def batch(self) -> Batch:
        names = zip(_SCHEMA, self._columns, strict=True)
        frame = pl.DataFrame({n: c for n, c in names}, schema=_SCHEMA, orient="col")
        return Batch(table="objects", frame=frame, records=self._records,
                     diagnostics=self.diagnostics, gaps=self.gaps)


def _is_bookkeeping(key: str) -> bool:
    """Tell whether a key is the API server's own note, not an object.

    Source: apiserver ``storage/etcd3/compact.go``, key ``compact_rev_key``.
    """
    return key.rsplit("/", 1)[-1] == "compact_rev_key"


def _shown(text: bytes) -> str:
    return text[:_DETAIL].decode("utf-8", "backslashreplace")
