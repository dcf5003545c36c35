"""etcd snapshots and copies of its ``.db``: every change since the last compaction.

The ``key`` bucket has one record a change: main and sub revision, ``t`` behind them for a
delete, and as value the protobuf KeyValue of the change. The file needs to be read here and
there, and it may come from a pipe, so it goes into a temporary file without a name first.

Source: etcd ``server/storage/mvcc`` (revision.go, kvstore.go), ``server/storage/schema``
(bucket.go, keys.go), ``api/mvccpb/kv.proto``; ``etcdutl/snapshot`` for the checksum.
"""

from __future__ import annotations

import hashlib
import mmap
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from struct import Struct
from typing import BinaryIO, Final, NamedTuple

from tracekit.decode._wire import WireError, read_int64, read_varint, skip_field
from tracekit.decode.bbolt import BboltFile, Bucket, Entry, is_bbolt
from tracekit.decode.object_rows import Change, ObjectRows
from tracekit.errors import DecodeError, FormatError
from tracekit.model.batches import Batch, Chunk, Gap, SourceContext
from tracekit.model.diagnostics import Diagnostic

__all__ = ["EtcdSnapshotDecoder", "EtcdSnapshotSession", "KeyValue", "SnapshotChunk"]

_COPY_BYTES: Final = 256 << 10  # stays in the processor's cache: twice as fast as 1 MiB
_CHUNK_RECORDS: Final = 8192
_CHUNK_BYTES: Final = 8 << 20
_SHA256_BYTES: Final = 32
_SECTOR_BYTES: Final = 512  # a bbolt file is a multiple of it, a snapshot has a checksum more
_MAX_DAMAGE: Final = 1000
_MAX_INT64: Final = (1 << 63) - 1

_REVISION: Final = Struct(">QcQ")
_TOMBSTONE: Final = b"t"
_COMPACTION_KEYS: Final = (b"scheduledCompactRev", b"finishedCompactRev")
_KEY, _CREATE, _MOD, _VERSION, _VALUE, _LEASE = 0x0A, 0x10, 0x18, 0x20, 0x2A, 0x30


@dataclass(frozen=True, slots=True, eq=False)
class SnapshotChunk(Chunk):
    """Records of the ``key`` bucket; ``data`` is empty and ``record_no`` counts records.

    Attributes:
        entries: The records in the order of their revisions.
        damage: What was found broken on the way to them.
        gaps: What the file is known to lack.
    """

    entries: list[Entry] = field(kw_only=True)
    damage: list[Diagnostic] = field(kw_only=True)
    gaps: list[Gap] = field(kw_only=True)


class EtcdSnapshotDecoder:
    """``etcdctl snapshot save`` and copies of ``member/snap/db``."""

    name = "etcd-snapshot"

    def recognises(self, head: bytes) -> bool:
        """Tell bbolt by its metas; whether etcd wrote it shows when it is opened."""
        return is_bbolt(head)

    def open(self, context: SourceContext) -> EtcdSnapshotSession:
        """Begin a snapshot."""
        return EtcdSnapshotSession(context)

    def lead(self, tail: bytes, head: bytes) -> int | None:
        """Give 0: whether a snapshot is whole cannot be told by its last bytes."""
        return 0


