"""One pass over a cluster's record: every fold sees every change once, then the joins.

Pure: the same rows in give the same rows out; nothing is read from a clock or a disk.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from tracekit.model.batches import Gap
from tracekit.model.diagnostics import Diagnostic
from tracekit.model.objects import ObjectRevision
from tracekit.replay.anchors import Anchor, anchors_of
from tracekit.replay.attempts import Attempt, Incarnation, LogVerdict, add_texts, join_attempts
from tracekit.replay.clock import RevisionTime, estimate_times
from tracekit.replay.event_texts import Texts, assigned_node
from tracekit.replay.events import EventFold
from tracekit.replay.evidence import EventTime, VerdictFold, VerdictLine, verdict_line
from tracekit.replay.holes import HoleFold
from tracekit.replay.messages import ParsedVerdict, parse_verdict
from tracekit.replay.moves import MoveFold
from tracekit.replay.nodes import NodeFold
from tracekit.replay.owners import Owners
from tracekit.replay.pending import PendingFold
from tracekit.replay.placements import PlacementFold
from tracekit.replay.pods import PodFold
from tracekit.replay.scores import SCORE_WORDS
from tracekit.replay.usage import fold_usage
from tracekit.replay.workloads import WorkloadFold

__all__ = ["ClusterReplay", "Fields", "Row", "log_rows"]

Row = dict[str, Any]
Fields = Callable[[str], Mapping[str, Any]]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_EVENT_VERDICTS = {"FailedScheduling": "unschedulable", "Scheduled": "bound"}


@dataclass(slots=True)
class ClusterReplay:
    """The replay of one cluster: ``add`` every change, then ask for the rows.

    Attributes:
        cluster: Name the attempt ids are made with.
        notes: What could not be understood, to be filled by the caller too.
    """

    cluster: str
    notes: list[Diagnostic] = field(default_factory=list)
    first_revision: int | None = None
    last_revision: int = 0
    _revisions: list[int] = field(default_factory=list)
    _anchors: list[Anchor] = field(default_factory=list)
    _owners: Owners = field(default_factory=Owners)
    _pods: PodFold = field(default_factory=PodFold)
    _nodes: NodeFold = field(default_factory=NodeFold)
    _placements: PlacementFold = field(default_factory=PlacementFold)
    _workloads: WorkloadFold = field(default_factory=WorkloadFold)
    _events: EventFold = field(default_factory=EventFold)
    _moves: MoveFold = field(default_factory=MoveFold)
    _pending: PendingFold = field(default_factory=PendingFold)
    _verdicts: VerdictFold = field(default_factory=VerdictFold)
    _holes: HoleFold = field(default_factory=HoleFold)
    _times: list[RevisionTime] | None = None

    def add(self, change: ObjectRevision) -> None:
        """Take in one change; changes come ascending by (revision, sub)."""
        if change.revision:
            # An object whose revision is not told (0) says nothing about the clock.
            if self.first_revision is None:
                self.first_revision = change.revision
            self.last_revision = change.revision
            self._revisions.append(change.revision)
            self._anchors += anchors_of(change)
        self._owners.add(change)
        for fold in (
            self._pods,
            self._nodes,
            self._placements,
            self._workloads,
            self._events,
            self._moves,
            self._pending,
            self._verdicts,
            self._holes,
        ):
            fold.add(change)

    def add_receipt(self, revision: int, at_us: int) -> None:
        """Take in when a live collector received a revision: it was committed before that."""
        self._anchors.append(Anchor(revision, at_us, "before", clock="writer/collector"))

    def times(self) -> list[RevisionTime]:
        """Return the estimated time of every revision."""
        if self._times is None:
            self._times = estimate_times(self._revisions, self._anchors)
        return self._times

    def gaps(self) -> list[Gap]:
        """Return the holes that the record itself betrays."""
        return self._holes.gaps()

    def event_times(self) -> list[EventTime]:
        """Return the times of FailedScheduling and Scheduled events of pods."""
        return [
            EventTime(
                row["namespace"],
                row["name"],
                row["uid"],
                (row["at"] - _EPOCH) // _MICROSECOND,
                int((row["at_error_seconds"] or 0) * 1_000_000),
                _EVENT_VERDICTS[row["reason"]],
                row["message"] if row["reason"] == "FailedScheduling" else "",
                assigned_node(row["message"]) if row["reason"] == "Scheduled" else None,
            )
            for row in self._events.rows
            if row["kind"] == "Pod" and row["reason"] in _EVENT_VERDICTS and row["at"]
        ]

    def rows(self) -> dict[str, list[Row]]:
        """Return the rows of every derived table that the stream alone gives."""
        last = self.last_revision
        spans, placements = self._nodes.spans(last), self._placements.rows(last)
        pods = self._pods.pods(self._owners)
        return {
            "revision_times": [_time_row(time) for time in self.times()],
            "pod_states": self._pods.states,
            "pods": pods,
            "pending_spells": [asdict(spell) for spell in self._pending.spells(last)],
            "node_changes": self._nodes.changes,
            "node_spans": spans,
            "placements": placements,
            "usage_steps": fold_usage(spans, placements),
            "workload_replicas": self._workloads.rows(last),
            "event_occurrences": self._events.rows,
            "moves": self._moves.rows(self._owners),
        }

    def attempts(
        self, lines: Iterable[LogVerdict], pods: Sequence[Row], told: Texts | None = None
    ) -> list[Attempt]:
        """Join condition, binding, event and log into attempts.

        Args:
            lines: Verdict lines of the cluster's scheduler logs.
            pods: Rows of ``pods``.
            told: What texts without a revision tell.
        """
        texts = told or Texts()
        times = {
            t.revision: (t.at_us, t.error_us or 0) for t in self.times() if t.at_us is not None
        }
        events = [*self.event_times(), *texts.events]
        joined = join_attempts(
            self._verdicts.verdicts, events, lines, times, _incarnations(pods, times)
        )
        return add_texts(joined, texts.verdicts)

    def attempt_rows(self, attempts: Iterable[Attempt]) -> dict[str, list[Row]]:
        """Return the rows of ``attempts`` and ``attempt_reasons``."""
        times = {t.revision: t for t in self.times()}
        rows: list[Row] = []
        reasons: list[Row] = []
        attempts = list(attempts)
        proven = _proven_clocks(attempts)
        for attempt in attempts:
            attempt_id = attempt.attempt_id(self.cluster)
            parsed = parse_verdict(attempt.message) if attempt.verdict != "bound" else None
            rows.append(
                {
                    "attempt_id": attempt_id,
                    **_when(attempt, times, proven),
                    **_what(attempt),
                    **_words(parsed),
                }
            )
            for ordinal, reason in enumerate(parsed.reasons if parsed else ()):
                reasons.append(
                    {
                        "attempt_id": attempt_id,
                        "ordinal": ordinal,
                        "origin": "scheduler",
                        "plugin": reason.plugin,
                        "reason": reason.reason,
                        "nodes": reason.nodes,
                    }
                )
                if reason.plugin == "unknown":
                    self._note_unknown(attempt, reason.reason)
        return {"attempts": rows, "attempt_reasons": reasons}

    def _note_unknown(self, attempt: Attempt, words: str) -> None:
        position = attempt.state.revision if attempt.state else 0
        self.notes.append(Diagnostic(code="MESSAGE_UNKNOWN", position=position, detail=words[:200]))


def log_rows(
    rows: Iterable[Mapping[str, Any]], fields: Fields
) -> tuple[list[VerdictLine], list[Mapping[str, Any]]]:
    """Sort rows of ``log_lines`` into verdict lines and score lines."""
    verdicts: list[VerdictLine] = []
    scores: list[Mapping[str, Any]] = []
    for row in rows:
        if row["structured"] and row["message"] in SCORE_WORDS:
            scores.append(row)
        elif (line := verdict_line(row, fields)) is not None:
            verdicts.append(line)
    return verdicts, scores


def _proven_clocks(attempts: Iterable[Attempt]) -> set[str]:
    """Name the logs whose inferred clock an event confirms: both tell one attempt's time."""
    return {a.log.line.source_id for a in attempts if a.log is not None and a.event is not None}


