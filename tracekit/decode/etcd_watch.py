"""``etcdctl watch --prefix … -w json``: one response a line, as etcdctl prints it.

What the format really looks like (etcd's ``watch_command.go`` and ``printer_json.go``):
keys in capitals because ``clientv3.WatchResponse`` has no json tags; ``type`` absent for a
PUT and 1 for a DELETE; several events in a line; ``progress notify: N`` as plain text
between the lines; a canceled response with ``CompactRevision``; fields that are zero left
out. A recording that was cut ends in half a line.
"""

from __future__ import annotations

import binascii
import io
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, cast

import orjson
import polars as pl

from tracekit.decode.kubernetes import ValueMeta, read_meta
from tracekit.decode.object_rows import (
    DETAIL_CHARS,
    NOTHING,
    OPAQUE,
    SCHEMA,
    Redact,
    is_bookkeeping,
    shown,
    suspect_kind,
)
from tracekit.model.batches import Batch, Chunk, Gap, SourceContext
from tracekit.model.diagnostics import Diagnostic

__all__ = ["EtcdWatchDecoder", "EtcdWatchSession"]

BLOCK_BYTES = 8 << 20
_MARK = b"\xef\xbb\xbf"  # byte order mark
_RESPONSE = b'{"Header":'
_PROGRESS = b"progress notify:"
_CANCELED = b"watch was canceled"

_TOLD = (
    "revision", "sub", "key", "operation", "version", "create_revision", "lease", "record_no",
)  # fmt: skip
_READ = ("encoding", "api_version", "kind", "namespace", "name", "uid")
_DELETED = pl.col("operation") == "DELETE"
# A delete has no value; what read_meta told then is of the value before.
_ABSENT = {
    "encoding": pl.when(_DELETED).then(pl.lit("none")).otherwise("encoding"),
    "value": pl.when(~_DELETED).then("value"),
    "prev_value": pl.when(pl.col("prev_value").bin.size() > 0).then("prev_value"),
}

_Event = tuple[int, int, str, str, int, int, int, int]  # the columns of _TOLD


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
        block = bytearray(BLOCK_BYTES)  # one for all reads: fresh memory costs page faults
        view = memoryview(block)
        rest: list[bytes] = []
        record_no = 1
        while filled := _fill(view, stream):
            cut = block.rfind(b"\n", 0, filled) + 1
            if cut:
                data = b"".join([*rest, view[:cut]])
                rest = []
                yield Chunk(data, record_no)
                record_no += data.count(b"\n")
            if cut < filled:
                rest.append(bytes(view[cut:filled]))
        if rest:
            yield Chunk(b"".join(rest), record_no, last=True)

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
        if number == 1:
            line = line.removeprefix(_MARK)
        try:
            response = orjson.loads(line)
        except orjson.JSONDecodeError:
            self._text(rows, number, line)
            return
        try:
            self._response(rows, number, response)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            rows.note("WATCH_LINE_UNREADABLE", number, f"{error!r} in {shown(line)}")

    def _response(self, rows: _Rows, number: int, response: dict[str, Any]) -> None:
        if self._facts["etcd_cluster_id"] is None:
            self._facts["etcd_cluster_id"] = str(response["Header"]["cluster_id"])
        for event in response.get("Events") or ():
            rows.add(number, event)
        compacted = response.get("CompactRevision") or 0
        if compacted >> 63:
            raise ValueError("a number has more than 64 bits")
        if compacted:
            rows.note("WATCH_COMPACTED", number, f"compacted up to revision {compacted}")
            rows.gaps.append(
                Gap(
                    from_revision=self._revision + 1,
                    to_revision=compacted - 1,
                    cause=f"etcd had compacted revisions below {compacted}",
                )
            )
        elif response.get("Canceled"):
            rows.note("WATCH_CANCELED", number, shown(orjson.dumps(response)))

    def _text(self, rows: _Rows, number: int, line: bytes) -> None:
        text = line.lstrip(b"\xef\xbb\xbf").strip()
        if not text or text.startswith(_PROGRESS):
            return
        if text.startswith(_CANCELED):
            rows.note("WATCH_CANCELED", number, shown(text))
        elif text.startswith(b"{"):
            rows.note("WATCH_LINE_CUT", number, shown(text))
        else:
            rows.note("WATCH_LINE_UNREADABLE", number, shown(text))


