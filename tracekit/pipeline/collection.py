"""One source on its way into the store: admitted, staged, committed, remembered."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

import polars as pl

from tracekit.errors import ClusterMismatchError
from tracekit.model.batches import Batch, Gap, Session
from tracekit.model.diagnostics import CODES, Diagnostic, Severity
from tracekit.model.options import CollectOptions, CollectSummary
from tracekit.pipeline.summaries import oddities
from tracekit.sources import OpenedSource, SourceFile
from tracekit.store import SourceWriter, Store, StoreReader
from tracekit.store.writer import new_rows

__all__ = ["Collection"]

_COMPONENTS = (
    "kube-scheduler",
    "kube-controller-manager",
    "kube-apiserver",
    "kube-proxy",
    "kubelet",
    "cloud-controller-manager",
    "etcd",
)


_HIGHEST = -1  # no revision: stands for the source's own


@dataclass(slots=True)
class Collection:
    """One source on its way into the store."""

    store: Store
    source: SourceFile
    options: CollectOptions
    session: Session | None = None
    lines_before: int = 0
    records: int = 0
    first: int | None = None
    last: int | None = None
    notes: list[Diagnostic] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    writers: dict[str, SourceWriter] = field(default_factory=dict)

    @property
    def source_id(self) -> str:
        """Stable id of the source: hash of its path as given."""
        return hashlib.sha256(os.fsencode(self.source.path)).hexdigest()[:16]

    def read(self, opened: OpenedSource, progress: Callable[[int], None]) -> None:
        """Split, parse and stage; parsing and writing overlap, admission keeps the order."""
        assert self.session is not None
        workers = max(2, os.cpu_count() or 2)
        parsing: deque[Future[Batch]] = deque()
        writing: deque[Future[None]] = deque()
        with ThreadPoolExecutor(workers) as pool:
            for chunk in self.session.split(opened.stream):
                if not self.session.parallel:
                    self._admit(self.session.parse(chunk), pool, writing)
                else:
                    parsing.append(pool.submit(self.session.parse, chunk))
                    while len(parsing) > workers:
                        self._admit(parsing.popleft().result(), pool, writing)
                while len(writing) > workers:
                    writing.popleft().result()
                progress(self.records)
            for future in parsing:
                self._admit(future.result(), pool, writing)
            for written in writing:
                written.result()

    def _admit(self, batch: Batch, pool: ThreadPoolExecutor, writing: deque[Future[None]]) -> None:
        self.records += batch.records
        self.notes += [self._placed(note) for note in batch.diagnostics]
        self.gaps += batch.gaps
        for other in batch.also:
            self._admit(other, pool, writing)
        if not batch.frame.height:
            return
        if self.lines_before:
            line = pl.col("record_no") + self.lines_before
            batch.frame = batch.frame.with_columns(line)
        if batch.table == "objects":
            self._span(batch.frame["revision"])
        writer = self._writer(batch.table)
        writing.append(pool.submit(writer.stage, writer.admit(batch.frame)))

    def _span(self, revisions: pl.Series) -> None:
        """Widen the span of revisions; 0 is none."""
        told = revisions.filter(revisions > 0)
        if told.len():
            low, high = told.min(), told.max()
            self.first = low if self.first is None else min(self.first, low)  # type: ignore[assignment,type-var]
            self.last = high if self.last is None else max(self.last, high)  # type: ignore[assignment,type-var]

    def _writer(self, table: str) -> SourceWriter:
        if table not in self.writers:
            self.writers[table] = SourceWriter(
                self.store, table, cluster=self.options.cluster, source_id=self.source_id
            )
        return self.writers[table]

    @property
    def stored(self) -> int:
        """Rows that the store did not have."""
        return sum(writer.stored for writer in self.writers.values())

    @property
    def duplicates(self) -> int:
        """Rows that the store had."""
        return sum(writer.duplicates for writer in self.writers.values())

    def _placed(self, note: Diagnostic) -> Diagnostic:
        position = note.position + self.lines_before if note.position else 0
        return replace(note, position=position)

    def discard(self) -> None:
        """Drop what was staged."""
        for writer in self.writers.values():
            writer.discard()

    def take(self, batch: Batch) -> None:
        """Admit and stage one batch at once."""
        with ThreadPoolExecutor(1) as pool:
            writing: deque[Future[None]] = deque()
            self._admit(batch, pool, writing)
            for written in writing:
                written.result()

    def finish(
        self,
        format_name: str,
        damage: Sequence[Diagnostic] = (),
        *,
        modified_ns: int | None = None,
        resume: int | None = _HIGHEST,
    ) -> CollectSummary:
        """Commit the rows with the resume point, then what is known about their source.

        Args:
            format_name: Format that the source was read as.
            damage: What was wrong with the source as a whole.
            modified_ns: Modification time of its file, ns since the Unix epoch.
            resume: Revision up to which the source is whole: its highest one where not
                given, and None where it is not whole up to any.
        """
        self.notes += damage
        facts = self.session.facts() if self.session else {}
        reader = StoreReader(self.store)
        known = reader.rows("sources", self.options.cluster)
        self._refuse_other_cluster(known, facts)
        point = self.last if resume == _HIGHEST else resume
        for table, writer in self.writers.items():
            writer.commit(point if table == "objects" else None)
        self._add_small(
            "diagnostics",
            [{"code": n.code, "position": n.position, "detail": n.detail} for n in self.notes],
        )
        self._add_small(
            "gaps",
            [
                {"from_revision": g.from_revision, "to_revision": g.to_revision, "cause": g.cause}
                for g in self.gaps
            ],
        )
        self._remember(known, format_name, facts, modified_ns)
        component, node = self._origin(facts) if "log_lines" in self.writers else (None, None)
        return CollectSummary(
            source=self.source.label,
            format=format_name,
            records=self.records,
            stored=self.stored,
            duplicates=self.duplicates,
            diagnostics=len(self.notes),
            gaps=len(self.gaps),
            data_lost=any(CODES[n.code].severity is not Severity.INFO for n in self.notes),
            component=component,
            node=node,
            odd=oddities(self.notes),
        )

    def _refuse_other_cluster(
        self, known: pl.DataFrame, facts: dict[str, str | int | None]
    ) -> None:
        for column, words in (
            ("cluster_uid", "the kube-system namespace has the uid"),
            ("etcd_cluster_id", "the etcd cluster id is"),
        ):
            stored = set(known[column].drop_nulls())
            mine = facts.get(column)
            if mine is not None and stored and mine not in stored:
                raise ClusterMismatchError(
                    f"{words} {mine} here and {', '.join(sorted(stored))} in the store "
                    f"under cluster {self.options.cluster!r}",
                    where=self.source.label,
                    todo="give this source its own --cluster name",
                )
            if mine is not None and stored and column == "cluster_uid":
                return

    def _add_small(self, table: str, rows: list[dict[str, object]]) -> None:
        if not rows:
            return
        schema = StoreReader(self.store).scan(table).collect_schema()
        frame = pl.DataFrame(
            [{**r, "cluster": self.options.cluster, "source_id": self.source_id} for r in rows],
            schema=schema,
        ).unique(maintain_order=True)
        known = StoreReader(self.store).rows(table, self.options.cluster)
        fresh = new_rows(known, frame, table)
        if fresh.height:
            folder = self.store.table(table)
            folder.commit([folder.write_part(fresh)])

    def _remember(
        self,
        known: pl.DataFrame,
        format_name: str,
        facts: dict[str, str | int | None],
        modified_ns: int | None,
    ) -> None:
        before = known.filter(pl.col("source_id") == self.source_id)
        if before.height and not self.stored:
            return
        component, node = self._origin(facts)
        row = {
            "cluster": self.options.cluster,
            "source_id": self.source_id,
            "path": self.source.label,
            "format": format_name,
            "component": component,
            "node": node,
            "records": self.records,
            "stored": self.stored,
            "duplicates": self.duplicates,
            "first_revision": self.first,
            "last_revision": self.last,
            "cluster_uid": facts.get("cluster_uid"),
            "etcd_cluster_id": facts.get("etcd_cluster_id"),
            "modified_at": datetime.fromtimestamp(modified_ns / 1e9, UTC) if modified_ns else None,
            "log_year": self.options.log_year,
            "created_year": facts.get("created_year"),
            "log_timezone": self.options.log_timezone,
        }
        everything = StoreReader(self.store).rows("sources")
        mine = (pl.col("cluster") == self.options.cluster) & (pl.col("source_id") == self.source_id)
        others = everything.filter(~mine)
        self.store.replace(
            "sources", pl.concat([others, pl.DataFrame([row], schema=everything.schema)])
        )

    def _origin(self, facts: dict[str, str | int | None]) -> tuple[str | None, str | None]:
        """Tell component and node: what was given, else content, else the file's name."""
        stem = Path(self.source.path).name.split(".", 1)[0]
        named = next((c for c in _COMPONENTS if stem == c or stem.startswith(f"{c}-")), None)
        rest = stem[len(named) + 1 :] if named else ""
        component = self.options.component or facts.get("component") or named
        node = self.options.node or facts.get("node") or (rest or None)
        return (
            str(component) if component else None,
            str(node) if node else None,
        )
