"""``etcdctl get --prefix`` as it prints without ``-w json``: a key, a line break, the value.

The value is raw protobuf with line breaks of its own, so what ends it is the next line that is
a key below the same root. No revision is told: the states stand at revision 0.

Source: etcd ``etcdctl/ctlv3/command/printer_simple.go``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO, Final

from tracekit.decode.blocks import read_block
from tracekit.decode.object_rows import Change, ObjectRows
from tracekit.model.batches import Batch, Chunk, SourceContext

__all__ = ["EtcdGetPlainDecoder", "EtcdGetPlainSession"]

_BLOCK_BYTES: Final = 4 << 20
_FIRST: Final = re.compile(
    rb"^(/[\w.-]+/)[\w./:~-]*\r?\n(?=k8s\x00|k8s:enc:|\{\"(?:apiVersion|kind|metadata)\")",
    re.MULTILINE,
)


class EtcdGetPlainDecoder:
    """Keys and raw values, one after the other."""

    name = "etcd-get-plain"

    def recognises(self, head: bytes) -> bool:
        """Tell whether a line is a key and the next one begins a stored value."""
        return _FIRST.search(head) is not None

    def open(self, context: SourceContext) -> EtcdGetPlainSession:
        """Begin a source."""
        return EtcdGetPlainSession(context)

    def lead(self, tail: bytes, head: bytes) -> int | None:
        """Give the rest of a value that was cut between two pieces."""
        key = _FIRST.search(head)
        return key.start() if key else None


class EtcdGetPlainSession:
    """One source; its first key tells the root of the others."""

    parallel = False

    def __init__(self, context: SourceContext) -> None:
        self._redact = context.redact
        self._key: re.Pattern[bytes] | None = None
        self._facts: dict[str, str | int | None] = {"cluster_uid": None}

    def split(self, stream: BinaryIO) -> Iterator[Chunk]:
        """Cut before keys, about 4 MiB at a time."""
        held, record_no = b"", 1
        while block := read_block(stream, _BLOCK_BYTES):
            held += block
            keys = list(self._keys(held))
            if len(keys) > 1:
                cut = keys[-1].start()
                yield Chunk(held[:cut], record_no)
                record_no += held.count(b"\n", 0, cut)
                held = held[cut:]
        yield Chunk(held, record_no, last=True)

    def parse(self, chunk: Chunk) -> Batch:
        """Decode the keys of a chunk."""
        rows = ObjectRows(self._redact)
        keys = list(self._keys(chunk.data))
        if chunk.record_no == 1:
            rows.note("GET_WITHOUT_REVISIONS", 0, "no -w json")
        ends = [key.start() for key in keys[1:]] + [len(chunk.data)]
        for key, end in zip(keys, ends, strict=True):
            line_no = chunk.record_no + chunk.data.count(b"\n", 0, key.start())
            value = chunk.data[key.end() : end].removesuffix(b"\n")
            rows.add(
                Change(
                    revision=0,
                    sub=0,
                    key=key[0].strip().decode("utf-8", "backslashreplace"),
                    deleted=False,
                    version=0,
                    create_revision=0,
                    lease=0,
                    value=value,
                    previous=b"",
                    record_no=line_no,
                )
            )
        self._facts["cluster_uid"] = rows.cluster_uid or self._facts["cluster_uid"]
        return rows.batch()

    def facts(self) -> dict[str, str | int | None]:
        """Return the uid of kube-system, where seen."""
        return self._facts

    def _keys(self, data: bytes) -> Iterator[re.Match[bytes]]:
        if self._key is None:
            first = _FIRST.search(data)
            if first is None:
                return iter(())
            root = re.escape(first[1])
            self._key = re.compile(rb"^" + root + rb"[\w./:~-]+\r?\n", re.MULTILINE)
        return self._key.finditer(data)
