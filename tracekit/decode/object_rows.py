"""Rows of ``objects`` in the making: what every source of etcd changes has in common."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import polars as pl

from tracekit.decode._redact import UNTOLD
from tracekit.decode.kubernetes import ValueMeta, read_meta
from tracekit.model.batches import Batch, Gap
from tracekit.model.diagnostics import Diagnostic

__all__ = [
    "DETAIL_CHARS",
    "NOTHING",
    "OPAQUE",
    "SCHEMA",
    "Change",
    "ObjectRows",
    "Redact",
    "is_bookkeeping",
    "shown",
    "suspect_kind",
]

Redact = Callable[[str, bytes, str], tuple[bytes, bool]]

DETAIL_CHARS = 200
# Base64, whole or cut: what a value's bytes look like in JSON.
_ENCODED = re.compile(r"[A-Za-z0-9+/=_-]{20,}")
NOTHING = ValueMeta("none", "", "", "", "", "")
OPAQUE = {"encrypted": "VALUE_ENCRYPTED", "cbor": "VALUE_CBOR", "opaque": "VALUE_UNREADABLE"}
SCHEMA: dict[str, pl.DataType] = {
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


class Change(NamedTuple):
    """One change of one key, its value as etcd had it; empty bytes for no value."""

    revision: int
    sub: int
    key: str
    deleted: bool
    version: int
    create_revision: int
    lease: int
    value: bytes
    previous: bytes
    record_no: int


class ObjectRows:
    """Columns that grow, a change at a time.

    Args:
        redact: Replaces payloads; None keeps them.

    Attributes:
        cluster_uid: uid of the kube-system namespace, once it was seen.
    """

    def __init__(self, redact: Redact | None) -> None:
        self._redact = redact
        self._columns: list[list[Any]] = [[] for _ in SCHEMA]
        self._append = tuple(column.append for column in self._columns)
        self._records = 0
        self.cluster_uid: str | None = None
        self.diagnostics: list[Diagnostic] = []
        self.gaps: list[Gap] = []

    def note(self, code: str, position: int, detail: str) -> None:
        """Add a diagnostic."""
        self.diagnostics.append(Diagnostic(code=code, position=position, detail=detail))

    def add(self, change: Change) -> None:
        """Add one change; identity is read from the value, or for a delete from the one before."""
        value = b"" if change.deleted else change.value
        told = value or change.previous
        meta = read_meta(told) if told else NOTHING
        if meta.kind == "Namespace" and meta.name == "kube-system":
            self.cluster_uid = meta.uid
        if meta.encoding in OPAQUE and not is_bookkeeping(change.key):
            self.note(OPAQUE[meta.encoding], change.record_no, change.key[:DETAIL_CHARS])
        value, changed = self._redacted(meta, change.key, value)
        before = read_meta(change.previous) if change.previous else NOTHING
        previous, _ = self._redacted(before, change.key, change.previous)
        self._records += 1
        row = (
            change.revision,
            change.sub,
            change.key,
            "DELETE" if change.deleted else "PUT",
            change.version,
            change.create_revision,
            change.lease,
            "none" if change.deleted else meta.encoding,
            meta.api_version,
            meta.kind,
            meta.namespace,
            meta.name,
            meta.uid,
            None if change.deleted else value,
            previous or None,
            changed,
            change.record_no,
        )
        for append, cell in zip(self._append, row, strict=True):
            append(cell)

    def batch(self) -> Batch:
        """Return the rows so far as a batch of ``objects``."""
        columns = dict(zip(SCHEMA, self._columns, strict=True))
        frame = pl.DataFrame(columns, schema=SCHEMA, orient="col")
        return Batch(
            table="objects",
            frame=frame,
            records=self._records,
            diagnostics=self.diagnostics,
            gaps=self.gaps,
        )

    def _redacted(self, meta: ValueMeta, key: str, value: bytes) -> tuple[bytes, bool]:
        if self._redact is None or not value:
            return value, False
        return self._redact(suspect_kind(meta, key), value, meta.encoding)


def is_bookkeeping(key: str) -> bool:
    """Tell whether a key is the API server's own note, not an object.

    Source: apiserver ``storage/etcd3/compact.go``, key ``compact_rev_key``.
    """
    return key.rsplit("/", 1)[-1] == "compact_rev_key"


def suspect_kind(meta: ValueMeta, key: str) -> str:
    """Return the kind to redact a value as: its own, or what its key says where it tells none.

    A Secret without kind or apiVersion is still a Secret where Secrets are stored.
    """
    if meta.kind and meta.api_version:
        return meta.kind
    return UNTOLD if "/secrets/" in key or "/configmaps/" in key else meta.kind


def shown(text: bytes) -> str:
    """Return the beginning of bytes as text, for a diagnostic, without what may be a payload."""
    words = text[:DETAIL_CHARS].decode("utf-8", "backslashreplace")
    return _ENCODED.sub(lambda run: f"…({len(run[0])} characters)…", words)