def _when(attempt: Attempt, times: Mapping[int, RevisionTime], proven: Collection[str]) -> Row:
    revision = attempt.state.revision if attempt.state else None
    at_us: int | None = None
    certainty, error_us = "unknown", None
    if attempt.log is not None and attempt.log.at_us is not None:
        # The time of day is the log's own; year and zone may be inferred (log_clocks), and then
        # nothing bounds the error unless an event of the same attempts confirms them.
        is_proven = attempt.log.line.source_id in proven
        certainty = "observed" if is_proven else attempt.log.certainty
        at_us, error_us = attempt.log.at_us, 0 if certainty == "observed" else None
    elif attempt.event is not None:
        at_us, certainty, error_us = attempt.event.at_us, "observed", attempt.event.error_us
    elif revision is not None and revision in times:
        time = times[revision]
        at_us, certainty, error_us = time.at_us, time.certainty, time.error_us
    return {
        "revision": revision,
        "at": _instant(at_us),
        "at_certainty": certainty,
        "at_error_seconds": None if error_us is None else error_us / 1_000_000,
    }


def _what(attempt: Attempt) -> Row:
    line = attempt.log.line if attempt.log else None
    return {
        "namespace": attempt.namespace,
        "pod": attempt.pod,
        "uid": attempt.uid,
        "verdict": attempt.verdict,
        "node": _node(attempt),
        "nodes_evaluated": line.evaluated if line else None,
        "nodes_feasible": line.feasible if line else None,
        "message": attempt.message or None,
        "sources": attempt.sources,
    }


