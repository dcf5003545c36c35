"""Pod lives: against the bindings the API server accepted, and by hand."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.recordings import Recordings
from tests.replay.objects import condition, controlled_by, merge, owned, pod
from tests.replay.stream import Recorder, read_revisions
from tracekit.replay.diff import apply, without_managed_fields
from tracekit.replay.pods import fold_pods

JSON = dict[str, Any]
WHO = ("namespace", "pod", "uid", "node")
BOUND = {
    "spec": {"nodeName": "n1"},
    "status": {"conditions": [condition("PodScheduled", "True")]},
}


def managed(*entries: tuple[str, str, JSON]) -> JSON:
    fields = [
        {"manager": manager, "operation": "Update", "time": at, "fieldsV1": owns}
        for manager, at, owns in entries
    ]
    return {"metadata": {"managedFields": fields}}


def accepted_bindings(path: Path) -> list[tuple[str, ...]]:
    with path.open() as rows:
        return sorted(tuple(r[c] for c in WHO) for r in csv.DictReader(rows, delimiter="\t"))


@pytest.mark.parametrize(
    ("name", "count"), [("seed", 38), ("mid", 430), ("wide", 590), ("json", 270)]
)
def test_bindings_by_a_scheduler_are_those_the_api_server_accepted(
    recordings: Recordings, name: str, count: int
) -> None:
    recording = recordings(name)
    revisions = read_revisions(recording / "etcd-watch.json", {"Pod"})
    states, pods = fold_pods(revisions)
    bound = sorted(tuple(r[c] for c in WHO) for r in pods if r["path"] == "scheduler")
    assert bound == accepted_bindings(recording / "truth/bindings.tsv")
    assert len(bound) == count
    assert [(s["revision"], s["key"]) for s in states] == [(r.revision, r.key) for r in revisions]


@pytest.mark.parametrize("name", ["seed", "json"])
def test_patches_lead_from_one_state_to_the_next(recordings: Recordings, name: str) -> None:
    revisions = read_revisions(recordings(name) / "etcd-watch.json", {"Pod"})
    states, _ = fold_pods(revisions)
    for revision, state in zip(revisions, states, strict=True):
        before = None if revision.previous is None else without_managed_fields(revision.previous)
        assert revision.object is not None
        assert apply(json.loads(state["patch"]), before) == without_managed_fields(revision.object)


def test_first_story_of_seed_is_told(recordings: Recordings) -> None:
    revisions = read_revisions(recordings("seed") / "etcd-watch.json", {"Pod"})
    states, pods = fold_pods(revisions)
    first, second = (row for row in pods if row["pod"] == "ubuntu")
    assert (first["node"], second["node"]) == ("node-33", "node-65")
    assert (first["path"], first["workload"], first["created_known"]) == (
        "scheduler",
        "Pod/ubuntu",
        True,
    )
    stages = [s["stage"] for s in states if s["uid"] == first["uid"]]
    told = [stage for stage in stages if stage != "updated"]
    assert told == ["created", "bound", "ready", "started", "terminating", "succeeded", "deleted"]
    pinned = next(row for row in pods if row["pod"] == "pinned")
    assert (pinned["path"], pinned["bound_revision"]) == ("preset", pinned["created_revision"])


def test_a_life_is_one_row_with_its_revisions() -> None:
    recorder = Recorder()
    steps: list[JSON] = [
        {},
        BOUND,
        {"status": {"containerStatuses": [{"name": "c", "state": {"running": {}}}]}},
        {"status": {"conditions": [condition("Ready", "True")]}},
        {"metadata": {"deletionTimestamp": "2026-12-01T00:00:00Z"}},
        {"status": {"phase": "Failed"}},
    ]
    state = pod()
    for step in steps:
        state = merge(state, step)
        recorder.put("/pods/a", state)
    recorder.delete("/pods/a")
    states, (life,) = fold_pods(recorder.revisions)
    ends = ("created", "bound", "started", "ready", "terminating", "terminal", "deleted")
    assert [life[f"{end}_revision"] for end in ends] == [1, 2, 3, 4, 5, 6, 7]
    assert states[-1]["node"] == "n1"
    assert (states[-1]["phase"], states[-1]["version"], states[-1]["patch"]) == ("Failed", 0, "[]")


def test_a_reused_name_is_another_life() -> None:
    recorder = Recorder()
    recorder.put("/pods/a", pod(uid="u1"))
    recorder.delete("/pods/a")
    recorder.put("/pods/a", pod(uid="u2"))
    recorder.put("/pods/a", pod(uid="u3"), version=4)  # the delete of u2 is in a hole
    states, lives = fold_pods(recorder.revisions)
    assert [(r["uid"], r["created_known"], r["deleted_revision"]) for r in lives] == [
        ("u1", True, 2),
        ("u2", True, None),
        ("u3", False, None),
    ]
    assert (states[-1]["stage"], states[-1]["patch"]) == ("updated", None)


def test_a_pod_first_seen_late_tells_only_what_is_certain() -> None:
    recorder = Recorder()
    recorder.put("/pods/a", merge(pod(), BOUND), version=5)
    (state,), (life,) = fold_pods(recorder.revisions)
    assert (state["stage"], state["patch"], state["writer"]) == ("updated", None, None)
    assert (life["node"], life["bound_revision"], life["path"]) == ("n1", None, None)


@pytest.mark.parametrize(
    ("owns", "path"),
    [({"f:spec": {"f:nodeName": {}}}, "preset"), ({"f:spec": {"f:containers": {}}}, "scheduler")],
)
def test_the_owner_of_the_node_field_tells_the_path_of_an_old_pod(owns: JSON, path: str) -> None:
    recorder = Recorder()
    late = merge(merge(pod(), BOUND), managed(("kubectl", "T1", owns)))
    recorder.put("/pods/a", late, version=5)
    assert [life["path"] for life in fold_pods(recorder.revisions)[1]] == [path]


@pytest.mark.parametrize(
    "mirror",
    [
        {"annotations": {"kubernetes.io/config.mirror": "x"}},
        controlled_by({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "uid": "n"}}),
    ],
)
def test_a_mirror_pod_is_static_and_its_own_workload(mirror: JSON) -> None:
    recorder = Recorder()
    recorder.put("/pods/a", pod(spec={"nodeName": "n1"}, metadata=mirror))
    (life,) = fold_pods(recorder.revisions)[1]
    assert (life["path"], life["workload"]) == ("static", "Pod/a")


def test_the_workload_is_the_topmost_controller_whenever_it_was_seen() -> None:
    deployment = owned("Deployment", "web", "d")
    replica_set = owned("ReplicaSet", "web-1", "r", deployment)
    recorder = Recorder()
    recorder.put("/pods/a", pod(metadata=controlled_by(replica_set)))
    recorder.put("/rs/web-1", replica_set)
    recorder.put("/deployments/web", deployment)
    (life,) = fold_pods(recorder.revisions)[1]
    assert life["workload"] == "Deployment/web"
    assert (life["owner_kind"], life["owner_name"], life["owner_uid"]) == (
        "ReplicaSet",
        "web-1",
        "r",
    )


STATUS_OF: JSON = {"f:status": {"f:conditions": {'k:{"type":"Ready"}': {".": {}, "f:status": {}}}}}
READY = {"status": {"conditions": [condition("Ready", "True")]}}


@pytest.mark.parametrize(
    ("change", "entries", "writer"),
    [
        (READY, [("kubectl", "T1", {}), ("kubelet", "T2", STATUS_OF)], "kubelet"),
        # within one second the time stands still: the owner of what changed is the writer
        (READY, [("kubectl", "T1", {}), ("kubelet", "T1", STATUS_OF)], "kubelet"),
        # nobody owns what a binding or an eviction writes
        (BOUND, [("kubectl", "T1", {}), ("kubelet", "T1", STATUS_OF)], None),
        ({"metadata": {"deletionTimestamp": "T"}}, [("kubectl", "T1", {})], None),
    ],
)
def test_the_writer_is_who_managed_fields_prove(
    change: JSON, entries: list[tuple[str, str, JSON]], writer: str | None
) -> None:
    known = managed(("kubectl", "T1", {}), ("kubelet", "T1", STATUS_OF))
    before = merge(merge(pod(), {"status": {"conditions": [condition("Ready", "False")]}}), known)
    recorder = Recorder()
    recorder.put("/pods/a", before)
    recorder.put("/pods/a", merge(merge(before, change), managed(*entries)))
    assert fold_pods(recorder.revisions)[0][1]["writer"] == writer


def test_heartbeats_stand_apart_but_are_in_the_patch() -> None:
    before = pod(status={"conditions": [{**condition("Ready", "True"), "lastProbeTime": "T1"}]})
    after = pod(status={"conditions": [{**condition("Ready", "True"), "lastProbeTime": "T2"}]})
    recorder = Recorder()
    recorder.put("/pods/a", before)
    recorder.put("/pods/a", after)
    state = fold_pods(recorder.revisions)[0][1]
    assert state["changed"] == "[]"
    assert orjson.loads(state["heartbeats"]) == ["/status/conditions/0/lastProbeTime"]
    assert apply(orjson.loads(state["patch"]), before) == after


def test_other_kinds_named_pod_are_no_pods() -> None:
    recorder = Recorder()
    recorder.put("/x/a", {**pod(), "apiVersion": "example.com/v1"})
    recorder.put("/x/b", None)
    recorder.delete("/x/b")
    assert fold_pods(recorder.revisions) == ([], [])