class EtcdSnapshotSession:
    """One snapshot; splitting walks its pages, parsing reads the records."""

    parallel = True

    def __init__(self, context: SourceContext) -> None:
        self._path, self._redact = context.path, context.redact
        self._cluster_uid: str | None = None

    def split(self, stream: BinaryIO) -> Iterator[Chunk]:
        """Walk the snapshot, about 8192 records or 8 MiB at a time.

        Yields:
            Chunks in the order of their revisions; the last one is flagged and may be empty.

        Raises:
            FormatError: If it is a bbolt file that etcd did not write.
            DecodeError: If the way to the records is broken.
        """
        with tempfile.TemporaryFile() as file:
            spooled = _spool(stream, file)
            if not spooled.size:
                raise FormatError("the file is empty", where=self._path)
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as pages:
                yield from self._walk(pages, spooled)

    def parse(self, chunk: Chunk) -> Batch:
        """Read the records of a chunk: one row each, ``sub`` as etcd numbered them."""
        rows = ObjectRows(self._redact)
        if isinstance(chunk, SnapshotChunk):
            rows.diagnostics += chunk.damage
            rows.gaps += chunk.gaps
            for number, entry in enumerate(chunk.entries, chunk.record_no):
                try:
                    rows.add(_change(number, entry))
                except (IndexError, ValueError) as error:
                    words = str(error) if isinstance(error, ValueError) else "its value is cut"
                    rows.note("SNAPSHOT_RECORD_UNREADABLE", number, f"{words}: {entry[1].hex()}")
        self._cluster_uid = rows.cluster_uid or self._cluster_uid
        return rows.batch()

    def facts(self) -> dict[str, str | int | None]:
        """Return the uid of kube-system, where seen.

        etcd keeps its cluster id in the write-ahead log, not in the file.
        """
        return {"cluster_uid": self._cluster_uid, "etcd_cluster_id": None}

    def _walk(self, pages: mmap.mmap, spooled: _Spooled) -> Iterator[Chunk]:
        try:
            snapshot = BboltFile(pages, spooled.pages_size)
        except DecodeError as error:
            raise DecodeError(error.what, where=self._path, todo=error.todo) from error
        damage, buckets = _Damage(snapshot), snapshot.buckets()
        if b"key" not in buckets:
            self._refuse(snapshot)
        gaps = _compactions(snapshot, buckets.get(b"meta"))
        notes = spooled.checksum_notes()
        entries: list[Entry] = []
        record_no, read = 1, snapshot.bytes_read
        for leaf in snapshot.leaves(buckets[b"key"]):
            entries += leaf
            if len(entries) >= _CHUNK_RECORDS or snapshot.bytes_read - read >= _CHUNK_BYTES:
                notes += damage.take()
                yield SnapshotChunk(b"", record_no, entries=entries, damage=notes, gaps=gaps)
                record_no, read = record_no + len(entries), snapshot.bytes_read
                entries, notes, gaps = [], [], []
                pages.madvise(mmap.MADV_DONTNEED)  # what was read need not stay mapped
        notes += damage.take()
        yield SnapshotChunk(b"", record_no, True, entries=entries, damage=notes, gaps=gaps)

    def _refuse(self, snapshot: BboltFile) -> None:
        if snapshot.damage:
            page, words = snapshot.damage[0]
            raise DecodeError(
                f"the way to etcd's keys is broken at page {page}: {words}",
                where=self._path,
                todo="copy it again, or save a new snapshot",
            )
        raise FormatError(
            "a bbolt file without etcd's key bucket; another program wrote it",
            where=self._path,
            todo="leave it out",
        )


class _Spooled(NamedTuple):
    """A stream that was copied to a file.

    Attributes:
        digest: SHA-256 of all but the last 32 bytes.
        tail: The last 32 bytes.
    """

    size: int
    digest: bytes
    tail: bytes

    @property
    def has_checksum(self) -> bool:
        """Tell a snapshot by its size, as etcd does."""
        return self.size % _SECTOR_BYTES == _SHA256_BYTES

    @property
    def pages_size(self) -> int:
        return self.size - _SHA256_BYTES if self.has_checksum else self.size

    def checksum_notes(self) -> list[Diagnostic]:
        if not self.has_checksum or self.digest == self.tail:
            return []
        detail = f"SHA-256 is {self.digest.hex()}, the file says {self.tail.hex()}"
        return [Diagnostic(code="SNAPSHOT_CHECKSUM", position=0, detail=detail)]


