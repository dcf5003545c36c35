"""Live etcd: list, then watch, into the store, resuming where the store ends."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import polars as pl

from tracekit.decode import make_redactor
from tracekit.decode.object_rows import Change, ObjectRows
from tracekit.model import live
from tracekit.model.batches import Gap
from tracekit.model.options import CollectOptions, CollectSummary
from tracekit.pipeline.collection import Collection
from tracekit.pipeline.summaries import summed
from tracekit.sources import SourceFile
from tracekit.store import Store, StoreReader

__all__ = ["collect_etcd"]

FORMAT = "etcd-live"
_FLUSH_ROWS = 10_000
_FLUSH_BYTES = 32 << 20
_LOCK_SECONDS = 120.0
_WHOLE_HISTORY = ("etcd-watch-json", "etcd-snapshot", FORMAT)

Tell = Callable[[str], None]


def collect_etcd(
    store: Store,
    config: live.EtcdConfig,
    options: CollectOptions,
    stop: threading.Event,
    tell: Tell = lambda _text: None,
) -> CollectSummary:
    """Record a live etcd until stopped, its duration ends or it cannot go on.

    Rows and the revision up to which the record is whole land in one commit, at least every
    few seconds; the store is held only while that happens.

    Args:
        store: Where the rows go.
        config: How to reach etcd.
        options: Cluster name and redaction.
        stop: Ends it when set.
        tell: Told of connections and holes, in words.

    Raises:
        SourceError: If etcd cannot be reached or is not the cluster on record.
        StoreLockedError: If another live collector records this cluster.
        StoreError: If the store refuses the rows.
    """
    from tracekit.sources.etcd_follow import follow_etcd

    with store.collector_lock(options.cluster):
        recorder = _Recorder(store, config, options, tell)
        try:
            for step in follow_etcd(config, recorder.resume_point(), stop):
                recorder.take(step)
        finally:
            recorder.flush()
    return recorder.summary()


@dataclass(slots=True)
class _Facts:
    """What the running source told about itself."""

    cluster_uid: str | None = None
    etcd_cluster_id: str | None = None
    parallel: bool = False

    def facts(self) -> dict[str, str | int | None]:
        return {"cluster_uid": self.cluster_uid, "etcd_cluster_id": self.etcd_cluster_id}


@dataclass(slots=True)
class _Recorder:
    """Steps on their way into the store."""

    store: Store
    config: live.EtcdConfig
    options: CollectOptions
    tell: Tell
    _rows: ObjectRows = field(init=False)
    _received: list[int | None] = field(default_factory=list)
    _bytes: int = 0
    _gaps: list[Gap] = field(default_factory=list)
    _facts: _Facts = field(default_factory=_Facts)
    _whole: int | None = None
    _since: float = 0.0
    _done: list[CollectSummary] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._rows = self._new_rows()

    @property
    def source(self) -> SourceFile:
        """The source by its prefix: endpoints may change, the record goes on."""
        return SourceFile(path=f"etcd:{self.config.prefix}", named=True)

    def resume_point(self) -> live.ResumePoint:
        """Tell where the store ends."""
        reader = StoreReader(self.store)
        cluster = self.options.cluster
        sources = reader.rows("sources", cluster).filter(pl.col("format").is_in(_WHOLE_HISTORY))
        source_id = Collection(self.store, self.source, self.options).source_id
        committed = self.store.table("objects").transaction(f"{cluster}/{source_id}")
        recorded = sources.filter(pl.col("format") != FORMAT)["last_revision"].max()
        known = [r for r in (committed, recorded) if isinstance(r, int)]
        revision = known[0] if known else None
        ids = sources["etcd_cluster_id"].drop_nulls()
        return live.ResumePoint(
            revision=revision,
            cluster_id=ids[-1] if ids.len() else None,
            anchor=self._anchor(reader, revision),
            known=self._known,
        )

    def take(self, step: live.LiveStep) -> None:
        """Take in one step; flush when enough has come or enough time has passed."""
        self._record(step)
        if step.resume is not None:
            self._whole = step.resume
        if self._is_due():
            self.flush()

    def _record(self, step: live.LiveStep) -> None:
        match step:
            case live.Connected():
                self._facts.etcd_cluster_id = step.cluster_id
                self.tell(f"connected to {step.endpoint} at revision {step.revision}")
            case live.Disconnected():
                self.tell(
                    f"{step.endpoint}: {step.reason}; next try in {step.retry_in_seconds:.1f} s"
                )
            case live.Listed():
                self._add_all((_listed(pair), None) for pair in step.pairs)
            case live.Events():
                self._add_all((_seen(c), c.received_at_us) for c in step.changes)
            case live.Vanished():
                self._vanish(step.keys)
            case live.Compacted():
                self._gap(step)
            case live.Idle() | live.Progress() | live.ListDone():
                pass

    def flush(self) -> None:
        """Commit what waits: rows, holes and the revision up to which the record is whole."""
        rows, self._rows = self._rows, self._new_rows()
        received, self._received = self._received, []
        gaps, self._gaps = self._gaps, []
        self._bytes, self._since = 0, time.monotonic()
        batch = rows.batch()
        if not batch.frame.height and not gaps:
            return
        self._facts.cluster_uid = rows.cluster_uid or self._facts.cluster_uid
        stamps = pl.Series("received_at", received, pl.Int64).cast(pl.Datetime("us", "UTC"))
        batch.frame = batch.frame.with_columns(stamps)
        batch.gaps += gaps
        with self.store.lock(wait_seconds=_LOCK_SECONDS):
            collection = Collection(self.store, self.source, self.options, self._facts)  # type: ignore[arg-type]
            try:
                collection.take(batch)
                self._done.append(collection.finish(FORMAT, resume=self._whole))
            except BaseException:
                collection.discard()
                raise

    def summary(self) -> CollectSummary:
        """Sum up all flushes."""
        return summed(self.source.label, FORMAT, self._done)

    def _new_rows(self) -> ObjectRows:
        key = None if self.options.redact == "none" else self.store.redaction_key()
        everything = self.options.redact == "all"
        return ObjectRows(None if key is None else make_redactor(key, unreadable=everything))

    def _is_due(self) -> bool:
        if not self._received and not self._gaps:
            self._since = time.monotonic()
            return False
        return (
            len(self._received) >= _FLUSH_ROWS
            or self._bytes >= _FLUSH_BYTES
            or time.monotonic() - self._since >= self.options.flush_seconds
        )

    def _add_all(self, changes: Iterable[tuple[Change, int | None]]) -> None:
        for change, received_at_us in changes:
            self._rows.add(change)
            self._received.append(received_at_us)
            self._bytes += len(change.value) + len(change.previous)

    def _vanish(self, keys: Iterable[live.VanishedKey]) -> None:
        for key in keys:
            gone = Change(key.to_revision, 0, key.key, True, 0, 0, 0, b"", b"", 0)
            self._add_all([(gone, None)])
            words = f"{key.key} between revisions {key.from_revision} and {key.to_revision}"
            self._rows.note("DELETE_UNSEEN", key.to_revision, words)

    def _gap(self, step: live.Compacted) -> None:
        self.tell(f"etcd had compacted revisions {step.from_revision} to {step.to_revision}")
        self._gaps.append(
            Gap(
                from_revision=step.from_revision,
                to_revision=step.to_revision,
                cause="etcd had compacted them before they were read; filled from the state then",
            )
        )

    def _anchor(self, reader: StoreReader, revision: int | None) -> live.Anchor | None:
        if revision is None:
            return None
        newest = reader.collect(
            reader.scan("objects")
            .filter(
                pl.col("cluster") == self.options.cluster,
                pl.col("operation") == "PUT",
                pl.col("version") > 0,
                pl.col("revision") <= revision,
            )
            .select("key", "revision", "version")
            .sort("revision", "key")
            .tail(1)
        )
        return live.Anchor(*newest.row(0)) if newest.height else None

    def _known(self) -> Mapping[str, int]:
        """Give the last revision of each key that lives, with what waits committed first."""
        self.flush()
        reader = StoreReader(self.store)
        last = reader.collect(
            reader.scan("objects")
            .filter(pl.col("cluster") == self.options.cluster, pl.col("revision") > 0)
            .sort("revision", "sub")
            .group_by("key")
            .agg(pl.col("revision").last(), pl.col("operation").last())
            .filter(pl.col("operation") == "PUT")
        )
        return dict(last.select("key", "revision").iter_rows())


def _listed(pair: live.Pair) -> Change:
    return Change(
        pair.revision,
        0,
        pair.key,
        False,
        pair.version,
        pair.create_revision,
        pair.lease,
        pair.value,
        b"",
        0,
    )


def _seen(change: live.Change) -> Change:
    return Change(
        change.revision,
        change.sub,
        change.key,
        change.deleted,
        change.version,
        change.create_revision,
        change.lease,
        change.value,
        change.prev_value or b"",
        0,
    )
