"""Texts without a revision: their verdicts, their waiting, their moves, their broken lines."""

from __future__ import annotations

import textwrap
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from tracekit.replay.attempts import Attempt, add_texts
from tracekit.replay.event_texts import age_seconds, read_texts, unfolded
from tracekit.replay.stream import decode_changes
from tracekit.replay.told_moves import told_moves

MESSAGES = [
    "0/6 nodes are available: 3 node(s) had untolerated taint "
    "{node-role.kubernetes.io/control-plane: }, 3 Insufficient nvidia.com/gpu. "
    "preemption: 0/6 nodes are available: 3 Preemption is not helpful for scheduling, "
    "3 No preemption victims found for incoming pod.",
    "0/3 nodes are available: 1 node(s) had taint {node-role.kubernetes.io/master: }, that the pod "
    "didn't tolerate, 2 node(s) had volume node affinity conflict.",
]
NOTHING: dict[str, list[dict[str, Any]]] = {"pods": [], "moves": [], "event_occurrences": []}


def text(**told: Any) -> dict[str, Any]:
    row = dict.fromkeys(("namespace", "name", "uid", "reason", "type", "message", "event_name"), "")
    rest = "count first_seen last_seen first_at at at_error_seconds source node related".split()
    known = {"source_id": "s", "record_no": 1, "ordinal": 0, "form": "event", "kind": "Pod"}
    return {**row, **dict.fromkeys(rest), **known, **told}


@pytest.mark.parametrize("message", MESSAGES)
@pytest.mark.parametrize("width", [40, 60, 80, 81, 100, 119, 120])
def test_broken_lines_are_joined_as_they_were(message: str, width: int) -> None:
    by_terminal = "\n".join(message[i : i + width] for i in range(0, len(message), width))
    by_editor = "\n".join(textwrap.wrap(message, width, break_on_hyphens=False))
    assert unfolded(by_terminal) == message
    assert unfolded(by_editor) == message


@pytest.mark.parametrize(
    ("age", "seconds"),
    [("2m58s", 178.0), ("41h", 147600.0), ("3d4h", 273600.0), ("<unknown>", None), (None, None)],
)
def test_ages(age: str | None, seconds: float | None) -> None:
    assert age_seconds(age) == seconds


@pytest.mark.parametrize(
    ("told", "verdict"),
    [
        ({"reason": "FailedScheduling", "message": MESSAGES[0]}, "unschedulable"),
        ({"reason": "FailedScheduling", "message": 'running PreBind plugin "V": x'}, "error"),
        ({"reason": "Scheduled", "message": "Successfully assigned a/b to n"}, "bound"),
        ({"form": "condition", "type": "PodScheduled=False", "reason": "SchedulerError"}, "error"),
        ({"form": "condition", "type": "PodScheduled=False", "reason": "SchedulingGated"}, "gated"),
        ({"form": "condition", "type": "PodScheduled=True", "reason": ""}, None),
        ({"form": "condition", "type": "Ready=False", "reason": "Unschedulable"}, None),
        ({"reason": "FailedScheduling", "message": "skip schedule deleting pod: a/b"}, None),
        ({"reason": "BackOff", "message": MESSAGES[0]}, None),
        ({"form": "row", "reason": "Scheduled"}, None),
    ],
)
def test_verdicts(told: dict[str, Any], verdict: str | None) -> None:
    texts = read_texts([text(**told)])
    assert [v.verdict for v in texts.verdicts] == ([verdict] if verdict else [])


def test_event_with_a_time_is_joined_with_the_others() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    told = text(reason="Scheduled", name="p", message="Successfully assigned a/p to n", at=at)
    texts = read_texts([told])
    assert [(e.pod, e.verdict, e.node) for e in texts.events] == [("p", "bound", "n")]
    assert texts.verdicts == []


def test_text_that_tells_again_adds_nothing() -> None:
    rows = [
        text(namespace="a", name="p", reason="FailedScheduling", message=MESSAGES[1]),
        text(namespace="a", name="q", reason="FailedScheduling", message=MESSAGES[1]),
    ]
    texts = read_texts(rows)
    (known,) = add_texts([], texts.verdicts[:1])
    assert [a.pod for a in add_texts([known], texts.verdicts)] == ["p", "q"]
    assert [a.sources for a in add_texts([Attempt("a", "p", "bound")], texts.verdicts)] == [
        "", "event", "event",
    ]  # fmt: skip


def test_best_witness_of_a_move_counts() -> None:
    rows = read_texts([
        text(form="row", namespace="a", name="v", reason="Terminating", node="n"),
        text(namespace="a", name="v", reason="Preempted", message="Preempted by b/p on node n"),
        text(namespace="a", name="w", reason="TaintManagerEviction",
             message="Cancelling deletion of Pod a/w"),
        text(form="status", name="x", reason="OutOfcpu", message="Node didn't have enough "
             "resource: cpu, requested: 1, used: 2, capacity: 3"),
    ]).rows  # fmt: skip
    moves = told_moves(rows, NOTHING)
    assert [(m["pod"], m["cause"], m["preemptor"], m["node"]) for m in moves] == [
        ("v", "preemption", "b/p", "n"),
        ("x", "kubelet_rejection", None, None),
    ]
    assert orjson.loads(moves[1]["evidence"])["capacity"] == 3


def test_the_streams_own_move_stands() -> None:
    rows = read_texts([text(namespace="a", name="v", reason="Preempted", uid="u")]).rows
    known = {**NOTHING, "moves": [{"uid": "u", "namespace": "a", "pod": "v"}]}
    assert told_moves(rows, known) == []


def pod_row(revision: int, uid: str, **parts: Any) -> dict[str, Any]:
    metadata = {
        "name": "p", "namespace": "a", "uid": uid, "creationTimestamp": "2026-01-01T00:00:00Z",
        "managedFields": [{"manager": "m", "time": "2026-01-01T00:00:00Z"}],
    }  # fmt: skip
    value = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, **parts}
    return {
        "revision": revision, "sub": 0, "key": "/registry/pods/a/p", "operation": "PUT",
        "version": 0, "encoding": "json", "value": orjson.dumps(value), "prev_value": None,
        "api_version": "v1", "kind": "Pod", "namespace": "a", "name": "p", "uid": uid,
    }  # fmt: skip


def test_pod_as_its_creation_left_it_is_created_there() -> None:
    rows = [
        pod_row(1, "u", spec={}),
        pod_row(2, "u", spec={"nodeName": "n"}),
        pod_row(5, "v", spec={}),
        pod_row(9, "w", spec={}, status={"conditions": [{"type": "PodScheduled"}]}),
    ]
    changes = decode_changes(rows, orjson.loads, [])
    assert [change.version for change in changes] == [1, 0, 1, 0]