class _Rows:
    """The events of a chunk: taken one by one, made into columns all at once."""

    def __init__(self, session: EtcdWatchSession, redact: Redact | None) -> None:
        self._session, self._redact = session, redact
        self._events: list[_Event] = []
        self._texts: list[tuple[str, str]] = []
        self.diagnostics: list[Diagnostic] = []
        self.gaps: list[Gap] = []

    def note(self, code: str, number: int, detail: str) -> None:
        self.diagnostics.append(Diagnostic(code=code, position=number, detail=detail))

    def add(self, number: int, event: dict[str, Any]) -> None:
        """Take an event; its values stay base64 until ``batch``."""
        kv, previous = event["kv"], event.get("prev_kv")
        revision, version = kv["mod_revision"], kv.get("version", 0)
        created, lease = kv.get("create_revision", 0), kv.get("lease", 0)
        # The bit operations raise TypeError where one is no integer.
        if (revision | version | created) >> 63 or (lease | 0) >> 63 not in (0, -1):
            raise ValueError("a number has more than 64 bits")
        key = _unbase64(kv["key"]).decode("utf-8", "backslashreplace")
        deleted = event.get("type", 0) in (1, "DELETE")
        operation = "DELETE" if deleted else "PUT"
        value = "" if deleted else kv.get("value", "")
        before = previous.get("value", "") if previous else ""
        sub = self._session.place(revision)
        self._events.append((revision, sub, key, operation, version, created, lease, number))
        self._texts.append((value, before))

    def batch(self) -> Batch:
        """Give the events as a frame, their values decoded, identified and redacted."""
        values, befores = self._decoded()
        metas = [
            read_meta(value or before) if value or before else NOTHING
            for value, before in zip(values, befores, strict=True)
        ]
        self._look_at(metas)
        redacted = self._redact_all(metas, values)
        self._redact_all([read_meta(before) if before else NOTHING for before in befores], befores)
        told = zip(*self._events, strict=True) if self._events else ((),) * len(_TOLD)
        columns: dict[str, Any] = dict(zip(_TOLD, told, strict=True))
        columns |= {name: [getattr(meta, name) for meta in metas] for name in _READ}
        columns |= {"value": values, "prev_value": befores, "redacted": redacted}
        frame = pl.DataFrame({name: columns[name] for name in SCHEMA}, schema=SCHEMA)
        frame = frame.with_columns(**_ABSENT)
        self.diagnostics.sort(key=lambda note: note.position)
        return Batch(
            table="objects",
            frame=frame,
            records=frame.height,
            diagnostics=self.diagnostics,
            gaps=self.gaps,
        )

    def _decoded(self) -> tuple[list[bytes], list[bytes]]:
        """Undo the base64, leaving out events where there is none."""
        values: list[bytes] = []
        befores: list[bytes] = []
        if not self._texts:
            return values, befores
        value_texts, before_texts = zip(*self._texts, strict=True)
        try:
            return _decode(value_texts), _decode(before_texts)
        except (TypeError, pl.exceptions.ComputeError):
            events, self._events = self._events, []
        for event, (value, before) in zip(events, self._texts, strict=True):
            try:
                pair = _unbase64(value), _unbase64(before)
            except (TypeError, ValueError) as error:
                self.note(
                    "WATCH_LINE_UNREADABLE", event[-1], f"{error!r} in {event[2][:DETAIL_CHARS]}"
                )
                continue
            self._events.append(event)
            values.append(pair[0])
            befores.append(pair[1])
        return values, befores

    def _look_at(self, metas: list[ValueMeta]) -> None:
        """Note values that stay opaque; find the uid that names the cluster."""
        for meta, event in zip(metas, self._events, strict=True):
            if meta.encoding in OPAQUE and not is_bookkeeping(event[2]):
                self.note(OPAQUE[meta.encoding], event[-1], event[2][:DETAIL_CHARS])
            elif meta.kind == "Namespace" and meta.name == "kube-system":
                self._session.found_cluster(meta.uid)

    def _redact_all(self, metas: list[ValueMeta], values: list[bytes]) -> list[bool]:
        """Redact the values in their places and tell which of them changed."""
        changed = [False] * len(values)
        if self._redact is not None:
            for i, (meta, value) in enumerate(zip(metas, values, strict=True)):
                if value:
                    kind = suspect_kind(meta, self._events[i][2])
                    values[i], changed[i] = self._redact(kind, value, meta.encoding)
        return changed


def _fill(block: memoryview, stream: BinaryIO) -> int:
    """Fill the block, less only at the end; a pipe gives small pieces at a time."""
    read, filled = cast(io.RawIOBase, stream).readinto, 0
    while filled < len(block) and (count := read(block[filled:])):
        filled += count
    return filled


def _decode(texts: Sequence[str]) -> list[bytes]:
    """Undo the base64 of all texts at once; ``TypeError`` or ``ComputeError`` if one has none."""
    if not any(texts):
        return [b""] * len(texts)
    decoded = pl.Series(texts, dtype=pl.String()).str.decode("base64")
    if decoded.null_count():
        raise TypeError("a value is null")
    values: list[bytes] = decoded.to_list()
    return values


def _unbase64(text: str) -> bytes:
    return binascii.a2b_base64(text, strict_mode=True)
