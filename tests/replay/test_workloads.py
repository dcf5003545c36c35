"""Workloads: how many pods each wants, over the revisions."""

from __future__ import annotations

from typing import Any

from tests.replay.objects import owned, pod
from tests.replay.stream import Recorder
from tracekit.replay.workloads import fold_workloads


def wanted(recorder: Recorder) -> list[tuple[Any, ...]]:
    columns = ("workload", "replicas", "from_revision", "to_revision")
    return [tuple(row[c] for c in columns) for row in fold_workloads(recorder.revisions)]


def test_replicas_are_stretches() -> None:
    recorder = Recorder()
    for replicas, note in ((2, "a"), (2, "b"), (3, "b")):
        spec = {"replicas": replicas}
        recorder.put("/d", owned("Deployment", "web", "d", spec=spec, status={"note": note}))
    recorder.delete("/d")
    assert wanted(recorder) == [("Deployment/web", 2, 1, 3), ("Deployment/web", 3, 3, 4)]


def test_each_kind_says_it_in_its_own_way() -> None:
    deployment = owned("Deployment", "web", "d")
    recorder = Recorder()
    recorder.put("/a", owned("StatefulSet", "db", "s", spec={"replicas": 0}))
    recorder.put("/b", owned("ReplicaSet", "bare", "r", spec={}))
    recorder.put("/c", owned("ReplicaSet", "web-1", "r2", deployment, spec={"replicas": 9}))
    recorder.put("/d", owned("ReplicationController", "old", "c", spec={"replicas": 4}))
    recorder.put("/e", owned("Job", "sum", "j", spec={"parallelism": 5, "completions": 9}))
    recorder.put("/f", owned("DaemonSet", "agent", "a", spec={}))
    recorder.put("/g", pod())
    rollout = owned("Rollout", "canary", "x", spec={"replicas": 6})
    recorder.put("/h", {**rollout, "apiVersion": "argoproj.io/v1alpha1"})
    told = [(workload, replicas) for workload, replicas, _, _ in wanted(recorder)]
    assert told == [
        ("DaemonSet/agent", None),
        ("Job/sum", 5),
        ("ReplicaSet/bare", 1),
        ("ReplicationController/old", 4),
        ("Rollout/canary", 6),
        ("StatefulSet/db", 0),
    ]
