"""``etcdctl get --prefix … -w json``: the keys as they are now, each at its last change.

One document, ``{"header":{…},"kvs":[{…},…],"count":N}``, often on one very long line; several
may follow each other. Header and kvs are flat objects whose strings are base64 and so have no
brace: whatever stands between ``{`` and the next ``}`` is one of them, and any ``}`` is a
place to cut. Numbers of etcd's HTTP gateway are strings.

Source: etcd ``api/etcdserverpb/rpc.proto`` RangeResponse, ``api/mvccpb/kv.proto``, and
``etcdctl/ctlv3/command/printer_json.go``.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final

import orjson

from tracekit.decode.object_rows import Change, ObjectRows, shown
from tracekit.model.batches import Batch, Chunk, SourceContext

__all__ = ["EtcdGetDecoder", "EtcdGetSession", "GetChunk"]

_BLOCK_BYTES: Final = 8 << 20
_MAX_RECORD_BYTES: Final = 64 << 20  # etcd takes 1.5 MiB a value unless told otherwise
_MAX_INT64: Final = (1 << 63) - 1

_START: Final = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{\s*"(?:header|kvs|more|count)"\s*:')
_KVS: Final = re.compile(rb'"kvs"\s*:\s*\[')
_EMPTY: Final = re.compile(rb'\s*\{\s*"header"\s*:\s*\{[^{}]*\}\s*\}\s*')
_FLAT: Final = re.compile(rb"\{[^{}]*\}")
_BETWEEN: Final = re.compile(
    rb'(?:[\s,:\[\]{}\d]|\xef\xbb\xbf|"(?:header|kvs|more|count|\d+)"|true|false|null)*+'
)
_MORE: Final = re.compile(rb'"more"\s*:\s*true')
_DOCUMENT_END: Final = re.compile(rb"\}\s*(?=[^\s,\]])")
_KV_MARK: Final = b'"mod_revision"'
_VALUE_MARK: Final = b'"value"'


@dataclass(frozen=True, slots=True)
class GetChunk(Chunk):
    """Whole kvs with what stands between them; ``record_no`` counts kvs.

    Attributes:
        is_cut: The source ends behind this chunk, inside a document.
        has_values: A kv so far had a value: one without has an empty one.
    """

    is_cut: bool = field(kw_only=True)
    has_values: bool = field(kw_only=True)


class EtcdGetDecoder:
    """Output of ``etcdctl get -w json``."""

    name = "etcd-get-json"

    def recognises(self, head: bytes) -> bool:
        """Tell a range response by its header and its list of kvs; no key found, no list."""
        if not _START.match(head) or b'"cluster_id"' not in head:
            return False
        return bool(_KVS.search(head) or _EMPTY.fullmatch(head))

    def open(self, context: SourceContext) -> EtcdGetSession:
        """Begin a document."""
        return EtcdGetSession(context)

    def lead(self, tail: bytes, head: bytes) -> int | None:
        """Give the rest of a document that was cut between two pieces.

        It ends with the first ``}`` behind which no list goes on.
        """
        if _START.match(head):
            return 0
        if tail.rstrip().endswith(b"}") and not head.lstrip().startswith((b",", b"]", b"}")):
            return 0
        end = _DOCUMENT_END.search(head)
        return end.end() if end else None


class EtcdGetSession:
    """One recording of the state; each kv is the change that its key last had."""

    parallel = True

    def __init__(self, context: SourceContext) -> None:
        self._redact = context.redact
        self._facts: dict[str, str | int | None] = {
            "cluster_uid": None,
            "etcd_cluster_id": None,
            "header_revision": None,
        }

    def split(self, stream: BinaryIO) -> Iterator[Chunk]:
        """Cut behind an object, about 8 MiB at a time.

        Yields:
            Chunks; the last one is flagged and holds all that is left.
        """
        pending, record_no, depth, has_values = b"", 1, 0, False
        block = _read_block(stream)
        while block:
            following = _read_block(stream)
            pending += block
            cut = pending.rfind(b"}") + 1 if following else len(pending)
            if not cut and len(pending) > _MAX_RECORD_BYTES:
                cut = len(pending)
            data, pending, block = pending[:cut], pending[cut:], following
            if not data:
                continue
            depth += data.count(b"{") - data.count(b"}")
            has_values = has_values or _VALUE_MARK in data
            last = not following
            yield GetChunk(data, record_no, last, is_cut=last and depth != 0, has_values=has_values)
            record_no += data.count(_KV_MARK)

    def parse(self, chunk: Chunk) -> Batch:
        """Decode the kvs of a chunk: a PUT each, at its ``mod_revision``."""
        rows, kvs, number, end = ObjectRows(self._redact), [], chunk.record_no, 0
        for match in _FLAT.finditer(chunk.data):
            self._between(rows, number, chunk.data[end : match.start()])
            end = match.end()
            flat = self._flat(rows, number, match[0])
            if "mod_revision" in flat:
                kvs.append((number, flat))
            number += _KV_MARK in match[0]
        rest = chunk.data[end:]
        if isinstance(chunk, GetChunk) and chunk.is_cut:
            rows.note("GET_CUT", number, shown(rest.strip() or chunk.data[-80:]))
        else:
            self._between(rows, number, rest)
        if chunk.last and _MORE.search(rest):
            rows.note("GET_LIMITED", number - 1, shown(rest.strip()))
        # etcd leaves out what is empty: one key without a value has none, all of them were not
        # asked for their values.
        if kvs and isinstance(chunk, GetChunk) and not chunk.has_values:
            rows.note("GET_WITHOUT_VALUES", chunk.record_no, f"{len(kvs)} keys without a value")
        else:
            self._add(rows, kvs)
        self._facts["cluster_uid"] = rows.cluster_uid or self._facts["cluster_uid"]
        return rows.batch()

    def facts(self) -> dict[str, str | int | None]:
        """Return what header and kvs told.

        ``header_revision`` is the store's revision when it was asked, the place to watch on
        from; with ``--rev`` the keys are those of an earlier one.
        """
        return self._facts

    def _between(self, rows: ObjectRows, number: int, text: bytes) -> None:
        if text != b"," and not _BETWEEN.fullmatch(text):
            rows.note("GET_RECORD_UNREADABLE", number, shown(text.strip()))

    def _flat(self, rows: ObjectRows, number: int, text: bytes) -> dict[str, Any]:
        """Read one object; remember a header."""
        try:
            flat: dict[str, Any] = orjson.loads(text)
            if "cluster_id" in flat and self._facts["etcd_cluster_id"] is None:
                self._facts["etcd_cluster_id"] = str(flat["cluster_id"])
                self._facts["header_revision"] = int(flat["revision"])
        except (ValueError, TypeError, KeyError):
            rows.note("GET_RECORD_UNREADABLE", number, shown(text))
            return {}
        return flat

    def _add(self, rows: ObjectRows, kvs: list[tuple[int, dict[str, Any]]]) -> None:
        for number, kv in kvs:
            try:
                rows.add(_change(number, kv))
            except (KeyError, TypeError, ValueError, OverflowError) as error:
                rows.note("GET_RECORD_UNREADABLE", number, shown(f"{error!r} in {kv}".encode()))


def _read_block(stream: BinaryIO) -> bytes:
    """Read a block; a pipe gives it in smaller pieces."""
    parts, missing = [], _BLOCK_BYTES
    while missing and (part := stream.read(missing)):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def _change(number: int, kv: dict[str, Any]) -> Change:
    revision, version, created, lease = (
        int(kv.get(name, 0)) for name in ("mod_revision", "version", "create_revision", "lease")
    )
    if not 0 < revision <= _MAX_INT64 or max(map(abs, (version, created, lease))) > _MAX_INT64:
        raise ValueError("a number is out of range")
    key = binascii.a2b_base64(kv["key"], strict_mode=True)
    value = binascii.a2b_base64(kv.get("value") or "", strict_mode=True)
    name = key.decode("utf-8", "backslashreplace")
    # A get does not tell the place inside the revision, so it is 0.
    return Change(revision, 0, name, False, version, created, lease, value, b"", number)
