"""Verdicts from several witnesses joined into one attempt each.

The log tells every attempt, to the microsecond, but knows no uid and no revision. The
stream tells only attempts whose words changed, by revision, on an estimated clock. Events
know the uid and the microsecond, but not every attempt. Two witnesses of one pod mean the
same attempt when their verdict (and words) agree and their order and times allow it:
events and log lines agree within milliseconds, and one pod is retried after a second at
the earliest (``podInitialBackoffSeconds``), so the nearest fitting one is the right one.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tracekit.replay.evidence import EventTime, StateVerdict, VerdictLine

__all__ = ["Attempt", "Incarnation", "LogVerdict", "TextVerdict", "add_texts", "join_attempts"]

_EVENT_TO_LOG_US = 500_000  # a pause of the scheduler; 160 ms was seen
_SLACK_US = 5_000_000
_EVENT_LIMIT = 1024
_CUT = " ..."


@dataclass(frozen=True, slots=True)
class LogVerdict:
    """A verdict line with its time resolved to µs UTC; None when the log has no clock."""

    line: VerdictLine
    at_us: int | None
    certainty: str


@dataclass(frozen=True, slots=True)
class TextVerdict:
    """A verdict that a text tells without its time: a row of ``event_texts``.

    Attributes:
        origin: event, condition or message.
        place: Source, record and ordinal, for a stable id.
    """

    namespace: str
    pod: str
    uid: str
    verdict: str
    message: str
    node: str | None
    origin: str
    place: str


@dataclass(frozen=True, slots=True)
class Incarnation:
    """One uid that a pod name had, from when to when, in µs UTC; None where not known."""

    uid: str
    from_us: int | None
    to_us: int | None


@dataclass(slots=True)
class Attempt:
    """One scheduling cycle of a pod and all that tells of it."""

    namespace: str
    pod: str
    verdict: str
    uid: str | None = None
    log: LogVerdict | None = None
    state: StateVerdict | None = None
    event: EventTime | None = None
    text: TextVerdict | None = None

    @property
    def message(self) -> str:
        """The scheduler's words: the condition's, else the log's, else the event's."""
        witnesses = (self.state, self.log.line if self.log else None, self.event, self.text)
        return next((w.message for w in witnesses if w is not None and w.message), "")

    @property
    def sources(self) -> str:
        """Which witnesses told it, joined by comma."""
        bound = self.verdict == "bound"
        told = (
            ("binding" if bound else "condition", self.state),
            ("event", self.event),
            ("log", self.log),
        )
        if self.text is not None:
            return self.text.origin
        return ",".join(name for name, witness in told if witness is not None)

    def attempt_id(self, cluster: str) -> str:
        """Return the stable id: hash of cluster, uid and revision, or time."""
        who = self.uid or f"{self.namespace}/{self.pod}"
        if self.state is not None:
            when = f"r{self.state.revision}"
        elif self.log is not None:
            line = self.log.line
            when = f"t{self.log.at_us}" if self.log.at_us is not None else f"l{line.record_no}"
        elif self.text is not None:
            when = f"s{self.text.place}"
        else:
            when = f"t{self.event.at_us}" if self.event else ""
        text = f"{cluster}\0{who}\0{when}\0{self.verdict}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(slots=True)
class _Pod:
    """The witnesses of one pod name."""

    lines: list[LogVerdict] = field(default_factory=list)
    states: list[StateVerdict] = field(default_factory=list)
    events: list[EventTime] = field(default_factory=list)


def join_attempts(
    states: Iterable[StateVerdict],
    events: Iterable[EventTime],
    lines: Iterable[LogVerdict],
    times: Mapping[int, tuple[int, int]],
    incarnations: Mapping[tuple[str, str], Sequence[Incarnation]],
) -> list[Attempt]:
    """Join the witnesses of each pod name into attempts.

    Args:
        states: Condition messages and bindings, ascending by revision.
        events: FailedScheduling and Scheduled event times.
        lines: Verdict lines of scheduler logs.
        times: Estimated time and error bound of each revision, in µs.
        incarnations: The uids of each (namespace, name), oldest first.

    Returns:
        Attempts, by namespace, pod and order in time.
    """
    pods: dict[tuple[str, str], _Pod] = defaultdict(_Pod)
    for state in states:
        pods[state.namespace, state.pod].states.append(state)
    for event in events:
        pods[event.namespace, event.pod].events.append(event)
    for line in lines:
        pods[line.line.namespace, line.line.pod].lines.append(line)
    logged = sorted(v.at_us for pod in pods.values() for v in pod.lines if v.at_us is not None)
    attempts: list[Attempt] = []
    for name in sorted(pods):
        pods[name].events = [e for e in pods[name].events if not _is_skip(e, logged)]
        attempts += _join_pod(name, pods[name], times, incarnations.get(name, ()))
    return attempts


def _join_pod(
    name: tuple[str, str],
    pod: _Pod,
    times: Mapping[int, tuple[int, int]],
    incarnations: Sequence[Incarnation],
) -> list[Attempt]:
    pod.lines.sort(key=lambda v: (v.at_us or 0, v.line.source_id, v.line.record_no))
    pod.events.sort(key=lambda e: (e.at_us, e.uid))
    attempts = [Attempt(*name, v.line.verdict, log=v) for v in pod.lines]
    by_log = list(attempts)
    attempts += _place_events(name, pod.events, by_log)
    _place_states(name, pod.states, attempts, times)
    _name_uids(attempts, incarnations)
    attempts.sort(key=lambda a: (_instant(a, times), a.sources))
    return attempts


def _is_skip(event: EventTime, logged: Sequence[int]) -> bool:
    """Tell whether an event only says that a pod was passed over while a log was kept.

    Without a log it stays, since nothing else tells that there was no cycle.

    Source: ``schedule_one.go`` skipPodSchedule, which records FailedScheduling.
    """
    covered = bool(logged) and logged[0] <= event.at_us <= logged[-1]
    return covered and event.message.startswith("skip schedule deleting pod")


def _instant(attempt: Attempt, times: Mapping[int, tuple[int, int]]) -> int:
    if attempt.log is not None and attempt.log.at_us is not None:
        return attempt.log.at_us
    if attempt.event is not None:
        return attempt.event.at_us
    if attempt.state is not None:
        return times.get(attempt.state.revision, (0, 0))[0]
    return 0


def _place_events(
    name: tuple[str, str], events: Sequence[EventTime], by_log: Sequence[Attempt]
) -> list[Attempt]:
    """Give each event time its log line; return attempts for those that have none."""
    stamps = [a.log.at_us or 0 for a in by_log if a.log]
    alone: list[Attempt] = []
    for event in events:
        near = _near(stamps, event.at_us, _EVENT_TO_LOG_US + event.error_us)
        free = [
            by_log[i]
            for i in near
            if by_log[i].event is None and _same_kind(by_log[i].verdict, event.verdict)
        ]
        if free:
            attempt = min(free, key=lambda a: abs((a.log.at_us or 0) - event.at_us if a.log else 0))
        else:
            attempt = Attempt(*name, event.verdict)
            alone.append(attempt)
        attempt.event, attempt.uid = event, event.uid or None
    return alone


def _same_kind(one: str, other: str) -> bool:
    """Events do not tell a failed verdict from an error; both are FailedScheduling."""
    return (one == "bound") == (other == "bound")


def _near(stamps: Sequence[int], at_us: int, reach_us: int) -> range:
    return range(bisect_left(stamps, at_us - reach_us), bisect_left(stamps, at_us + reach_us + 1))


def _place_states(
    name: tuple[str, str],
    states: Sequence[StateVerdict],
    attempts: list[Attempt],
    times: Mapping[int, tuple[int, int]],
) -> None:
    """Give each condition and binding its attempt, in order; add those that have none."""
    told = sorted(attempts, key=lambda a: _instant(a, times))
    start = 0
    for state in states:
        at_us, error_us = times.get(state.revision, (0, 0))
        best: int | None = None
        for index in range(start, len(told)):
            attempt = told[index]
            if not _fits(attempt, state):
                continue
            distance = _distance(attempt, at_us)
            if best is None or distance < _distance(told[best], at_us):
                best = index
        if best is not None and _distance(told[best], at_us) <= error_us + _SLACK_US:
            told[best].state, told[best].uid = state, state.uid
            start = best + 1
        else:
            attempts.append(Attempt(*name, state.verdict, state.uid, state=state))


def _distance(attempt: Attempt, at_us: int) -> int:
    return abs(_instant(attempt, {}) - at_us)


def _fits(attempt: Attempt, state: StateVerdict) -> bool:
    if attempt.uid and attempt.uid != state.uid:
        return False
    if not _same_kind(attempt.verdict, state.verdict):
        return False
    if attempt.verdict == "bound":
        return attempt.log is None or attempt.log.line.node in (None, state.node)
    if attempt.log is not None:
        return attempt.log.line.message == state.message
    return attempt.event is not None and _same_words(attempt.event.message, state.message)


def _same_words(event: str, condition: str) -> bool:
    """Compare an event's text, cut at 1024 bytes, with the whole message.

    Source: scheduler ``schedule_one.go`` truncateMessage.
    """
    if event == condition:
        return True
    return (
        event.endswith(_CUT)
        and condition.startswith(event[: -len(_CUT)])
        and (len(event.encode()) <= _EVENT_LIMIT)
    )


def add_texts(attempts: Sequence[Attempt], texts: Iterable[TextVerdict]) -> list[Attempt]:
    """Add what only texts tell; one whose words another witness has is that one told again.

    Returns:
        The attempts, then those of the texts in their order.
    """
    known: dict[tuple[str, str], list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        known[attempt.namespace, attempt.pod].append(attempt)
    added = [
        Attempt(t.namespace, t.pod, t.verdict, t.uid or None, text=t)
        for t in texts
        if not any(_tells_again(t, one) for one in known.get((t.namespace, t.pod), ()))
    ]
    return [*attempts, *added]


def _tells_again(text: TextVerdict, attempt: Attempt) -> bool:
    if not _same_kind(text.verdict, attempt.verdict):
        return False
    if text.verdict != "bound":
        return _same_words(text.message, attempt.message)
    line = attempt.log.line if attempt.log else None
    node = attempt.state.node if attempt.state else line.node if line else None
    return None in (text.node, node) or text.node == node


def _name_uids(attempts: Iterable[Attempt], incarnations: Sequence[Incarnation]) -> None:
    """Name the uid of attempts only a log tells: the incarnation that lived then."""
    for attempt in attempts:
        if attempt.uid is None and incarnations and attempt.log is not None:
            attempt.uid = _alive(incarnations, attempt.log.at_us)


def _alive(incarnations: Sequence[Incarnation], at_us: int | None) -> str | None:
    if len(incarnations) == 1:
        return incarnations[0].uid
    if at_us is None:
        return None
    born = [i for i in incarnations if i.from_us is None or i.from_us <= at_us + _EVENT_TO_LOG_US]
    return (born or list(incarnations))[-1].uid
