"""The library: one store, and everything that can be asked of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl

from tracekit.errors import StoreError
from tracekit.model.live import EtcdConfig
from tracekit.model.options import CollectOptions, CollectSummary, ReplaySummary
from tracekit.pipeline import collect as collecting
from tracekit.pipeline import live, lookup, replay, report, verify, views
from tracekit.query import Catalog
from tracekit.store import Store, StoreReader

__all__ = ["Trace"]


class Trace:
    """A store on disk, made when something is first collected into it.

    Args:
        folder: Where the store is.
        cluster: Cluster to look at; None means the only one the store has.
    """

    def __init__(self, folder: str | Path, *, cluster: str | None = None) -> None:
        self.folder = Path(folder)
        self._cluster = cluster

    @property
    def _store(self) -> Store:
        self._refuse_file()
        return Store(self.folder)

    def _refuse_file(self) -> None:
        if self.folder.exists() and not self.folder.is_dir():
            raise StoreError(
                "this is a file, a store is a folder",
                where=str(self.folder),
                todo="name another place with --store",
            )

    @property
    def _reader(self) -> StoreReader:
        return StoreReader(self._store)

    @property
    def cluster(self) -> str:
        """Name of the cluster that is looked at."""
        return lookup.pick_cluster(self._reader, self._cluster)

    def collect(
        self,
        *sources: str | Path,
        options: CollectOptions | None = None,
        progress: Callable[[str, int], None] = lambda _path, _records: None,
    ) -> Iterator[CollectSummary]:
        """Read sources into the store; yields a summary as each is committed.

        Raises:
            SourceError, FormatError: If a named source cannot be read.
            StoreError: If the store refuses the rows.
        """
        self._refuse_file()
        store = Store.create(self.folder)
        paths = [str(source) for source in sources]
        return collecting.collect(store, paths, options or CollectOptions(), progress)

    def collect_etcd(
        self,
        config: EtcdConfig,
        *,
        options: CollectOptions | None = None,
        stop: threading.Event | None = None,
        tell: Callable[[str], None] = lambda _text: None,
    ) -> CollectSummary:
        """Record a live etcd, see ``live.collect_etcd``."""
        store = Store.create(self.folder)
        ending = stop or threading.Event()
        return live.collect_etcd(store, config, options or CollectOptions(), ending, tell)

    def replay(self) -> ReplaySummary:
        """Build or refresh all derived tables."""
        return replay.replay(self._store)

    @property
    def is_replayed(self) -> bool | None:
        """Whether the derived tables are up to date; None when there are none yet."""
        return replay.is_replayed(self._store)

    @property
    def queries(self) -> Catalog:
        """The shipped queries."""
        return Catalog()

    def query(self, name_or_sql: str) -> pl.DataFrame:
        """Run a shipped query by name, or SQL over the store's views.

        Raises:
            StoreError: If the store was never replayed.
            NotFoundError: If no shipped query has that name.
            QueryError: If the SQL is refused.
        """
        views.require_replay(self._store)
        return views.query_runner(self._store).run(name_or_sql)

    def state_at(self, point: int | datetime) -> dict[str, Any]:
        """Return nodes and pods at a revision or time, see ``views.state_at``."""
        return views.state_at(self._store, self.cluster, point)

    def revision_time(self, revision: int) -> dict[str, Any]:
        """Return when a revision was written, see ``views.revision_time``."""
        return views.revision_time(self._reader, self.cluster, revision)

    @property
    def last_revision(self) -> int | None:
        """Last revision that was replayed; None without an etcd stream."""
        state = self._reader.rows("replay_state", self.cluster)
        return None if not state.height else state["last_revision"][0]

    def pod(self, namespace: str, name: str, *, uid: str | None = None) -> views.PodLife:
        """Return the life of a pod name, see ``views.pod_life``."""
        return views.pod_life(self._store, self.cluster, namespace, name, uid)

    def keys(self, prefix: str = "") -> pl.DataFrame:
        """List the etcd keys below a prefix."""
        return lookup.list_keys(self._reader, self.cluster, prefix)

    def get(
        self,
        key: str,
        *,
        revision: int | None = None,
        version: int | None = None,
        uid: str | None = None,
    ) -> lookup.StoredObject:
        """Return one stored state of a key, see ``lookup.stored_object``."""
        return lookup.stored_object(
            self._reader, self.cluster, key, revision=revision, version=version, uid=uid
        )

    def diff(self, key: str, first: int, second: int) -> list[dict[str, Any]]:
        """List the fields of a key that differ between two revisions."""
        return lookup.changes_between(self._reader, self.cluster, key, first, second)

    def report(self, path: str | Path) -> None:
        """Write the HTML report, one self-contained file.

        Raises:
            StoreError: If the store was never replayed.
            ReportError: If it cannot be written.
        """
        report.write_report(self._store, self.cluster, Path(path))

    def report_data(self, path: str | Path) -> None:
        """Write what the report shows as JSON: facts, and the rows of each query."""
        report.write_data(self._store, self.cluster, Path(path))

    def verify(self) -> pl.DataFrame:
        """Check the store; one row a finding: severity, where, what, todo."""
        return verify.verify(self._store)
