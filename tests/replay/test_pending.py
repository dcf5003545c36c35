"""Stretches of waiting, from hand-made pods."""

from __future__ import annotations

from tests.replay.objects import condition, pod
from tests.replay.stream import Recorder
from tracekit.replay.messages import ParsedReason
from tracekit.replay.pending import PendingFold, PendingSpell, main_reason

KEY = "/registry/pods/default/a"
NO_CPU = "0/4 nodes are available: 1 node(s) were unschedulable, 3 Insufficient cpu."
CORDONED = "0/4 nodes are available: 1 Insufficient cpu, 3 node(s) were unschedulable."


def _refused(message: str) -> dict[str, object]:
    return {"conditions": [condition("PodScheduled", "False", "Unschedulable", message)]}


def _spells(recorder: Recorder, last: int = 99) -> list[tuple[object, ...]]:
    fold = PendingFold()
    for change in recorder.revisions:
        fold.add(change)
    return [_facts(spell) for spell in fold.spells(last)]


def _facts(spell: PendingSpell) -> tuple[object, ...]:
    return (
        spell.from_revision,
        spell.to_revision,
        spell.open,
        spell.kind,
        spell.cause,
        spell.nodes_blocked,
    )


def test_a_life_is_split_where_the_cause_changes() -> None:
    recorder = Recorder()
    recorder.put(KEY, pod(), revision=1)
    recorder.put(KEY, pod(status=_refused(NO_CPU)), revision=2)
    recorder.put(KEY, pod(status={**_refused(NO_CPU), "qosClass": "Burstable"}), revision=3)
    recorder.put(KEY, pod(status=_refused(CORDONED)), revision=5)
    recorder.put(KEY, pod(spec={"nodeName": "n"}), revision=8)
    recorder.put(KEY, pod(spec={"nodeName": "n"}, status={"phase": "Running"}), revision=9)
    assert _spells(recorder) == [
        (1, 2, False, "not_tried", "not_tried", None),
        (2, 5, False, "unschedulable", "Insufficient cpu", 3),
        (5, 8, False, "unschedulable", "node(s) were unschedulable", 3),
        (8, 9, False, "starting", "starting", None),
    ]


def test_gated_until_the_gate_goes_and_open_at_the_end() -> None:
    recorder = Recorder()
    recorder.put(KEY, pod(spec={"schedulingGates": [{"name": "g"}]}), revision=1)
    recorder.put(KEY, pod(), revision=4)
    assert _spells(recorder) == [
        (1, 4, False, "gated", "gated", None), (4, 99, True, "not_tried", "not_tried", None),
    ]  # fmt: skip


def test_a_delete_ends_it_and_a_new_pod_of_the_name_starts_anew() -> None:
    recorder = Recorder()
    recorder.put(KEY, pod(uid="u1", status=_refused(NO_CPU)), revision=1)
    recorder.delete(KEY, revision=3)
    recorder.put(KEY, pod(uid="u2", status=_refused(NO_CPU)), revision=4)
    assert [spell[:3] for spell in _spells(recorder)] == [(1, 3, False), (4, 99, True)]


def test_a_hole_in_which_the_uid_changed_splits_too() -> None:
    recorder = Recorder()
    recorder.put(KEY, pod(uid="u1", status=_refused(NO_CPU)), revision=1)
    recorder.put(KEY, pod(uid="u2", status=_refused(NO_CPU)), revision=7)
    assert [spell[:3] for spell in _spells(recorder)] == [(1, 7, False), (7, 99, True)]


def test_words_nobody_knows_are_the_cause_as_they_stand() -> None:
    recorder = Recorder()
    recorder.put(KEY, pod(status=_refused("the moon is wrong")), revision=1)
    assert _spells(recorder)[0][3:] == ("unschedulable", "the moon is wrong", None)


def test_a_tie_goes_to_the_earlier_filter() -> None:
    reasons = [
        ParsedReason("NodeResourcesFit", "Insufficient cpu", 2),
        ParsedReason("TaintToleration", "node(s) had untolerated taint(s)", 2),
    ]
    main = main_reason(reasons)
    assert main is not None
    assert main.plugin == "TaintToleration"
    assert main_reason([]) is None


def test_another_count_of_nodes_is_the_same_stretch() -> None:
    recorder = Recorder()
    fewer = "0/4 nodes are available: 2 Insufficient cpu, 2 node(s) had no available disk."
    recorder.put(KEY, pod(status=_refused(NO_CPU)), revision=1)
    recorder.put(KEY, pod(status=_refused(fewer)), revision=5)
    assert _spells(recorder) == [(1, 99, True, "unschedulable", "Insufficient cpu", 3)]
