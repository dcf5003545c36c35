"""Witnesses of scheduling attempts, joined by hand-made facts; times in whole seconds."""

from __future__ import annotations

from collections.abc import Sequence

from tracekit.replay.attempts import Attempt, Incarnation, LogVerdict, join_attempts
from tracekit.replay.evidence import EventTime, StateVerdict, VerdictLine

S = 1_000_000
NO_CPU, NO_MEMORY = "0/3 nodes are available: 3 Insufficient cpu.", "0/3: memory"


def _line(at: float, message: str = NO_CPU, verdict: str = "unschedulable") -> LogVerdict:
    node = "n1" if verdict == "bound" else None
    text = "" if verdict == "bound" else message
    line = VerdictLine("s", int(at * 10), 0, "ns", "p", verdict, text, node, None, None)
    return LogVerdict(line, int(at * S), "estimated")


def _state(
    revision: int, message: str = NO_CPU, verdict: str = "unschedulable", uid: str = "u"
) -> StateVerdict:
    node = "n1" if verdict == "bound" else None
    return StateVerdict("ns", "p", uid, revision, verdict, message if node is None else "", node)


def _event(
    at: float, message: str = NO_CPU, verdict: str = "unschedulable", uid: str = "u"
) -> EventTime:
    return EventTime("ns", "p", uid, int(at * S), 0, verdict, message)


def _join(
    states: Sequence[StateVerdict] = (),
    events: Sequence[EventTime] = (),
    lines: Sequence[LogVerdict] = (),
    incarnations: Sequence[Incarnation] = (),
) -> list[Attempt]:
    """Revision n was committed at second n, give or take 0.2 s."""
    times = {s.revision: (s.revision * S, S // 5) for s in states}
    return join_attempts(states, events, lines, times, {("ns", "p"): incarnations})


def _told(attempts: list[Attempt]) -> list[tuple[str, int | None]]:
    return [(a.sources, a.state.revision if a.state else None) for a in attempts]


def test_three_witnesses_are_one_attempt() -> None:
    (attempt,) = _join([_state(10)], [_event(9.99)], [_line(9.99)])
    assert attempt.sources == "condition,event,log"
    assert (attempt.uid, attempt.message) == ("u", NO_CPU)


def test_repeats_with_the_same_words_are_attempts_without_a_revision() -> None:
    attempts = _join([_state(10)], [], [_line(10), _line(12), _line(15)])
    assert _told(attempts) == [("condition,log", 10), ("log", None), ("log", None)]


def test_words_that_come_back_get_their_own_revision() -> None:
    states = [_state(10), _state(12, NO_MEMORY), _state(14)]
    lines = [_line(10), _line(11), _line(12, NO_MEMORY), _line(14)]
    told = _told(_join(states, [], lines))
    assert told == [
        ("condition,log", 10),
        ("log", None),
        ("condition,log", 12),
        ("condition,log", 14),
    ]


def test_without_a_log_events_meet_conditions_by_words_and_time() -> None:
    events = [_event(10.1), _event(13), _event(16)]
    told = _told(_join([_state(10)], events))
    assert told == [("condition,event", 10), ("event", None), ("event", None)]


def test_a_cut_event_is_known_by_its_beginning() -> None:
    long = "0/900 nodes are available: " + "x" * 1200
    cut = long[:1020] + " ..."
    (attempt,) = _join([_state(10, long)], [_event(10, cut)])
    assert attempt.sources == "condition,event"
    assert attempt.message == long


def test_a_binding_meets_its_line_and_event() -> None:
    told = _join(
        [_state(10), _state(20, verdict="bound")],
        [_event(20, "", "bound")],
        [_line(10), _line(20, verdict="bound")],
    )
    assert [(a.verdict, a.sources) for a in told] == [
        ("unschedulable", "condition,log"), ("bound", "binding,event,log"),
    ]  # fmt: skip


def test_a_log_line_far_from_any_revision_stays_alone() -> None:
    told = _told(_join([_state(10)], [], [_line(200)]))
    assert sorted(told, key=str) == [("condition", 10), ("log", None)]


def test_a_reused_name_keeps_its_uids_apart() -> None:
    states = [_state(10, uid="old"), _state(30, uid="new")]
    lives = [Incarnation("old", 9 * S, 25 * S), Incarnation("new", 26 * S, None)]
    attempts = _join(states, [], [_line(10), _line(12), _line(30), _line(33)], lives)
    assert [a.uid for a in attempts] == ["old", "old", "new", "new"]


def test_a_pod_passed_over_is_no_attempt_while_a_log_was_kept() -> None:
    skip = _event(11, "skip schedule deleting pod: ns/p")
    assert len(_join([], [skip], [_line(10), _line(12)])) == 2
    assert len(_join([], [skip])) == 1


def test_ids_are_stable_and_differ() -> None:
    def ids() -> list[str]:
        joined = _join([_state(10)], [], [_line(10), _line(12)])
        return [a.attempt_id("c") for a in joined]

    assert ids() == ids()
    assert len(set(ids())) == 2
    assert _join([_state(10)])[0].attempt_id("c") == ids()[0]
