"""The clock of each log of a cluster: evidence gathered from the store and the stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl

from tracekit.model.diagnostics import Diagnostic
from tracekit.replay import ClusterReplay, LogVerdict
from tracekit.replay.evidence import VerdictLine
from tracekit.replay.log_clock import (
    LogClock,
    LogClockEvidence,
    StampSpan,
    header_time_us,
    resolve_log_clock,
    year_step_of,
)
from tracekit.store import StoreReader

__all__ = ["LogClocks", "log_clocks"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_CYCLE_DAYS_US = 1461 * 86_400_000_000
_PAIRS = 200  # enough of each year of a log to tell its zone
# utiltrace prints when a trace began: from 1.16 on (15-Nov-2024 04:47:44.439), before that
# started: 2019-05-09 09:33:37.
_TRACE_YEAR = r"\(\d\d-[A-Z][a-z]{2}-(\d{4}) \d\d:\d\d:\d\d\.\d{3}\) \(total time"
_OLD_TRACE_YEAR = r"\(started: (\d{4})-\d\d-\d\d "


@dataclass(frozen=True, slots=True)
class LogClocks:
    """The clocks of a cluster's logs, by source and year step."""

    clocks: Mapping[tuple[str, int], LogClock]

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of ``log_clocks``."""
        return [
            {
                "source_id": source_id,
                "year_step": clock.year_step,
                "year": clock.year,
                "utc_offset_seconds": clock.utc_offset_seconds,
                "certainty": clock.certainty,
                "evidence": clock.evidence,
            }
            for (source_id, _), clock in self.clocks.items()
        ]

    def at_us(self, source_id: str, stamp_us: int | None) -> int | None:
        """Put a stamp of a source into UTC, µs since the epoch; None without a clock."""
        clock = self._clock(source_id, stamp_us)
        if stamp_us is None or clock is None or clock.year is None:
            return None
        return header_time_us(stamp_us, clock.year, clock.utc_offset_seconds)

    def resolve(self, line: VerdictLine) -> LogVerdict:
        """Give a verdict line its time in UTC, where its log has a clock."""
        clock = self._clock(line.source_id, line.stamp_us)
        certainty = clock.certainty if clock else "unknown"
        return LogVerdict(line, self.at_us(line.source_id, line.stamp_us), certainty)

    def resolve_all(self, lines: Iterable[VerdictLine]) -> list[LogVerdict]:
        """Give verdict lines their times; a line that several logs have counts once."""
        resolved: dict[tuple[Any, ...], LogVerdict] = {}
        for line in lines:
            verdict = self.resolve(line)
            known = (line.namespace, line.pod, line.verdict, line.message, verdict.at_us)
            place = (line.source_id, line.record_no) if verdict.at_us is None else ()
            resolved.setdefault((*known, *place), verdict)
        return list(resolved.values())

    def _clock(self, source_id: str, stamp_us: int | None) -> LogClock | None:
        step = None if stamp_us is None else year_step_of(stamp_us)
        return None if step is None else self.clocks.get((source_id, step))


def log_clocks(
    reader: StoreReader, cluster: str, fold: ClusterReplay, lines: Sequence[VerdictLine]
) -> LogClocks:
    """Infer year and zone of every log of a cluster; notes what is only assumed."""
    spans = _spans(reader, cluster)
    window = _window(fold)
    matches = _matches(fold, lines)
    wrapped, traced = _wrapped(reader, cluster), _traced(reader, cluster)
    clocks: dict[tuple[str, int], LogClock] = {}
    for source in reader.rows("sources", cluster).iter_rows(named=True):
        source_id = source["source_id"]
        if source_id not in spans:
            continue
        evidence = LogClockEvidence(
            spans=spans[source_id],
            modified_us=_microseconds(source["modified_at"]),
            log_year=source["log_year"],
            log_timezone=source["log_timezone"],
            created_year=source["created_year"],
            window_us=window,
            matches=tuple(matches.get(source_id, ())),
            wrapped=tuple(wrapped.get(source_id, ())),
            traced=tuple(traced.get(source_id, ())),
        )
        found, notes = resolve_log_clock(evidence)
        fold.notes += [_named(note, source["path"]) for note in notes]
        clocks |= {(source_id, clock.year_step): clock for clock in found}
    return LogClocks(clocks)


def _named(note: Diagnostic, path: str) -> Diagnostic:
    return Diagnostic(code=note.code, position=note.position, detail=f"{path}: {note.detail}")


def _microseconds(instant: datetime | None) -> int | None:
    return None if instant is None else (instant - _EPOCH) // _MICROSECOND


def _spans(reader: StoreReader, cluster: str) -> dict[str, tuple[StampSpan, ...]]:
    rows = reader.collect(
        reader.scan("log_lines")
        .filter(pl.col("cluster") == cluster, pl.col("stamp_us").is_not_null())
        .group_by("source_id", (pl.col("stamp_us") // _CYCLE_DAYS_US).alias("step"))
        .agg(pl.col("stamp_us").min().alias("first"), pl.col("stamp_us").max().alias("last"))
        .sort("source_id", "step")
    )
    spans: dict[str, tuple[StampSpan, ...]] = {}
    for source_id, step, first, last in rows.iter_rows():
        spans[source_id] = (*spans.get(source_id, ()), StampSpan(step, first, last))
    return spans


def _window(fold: ClusterReplay) -> tuple[int, int] | None:
    known = [t.at_us for t in fold.times() if t.at_us is not None]
    return (known[0], known[-1]) if known else None


def _wrapped(reader: StoreReader, cluster: str) -> dict[str, list[tuple[int, int]]]:
    """Pair stamps with the times that the wrappings of their records tell."""
    rows = reader.collect(
        reader.scan("log_lines")
        .filter(
            pl.col("cluster") == cluster,
            pl.col("stamp_us").is_not_null(),
            pl.col("wrapped_at").is_not_null(),
        )
        .select("source_id", "record_no", "stamp_us", pl.col("wrapped_at").dt.epoch("us"))
        .sort("source_id", "record_no")
        .with_columns((pl.col("stamp_us") // _CYCLE_DAYS_US).alias("step"))
        .group_by("source_id", "step", maintain_order=True)
        .head(_PAIRS)
        .select("source_id", "stamp_us", "wrapped_at")
    )
    return _by_source(rows)


def _traced(reader: StoreReader, cluster: str) -> dict[str, list[tuple[int, int]]]:
    """Pair stamps of utiltrace records with the year that their own times name."""
    year = pl.col("message").str.extract(_TRACE_YEAR, 1)
    year = year.fill_null(pl.col("message").str.extract(_OLD_TRACE_YEAR, 1)).cast(pl.Int64)
    rows = reader.collect(
        reader.scan("log_lines")
        .filter(
            pl.col("cluster") == cluster,
            pl.col("stamp_us").is_not_null(),
            pl.col("message").str.starts_with("Trace["),
        )
        .select("source_id", "stamp_us", year.alias("year"))
        .drop_nulls()
    )
    return _by_source(rows)


def _by_source(rows: pl.DataFrame) -> dict[str, list[tuple[int, int]]]:
    pairs: dict[str, list[tuple[int, int]]] = {}
    for source_id, stamp_us, told in rows.iter_rows():
        pairs.setdefault(source_id, []).append((stamp_us, told))
    return pairs


def _matches(fold: ClusterReplay, lines: Iterable[VerdictLine]) -> dict[str, list[tuple[int, int]]]:
    """Pair "Successfully bound" lines with Scheduled events of pods that each has once."""
    events = [e for e in fold.event_times() if e.verdict == "bound"]
    once = Counter((e.namespace, e.pod) for e in events)
    at = {(e.namespace, e.pod): e.at_us for e in events if once[e.namespace, e.pod] == 1}
    bound = [line for line in lines if line.verdict == "bound" and line.stamp_us is not None]
    told = Counter((line.source_id, line.namespace, line.pod) for line in bound)
    pairs: dict[str, list[tuple[int, int]]] = {}
    for line in bound:
        name = (line.namespace, line.pod)
        if name in at and told[line.source_id, *name] == 1 and line.stamp_us is not None:
            pairs.setdefault(line.source_id, []).append((line.stamp_us, at[name]))
    return pairs
