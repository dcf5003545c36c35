"""Replay: the raw tables of each cluster through the folds into the derived tables."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import orjson
import polars as pl

from tracekit.assets import program_version
from tracekit.decode import decode_value, parse_fields, shape_fault
from tracekit.errors import DecodeError
from tracekit.model.diagnostics import Diagnostic
from tracekit.model.options import ReplaySummary
from tracekit.model.tables import DERIVED, RAW, SCHEMA_VERSION, TABLES
from tracekit.pipeline.log_clocks import log_clocks
from tracekit.pipeline.log_events import told_events
from tracekit.replay import (
    SCORE_WORDS,
    VERDICT_WORDS,
    ClusterReplay,
    decode_changes,
    log_rows,
    read_texts,
    score_rows,
    told_moves,
)
from tracekit.replay.log_events import EVENT_WORDS, logged_event
from tracekit.store import Store, StoreReader
from tracekit.store.schema import polars_schema

__all__ = ["is_replayed", "replay"]

_SLICE_ROWS = 4096
_IDENTITY = ("api_version", "kind", "namespace", "name", "uid")
_SHARED = ("diagnostics", "gaps")  # a replay adds rows of its own, with an empty source_id
_RAW_NAMES = [t.name for t in RAW if t.name not in _SHARED]


def is_replayed(store: Store) -> bool | None:
    """Tell whether the derived tables are of the raw tables as they are now.

    Returns:
        None when nothing was ever replayed.
    """
    state = StoreReader(store).rows("replay_state")
    return None if not state.height else set(state["fingerprint"]) == {_fingerprint(store)}


def replay(store: Store) -> ReplaySummary:
    """Build all derived tables; does nothing when the raw tables have not changed.

    Raises:
        StoreError: If the store refuses the rows.
    """
    if is_replayed(store):
        return ReplaySummary(fresh=False, rows={})
    with store.lock():
        reader = StoreReader(store)
        fingerprint = _fingerprint(store)
        frames: dict[str, list[pl.DataFrame]] = {t.name: [] for t in DERIVED}
        frames |= {name: [] for name in _SHARED}
        for cluster in reader.clusters():
            for name, rows in _replay_cluster(reader, cluster, fingerprint).items():
                frames[name].append(_frame(name, cluster, rows))
        for name in _SHARED:
            _replace_own(store, reader, name, frames.pop(name))
        written: dict[str, int] = {}
        for name, parts in frames.items():
            frame = pl.concat(parts) if parts else pl.DataFrame()
            store.replace(name, frame)
            written[name] = frame.height
        return ReplaySummary(fresh=True, rows=written)


def _fingerprint(store: Store) -> str:
    versions = sorted(store.versions(_RAW_NAMES).items())
    told = orjson.dumps([SCHEMA_VERSION, program_version(), versions])
    return hashlib.sha256(told).hexdigest()[:16]


def _frame(name: str, cluster: str, rows: list[dict[str, Any]]) -> pl.DataFrame:
    schema = polars_schema(TABLES[name])
    columns = {c: [row.get(c) for row in rows] for c in schema if c != "cluster"}
    frame = pl.DataFrame(columns, schema={c: schema[c] for c in columns})
    return frame.with_columns(pl.lit(cluster).alias("cluster")).select(schema.names())


def _replay_cluster(
    reader: StoreReader, cluster: str, fingerprint: str
) -> dict[str, list[dict[str, Any]]]:
    fold = ClusterReplay(cluster)
    decode = _Decoder(fold.notes)
    for change in decode_changes(_object_rows(reader, cluster), decode, fold.notes):
        decode.revision = change.revision
        fold.add(change)
    for revision, at_us in _receipts(reader, cluster):
        fold.add_receipt(revision, at_us)
    tables = fold.rows()
    texts = read_texts(reader.rows("event_texts", cluster).iter_rows(named=True))
    tables["moves"] += told_moves(texts.rows, tables)
    tables["event_occurrences"] = [*tables["event_occurrences"], *texts.occurrences]
    logged = list(_interesting_lines(reader, cluster))
    verdicts, scores = log_rows(logged, parse_fields)
    clocks = log_clocks(reader, cluster, fold, verdicts)
    events = [e for row in logged if (e := logged_event(row, parse_fields)) is not None]
    told = told_events(events, clocks, tables["event_occurrences"])
    tables["event_occurrences"] = [*tables["event_occurrences"], *told.rows]
    texts.events += told.times
    fold.notes += told.notes
    lines = clocks.resolve_all([*verdicts, *told.lines])
    attempts = fold.attempts(lines, tables["pods"], texts)
    tables |= fold.attempt_rows(attempts)
    tables["node_scores"] = score_rows(scores, parse_fields, clocks.at_us, attempts, cluster)
    tables["log_clocks"] = clocks.rows()
    tables["replay_state"] = [
        {
            "fingerprint": fingerprint,
            "first_revision": fold.first_revision,
            "last_revision": fold.last_revision,
        }
    ]
    return tables | _shared_rows(fold)


class _Decoder:
    """Decodes values, noting kinds and fields that have no schema once each."""

    def __init__(self, notes: list[Diagnostic]) -> None:
        self._notes, self._told = notes, set[str]()
        self.revision = 0

    def __call__(self, value: bytes) -> Mapping[str, Any] | None:
        decoded = decode_value(value)
        if value[:1] == b"{" and (fault := shape_fault(decoded.object)):
            raise DecodeError(f"its field {fault} has the wrong type")
        if decoded.unknown_kind and decoded.object:
            kind = f"{decoded.object.get('apiVersion')} {decoded.object.get('kind')}"
            self._note("VALUE_UNKNOWN_KIND", kind)
        for name in decoded.unknown_fields:
            self._note("VALUE_UNKNOWN_FIELD", name)
        return decoded.object

    def _note(self, code: str, detail: str) -> None:
        if detail not in self._told:
            self._told.add(detail)
            self._notes.append(Diagnostic(code=code, position=self.revision, detail=detail))


def _object_rows(reader: StoreReader, cluster: str) -> Iterator[Mapping[str, Any]]:
    """Yield rows of ``objects`` in order; a delete gets the identity of its last state."""
    deleted = (pl.col("operation") == "DELETE") & (pl.col("kind") == "")
    identity = [
        pl.when(deleted).then(None).otherwise(pl.col(c)).forward_fill().over("key").alias(c)
        for c in _IDENTITY
    ]
    # A state without a revision (0) counts only where nothing better is known of its key.
    told = (pl.col("revision") > 0) | (pl.col("revision").max().over("key") == 0)
    frame = reader.rows("objects", cluster).filter(told).with_columns(identity)
    for start in range(0, frame.height, _SLICE_ROWS):
        yield from frame.slice(start, _SLICE_ROWS).iter_rows(named=True)


def _receipts(reader: StoreReader, cluster: str) -> list[tuple[int, int]]:
    """Give when a live collector received each revision, µs since the epoch."""
    received = reader.collect(
        reader.scan("objects")
        .filter(pl.col("cluster") == cluster, pl.col("received_at").is_not_null())
        .group_by("revision")
        .agg(pl.col("received_at").min().dt.epoch("us"))
        .sort("revision")
    )
    return list(received.iter_rows())


def _interesting_lines(reader: StoreReader, cluster: str) -> Iterator[Mapping[str, Any]]:
    words = [*VERDICT_WORDS, *SCORE_WORDS, *EVENT_WORDS]
    frame = reader.collect(
        reader.scan("log_lines")
        .filter(pl.col("cluster") == cluster, pl.col("message").str.contains_any(words))
        .select(
            *("source_id", "record_no", "stamp_us", "severity", "message", "structured"),
            pl.coalesce("body", "raw").alias("raw"),
            pl.col("wrapped_at").dt.epoch("us").alias("wrapped_us"),
        )
        .sort("source_id", "record_no")
    )
    yield from frame.iter_rows(named=True)


def _shared_rows(fold: ClusterReplay) -> dict[str, list[dict[str, Any]]]:
    notes = dict.fromkeys((n.code, n.position, n.detail) for n in fold.notes)
    return {
        "diagnostics": [
            {"source_id": "", "code": code, "position": position, "detail": detail}
            for code, position, detail in notes
        ],
        "gaps": [
            {
                "source_id": "",
                "from_revision": g.from_revision,
                "to_revision": g.to_revision,
                "cause": g.cause,
            }
            for g in fold.gaps()
        ],
    }


def _replace_own(store: Store, reader: StoreReader, name: str, frames: list[pl.DataFrame]) -> None:
    """Put what this replay found in the place of what the last one found."""
    before = reader.rows(name)
    now = pl.concat([before.filter(pl.col("source_id") != ""), *frames])
    if not now.equals(before):
        store.replace(name, now)