def _words(parsed: ParsedVerdict | None) -> Row:
    """Give what a message tells besides the reasons of its first half."""
    if parsed is None:
        return {}
    preemption: Row = {}
    if parsed.preemption_reasons and parsed.preemption_nodes is not None:
        reasons = {reason.reason: reason.nodes for reason in parsed.preemption_reasons}
        preemption = {"nodes": parsed.preemption_nodes, "reasons": reasons}
    elif parsed.preemption:
        preemption = {"text": parsed.preemption}
    return {
        "nodes_total": parsed.nodes_total,
        "prefilter": parsed.prefilter,
        "truncated": parsed.truncated,
        "point": parsed.point or None,
        "preemption": orjson.dumps(preemption).decode() if preemption else None,
        "postfilter": parsed.postfilter or None,
    }


def _node(attempt: Attempt) -> str | None:
    line = attempt.log.line if attempt.log else None
    witnesses = (attempt.state, line, attempt.text, attempt.event)
    return next((w.node for w in witnesses if w is not None), None)


def _time_row(time: RevisionTime) -> Row:
    return {
        "revision": time.revision,
        "at": _instant(time.at_us),
        "at_certainty": time.certainty,
        "at_error_seconds": None if time.error_us is None else time.error_us / 1_000_000,
    }


def _instant(at_us: int | None) -> datetime | None:
    try:
        return None if at_us is None else _EPOCH + timedelta(microseconds=at_us)
    except OverflowError:  # a time that an object claims, beyond the calendar
        return None


def _incarnations(
    pods: Sequence[Row], times: Mapping[int, tuple[int, int]]
) -> dict[tuple[str, str], list[Incarnation]]:
    found: dict[tuple[str, str], list[Incarnation]] = defaultdict(list)
    for row in sorted(pods, key=lambda r: r["created_revision"]):
        ends = (row["created_revision"], row["deleted_revision"])
        start, stop = (times[r][0] if r in times else None for r in ends)
        found[row["namespace"], row["pod"]].append(Incarnation(row["uid"], start, stop))
    return found