class _Damage:
    """Damaged pages as diagnostics, at most so many a snapshot."""

    def __init__(self, snapshot: BboltFile) -> None:
        self._snapshot = snapshot
        self._told = 0

    def take(self) -> list[Diagnostic]:
        """Return what was found since the last time."""
        found, self._snapshot.damage = self._snapshot.damage, []
        notes = [
            _page_note(page, f"page {page}: {words}")
            for page, words in found[: max(0, _MAX_DAMAGE - self._told)]
        ]
        if self._told < _MAX_DAMAGE <= self._told + len(found):
            notes.append(_page_note(0, f"only the first {_MAX_DAMAGE} damaged pages are listed"))
        self._told += len(found)
        return notes


class KeyValue(NamedTuple):
    """One mvccpb.KeyValue; a field that is not on the wire is empty or 0."""

    key: bytes
    create_revision: int
    mod_revision: int
    version: int
    value: bytes
    lease: int


def _page_note(page: int, detail: str) -> Diagnostic:
    return Diagnostic(code="SNAPSHOT_PAGE_DAMAGED", position=page, detail=detail)


def _spool(stream: BinaryIO, file: BinaryIO) -> _Spooled:
    """Copy a stream, and sum all of it but the end, which may be the checksum itself."""
    digest, tail, size = hashlib.sha256(), b"", 0
    while block := stream.read(_COPY_BYTES):
        file.write(block)
        size += len(block)
        held = tail + block
        digest.update(memoryview(held)[:-_SHA256_BYTES])
        tail = held[-_SHA256_BYTES:]
    file.flush()
    return _Spooled(size, digest.digest(), tail)


def _compactions(snapshot: BboltFile, bucket: Bucket | None) -> list[Gap]:
    """Return the hole that compaction left; a scheduled one may have begun.

    What is still there from before the compaction is the state at it, not the way to it.
    """
    compacted = 0
    for entries in snapshot.leaves(bucket or Bucket(0)):
        for _, key, value in entries:
            if key in _COMPACTION_KEYS and len(value) >= _REVISION.size:
                compacted = max(compacted, _REVISION.unpack_from(value)[0])
    if not 0 < compacted <= _MAX_INT64:
        return []
    cause = f"etcd had compacted revisions up to {compacted} before the snapshot"
    return [Gap(from_revision=1, to_revision=compacted, cause=cause)]


def _change(number: int, entry: Entry) -> Change:
    flags, place, raw = entry
    deleted = len(place) == _REVISION.size + 1 and place.endswith(_TOMBSTONE)
    if flags or not (deleted or len(place) == _REVISION.size):
        raise WireError("its key is no revision")
    revision, separator, sub = _REVISION.unpack_from(place)
    if separator != b"_" or revision > _MAX_INT64 or sub > _MAX_INT64:
        raise WireError("its key is no revision")
    key, created, modified, version, value, lease = _key_value(raw)
    if not key or (modified != revision and not deleted):
        raise WireError(f"its value is of revision {modified}, its key of {revision}")
    name = key.decode("utf-8", "backslashreplace")
    return Change(revision, sub, name, deleted, version, created, lease, value, b"", number)


def _key_value(raw: bytes) -> KeyValue:
    """Read a KeyValue.

    Raises:
        WireError: If a field reaches beyond the record.

    Source: etcd ``api/mvccpb/kv.proto``.
    """
    key = value = b""
    numbers = {_CREATE: 0, _MOD: 0, _VERSION: 0, _LEASE: 0}
    i, end = 0, len(raw)
    while i < end:
        tag = raw[i]
        if tag in numbers:
            numbers[tag], i = read_int64(raw, i + 1)
        elif tag in (_KEY, _VALUE):
            length, start = read_varint(raw, i + 1)
            i = start + length
            if tag == _KEY:
                key = raw[start:i]
            else:
                value = raw[start:i]
        else:
            tag, i = read_varint(raw, i)
            i = skip_field(raw, i, tag)
    if i > end:
        raise WireError("a field is longer than its record")
    return KeyValue(key, numbers[_CREATE], numbers[_MOD], numbers[_VERSION], value, numbers[_LEASE])
