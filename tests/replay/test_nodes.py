"""Nodes: changes in words and half-open stretches of one state."""

from __future__ import annotations

import json
from typing import Any

from tests.recordings import Recordings
from tests.replay.objects import condition, merge, node
from tests.replay.stream import Recorder, read_revisions
from tracekit.replay.nodes import fold_nodes

JSON = dict[str, Any]
READY = {"status": {"conditions": [condition("Ready", "True", "KubeletReady")]}}
TAINT = {"key": "debug", "value": "true", "effect": "NoSchedule"}


def told(recorder: Recorder) -> list[tuple[int, str, str]]:
    changes, _ = fold_nodes(recorder.revisions)
    return [(row["revision"], row["change"], row["detail"]) for row in changes]


def write(*states: JSON, key: str = "/minions/n1") -> Recorder:
    recorder = Recorder()
    for state in states:
        recorder.put(key, merge(node(), state))
    return recorder


def test_changes_of_one_write_are_numbered() -> None:
    before = merge(READY, {"status": {"allocatable": {"cpu": "4"}}, "spec": {"taints": [TAINT]}})
    after = {
        "metadata": {"labels": {"disk": "ssd"}},
        "spec": {"unschedulable": True, "taints": [{"key": "gone", "effect": "NoExecute"}]},
        "status": {
            "conditions": [condition("Ready", "Unknown", "NodeStatusUnknown")],
            "allocatable": {"cpu": "2"},
        },
    }
    recorder = write(before, after)
    assert told(recorder) == [
        (1, "registered", "ready: True, KubeletReady; taints: debug=true:NoSchedule"),
        (2, "cordoned", "spec.unschedulable"),
        (2, "taint_removed", "debug=true:NoSchedule"),
        (2, "taint_added", "gone:NoExecute"),
        (2, "not_ready", "Unknown, NodeStatusUnknown"),
        (2, "labels", "disk=ssd added"),
        (2, "allocatable", "cpu 4000m → 2000m"),
    ]
    assert [row["ordinal"] for row in fold_nodes(recorder.revisions)[0]] == [0, 0, 1, 2, 3, 4, 5]


def test_heartbeats_change_nothing() -> None:
    beat = {"status": {"conditions": [{**condition("Ready", "True"), "lastHeartbeatTime": "T"}]}}
    recorder = write({"status": {"conditions": [condition("Ready", "True")]}}, beat)
    assert len(told(recorder)) == 1
    assert len(fold_nodes(recorder.revisions)[1]) == 1


def test_spans_are_half_open_and_end_behind_the_record() -> None:
    cordon = merge(READY, {"spec": {"unschedulable": True}})
    recorder = write(READY, cordon, READY)
    recorder.delete("/minions/n1")
    recorder.put("/minions/n1", node(metadata={"uid": "other"}))
    _, spans = fold_nodes(recorder.revisions)
    stretches = [(s["from_revision"], s["to_revision"], s["open"]) for s in spans]
    assert stretches == [(1, 2, True), (2, 3, False), (3, 4, True), (5, 6, False)]
    assert [change for _, change, _ in told(recorder)] == [
        "registered",
        "cordoned",
        "uncordoned",
        "deleted",
        "registered",
    ]


def test_a_node_first_seen_late_is_not_called_registered() -> None:
    recorder = Recorder()
    recorder.put("/minions/n1", merge(node(), READY), version=9)
    assert told(recorder) == []
    assert [s["from_revision"] for s in fold_nodes(recorder.revisions)[1]] == [1]


def test_only_hard_taints_close_a_node() -> None:
    soft = {"spec": {"taints": [{"key": "a", "effect": "PreferNoSchedule"}]}}
    hard = {"spec": {"taints": [{"key": "a", "effect": "NoExecute"}]}}
    _, spans = fold_nodes(write(merge(READY, soft), merge(READY, hard)).revisions)
    assert [s["open"] for s in spans] == [True, False]


def test_the_zone_comes_from_the_newer_label() -> None:
    old = {"failure-domain.beta.kubernetes.io/zone": "old"}
    both = {**old, "topology.kubernetes.io/zone": "new"}
    states = ({"metadata": {"labels": labels}} for labels in ({}, old, both))
    _, spans = fold_nodes(write(*states).revisions)
    assert [s["zone"] for s in spans] == [None, "old", "new"]


def test_allocatable_is_in_whole_units() -> None:
    told_amounts = {"cpu": "3900m", "memory": "1Ki", "pods": "110"}
    _, (span,) = fold_nodes(write({"status": {"allocatable": told_amounts}}).revisions)
    assert json.loads(span["allocatable"]) == {"cpu": 3900, "memory": 1024, "pods": 110}


def test_stories_of_seed_are_told_by_revision(recordings: Recordings) -> None:
    changes, _ = fold_nodes(read_revisions(recordings("seed") / "etcd-watch.json", {"Node"}))
    rows = [(r["node"], r["change"], r["detail"]) for r in changes]
    assert {r["node"] for r in changes if r["change"] == "registered"} == {
        "node-65",
        "node-124",
        "node-33",
        "master-1",
    }
    debug = "debug=true:NoSchedule"
    assert sorted(n for n, c, d in rows if (c, d) == ("taint_added", debug)) == [
        "node-124",
        "node-33",
        "node-65",
    ]
    assert next(n for n, c, d in rows if (c, d) == ("taint_removed", debug)) == "node-65"
    assert ("node-65", "taint_added", "maintenance=true:NoExecute") in rows
    assert [n for n, c, _ in rows if c == "cordoned"] == ["node-124", "node-33"]
    assert ("node-33", "labels", "perf=high added") in rows
