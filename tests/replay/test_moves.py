"""Moves: against the requests the API server took, and each cause by hand."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.recordings import Recording, Recordings
from tests.replay.objects import condition, controlled_by, event, merge, node, owned, pod
from tests.replay.stream import Recorder, read_revisions
from tracekit.model.objects import ObjectRevision
from tracekit.replay.moves import fold_moves

JSON = dict[str, Any]
BOUND = {"spec": {"nodeName": "n1"}}
ENDING = {
    "metadata": {"deletionTimestamp": "2026-12-01T00:00:30Z", "deletionGracePeriodSeconds": 30}
}

# traces/README.md, "Reading deletes.tsv"; roll-outs and scale-downs are told apart below.
BY_AGENT = {
    "scheduler": {"preemption"},
    "node-controller": {"taint_eviction"},
    "generic-garbage-collector": {"owner_deleted"},
    "pod-garbage-collector": {"node_deleted", "pod_gc"},
    "replicaset-controller": {"rollout", "scale_down"},
    "statefulset-controller": {"rollout", "scale_down"},
    "daemon-set-controller": {"daemonset_removal"},
}


def requested(path: Path) -> dict[str, set[str]]:
    """Return the causes that the first accepted request for each uid allows."""
    causes: dict[str, set[str]] = {}
    with path.open() as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            agent = row["agent"]
            confirms = agent.startswith("Python") or "hollow-kubelet" in agent
            if row["status"] not in ("200", "201") or (row["grace_seconds"] == "0" and confirms):
                continue
            by_user = {"api_eviction" if row["request"] == "eviction" else "deleted_by_user"}
            causes.setdefault(row["uid"], BY_AGENT.get(agent.rpartition(":")[2], by_user))
    return causes


def leavers(revisions: Iterable[ObjectRevision]) -> tuple[set[str], set[str]]:
    """Return the uids that left a node, and those of them that ended by themselves first."""
    bound, stopped, ended = set[str](), set[str](), set[str]()
    for revision in revisions:
        state = revision.object
        if revision.kind != "Pod" or state is None or not state["spec"].get("nodeName"):
            continue
        bound.add(revision.uid)
        if revision.operation == "DELETE" or state["metadata"].get("deletionTimestamp"):
            stopped.add(revision.uid)
        elif state["status"]["phase"] in ("Succeeded", "Failed") and revision.uid not in stopped:
            ended.add(revision.uid)
    return bound & (stopped | ended), ended


@dataclass(frozen=True, slots=True)
class Moved:
    recording: Recording
    rows: list[JSON]
    left: set[str]
    ended: set[str]


@pytest.fixture(scope="module", params=["seed", "mid", "wide", "json"])
def moved(request: pytest.FixtureRequest, recordings: Recordings) -> Moved:
    recording = recordings(request.param)
    revisions = read_revisions(recording / "etcd-watch.json")
    return Moved(recording, fold_moves(revisions), *leavers(revisions))


def test_causes_are_those_of_the_first_request(moved: Moved) -> None:
    rows = {row["uid"]: row for row in moved.rows}
    left, ended = moved.left, moved.ended
    assert set(rows) == left
    truth = requested(moved.recording / "truth/deletes.tsv")
    assert left <= truth.keys() | ended
    wrong = {u: rows[u]["cause"] for u in left - ended if rows[u]["cause"] not in truth[u]}
    assert wrong == {}
    assert {rows[u]["cause"] for u in ended} <= {"job_finished", "node_deleted"}


def by_victim(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for victim, preemptor in pairs:
        found.setdefault(victim, []).append(preemptor)
    return found


def logged_preemptors(path: Path) -> Iterable[tuple[str, str]]:
    """Yield (victim, preemptor) of each "preempted victim" line of the scheduler's log."""
    words = re.compile(r'preemptor="(?P<preemptor>[^"]+)" victim="(?P<victim>[^"]+)"')
    with path.open() as lines:
        for line in (one for one in lines if "preempted victim" in one):
            if line.startswith("{"):
                told = json.loads(line)
                names = {
                    who: f"{told[who]['namespace']}/{told[who]['name']}"
                    for who in ("victim", "preemptor")
                }
            else:
                found = words.search(line)
                assert found is not None
                names = found.groupdict()
            yield names["victim"], names["preemptor"]


def test_the_first_logged_preemptor_has_the_victim(moved: Moved) -> None:
    preempted = (r for r in moved.rows if r["cause"] == "preemption")
    told = by_victim((f"{r['namespace']}/{r['pod']}", r["preemptor"]) for r in preempted)
    logged = by_victim(logged_preemptors(moved.recording / "truth/scheduler-kept.log"))
    assert told.keys() == logged.keys()
    for victim, preemptors in told.items():
        # A StatefulSet's name may be preempted again, as another uid.
        assert preemptors[0] == logged[victim][0]
        assert set(preemptors) <= set(logged[victim])


def test_stories_of_seed_are_told(recordings: Recordings) -> None:
    rows = fold_moves(read_revisions(recordings("seed") / "etcd-watch.json"))
    told = [(r["pod"], r["node"], r["cause"], r["replacement_node"]) for r in rows]
    assert ("ubuntu", "node-65", "taint_eviction", None) in told
    evicted = next(r for r in rows if r["pod"].startswith("web-") and r["node"] == "node-65")
    assert evicted["cause"] == "taint_eviction"
    assert evicted["replacement_node"] not in (None, "node-65")
    drained = [r for r in rows if r["cause"] == "api_eviction"]
    assert {r["node"] for r in drained} == {"node-33"}
    assert all(r["replacement_uid"] for r in drained)
    preempted = [r for r in rows if r["cause"] == "preemption"]
    assert {(r["preemptor"], r["node"]) for r in preempted} == {("default/vip", "node-33")}


def only(recorder: Recorder, uid: str = "u1") -> JSON:
    return next(row for row in fold_moves(recorder.revisions) if row["uid"] == uid)


def leaving(owner: JSON | None, *, labels: JSON | None = None, name: str = "a") -> list[JSON]:
    """Return a pod's bound state, and the one with a deletionTimestamp."""
    metadata = {**(controlled_by(owner) if owner else {}), "labels": labels or {}}
    bound = merge(pod(name, metadata=metadata), BOUND)
    return [bound, merge(bound, ENDING)]


def cause_with(*before: tuple[str, JSON], owner: JSON | None, **pod_changes: Any) -> JSON:
    """Return the move of a pod that leaves after ``before`` was written."""
    bound, ending = leaving(owner, **pod_changes)
    recorder = Recorder()
    if owner is not None:
        recorder.put(f"/o/{owner['metadata']['uid']}", owner)
    recorder.put("/pods/a", bound)
    for key, document in before:
        recorder.put(key, document)
    recorder.put("/pods/a", ending)
    return only(recorder)


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("PreemptionByScheduler", "preemption"),
        ("DeletionByTaintManager", "taint_eviction"),
        ("EvictionByEvictionAPI", "api_eviction"),
        ("DeletionByPodGC", "pod_gc"),
        ("TerminationByKubelet", "kubelet_eviction"),
        ("SomethingElse", "deleted_by_user"),
    ],
)
def test_the_disruption_condition_decides(reason: str, cause: str) -> None:
    disrupted = {"status": {"conditions": [condition("DisruptionTarget", "True", reason, "words")]}}
    bound, ending = leaving(None)
    recorder = Recorder()
    recorder.put("/pods/a", bound)
    recorder.put("/pods/a", merge(ending, disrupted))
    assert only(recorder)["cause"] == cause


@pytest.mark.parametrize(
    ("status", "owner", "cause"),
    [
        ({"phase": "Succeeded"}, owned("Job", "sum", "j"), "job_finished"),
        ({"phase": "Failed"}, owned("Job", "sum", "j"), "job_finished"),
        ({"phase": "Succeeded"}, None, "unknown"),
        (
            {"phase": "Failed", "reason": "Evicted", "message": "low on memory"},
            None,
            "kubelet_eviction",
        ),
        (
            {"phase": "Failed", "reason": "Evicted", "message": "Pod was rejected: disk"},
            None,
            "kubelet_rejection",
        ),
        ({"phase": "Failed", "reason": "OutOfcpu"}, None, "kubelet_rejection"),
        ({"phase": "Failed", "reason": "NodeAffinity"}, None, "kubelet_rejection"),
    ],
)
def test_an_end_before_any_delete_is_judged_by_itself(
    status: JSON, owner: JSON | None, cause: str
) -> None:
    bound, _ = leaving(owner)
    recorder = Recorder()
    recorder.put("/pods/a", bound)
    ended = recorder.put("/pods/a", merge(bound, {"status": status}))
    assert ended is not None
    recorder.put("/pods/a", merge(ended, ENDING))
    move = only(recorder)
    assert (move["cause"], move["revision"]) == (cause, 2)


def replica_set(wants: int, image: str, deployment: JSON) -> JSON:
    template = {"metadata": {"labels": {"pod-template-hash": "x"}}, "spec": {"image": image}}
    return owned(
        "ReplicaSet", "web-1", "r", deployment, spec={"replicas": wants, "template": template}
    )


def deployment(image: str) -> JSON:
    template = {"metadata": {"labels": {}}, "spec": {"image": image}}
    return owned("Deployment", "web", "d", spec={"replicas": 1, "template": template})


@pytest.mark.parametrize(
    ("wants", "image", "cause"),
    [(0, "v2", "rollout"), (0, "v1", "scale_down"), (1, "v2", "deleted_by_user")],
)
def test_a_replica_set_deletes_only_what_it_has_too_much(
    wants: int, image: str, cause: str
) -> None:
    old = deployment("v1")
    steps = [("/o/d", old), ("/o/d", deployment(image)), ("/o/r", replica_set(wants, "v1", old))]
    move = cause_with(*steps, owner=replica_set(1, "v1", old))
    assert (move["cause"], move["certainty"]) == (cause, "estimated")


def stateful_set(wants: int, strategy: str = "RollingUpdate") -> JSON:
    spec = {"replicas": wants, "updateStrategy": {"type": strategy}}
    return owned("StatefulSet", "db", "s", spec=spec)


def newest(owner: JSON, name: str) -> JSON:
    return merge(owned("ControllerRevision", name, f"uid-{name}", owner), {"revision": 2})


@pytest.mark.parametrize(
    ("wants", "made_from", "strategy", "cause"),
    [
        (1, "db-new", "RollingUpdate", "scale_down"),
        (2, "db-old", "RollingUpdate", "rollout"),
        (2, "db-old", "OnDelete", "deleted_by_user"),
        (2, "db-new", "RollingUpdate", "deleted_by_user"),
    ],
)
def test_a_stateful_set_is_judged_by_ordinal_and_template(
    wants: int, made_from: str, strategy: str, cause: str
) -> None:
    owner = stateful_set(wants, strategy)
    labels = {"controller-revision-hash": made_from}
    revision = ("/cr/db-new", newest(owner, "db-new"))
    assert cause_with(revision, owner=owner, labels=labels, name="db-1")["cause"] == cause


def test_a_daemon_set_removes_what_it_no_longer_selects() -> None:
    owner = owned(
        "DaemonSet", "agent", "d", spec={"template": {"spec": {"nodeSelector": {"a": "b"}}}}
    )
    assert cause_with(("/n", node("n1")), owner=owner)["cause"] == "daemonset_removal"
    fits = node("n1", metadata={"labels": {"a": "b"}})
    assert cause_with(("/n", fits), owner=owner)["cause"] == "deleted_by_user"
    labels = {"controller-revision-hash": "old"}
    made = ("/cr", newest(owner, "agent-new"))
    assert (
        cause_with(("/n", fits), made, owner=owner, labels=labels)["cause"] == "daemonset_removal"
    )


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({"spec": {"suspend": True}}, "scale_down"),
        ({"spec": {"parallelism": 0}}, "scale_down"),
        ({"status": {"conditions": [condition("Failed", "True")]}}, "job_finished"),
        ({"metadata": {"deletionTimestamp": "T"}}, "owner_deleted"),
        ({}, "deleted_by_user"),
    ],
)
def test_a_job_deletes_for_its_own_reasons(change: JSON, cause: str) -> None:
    job = owned("Job", "sum", "j", spec={"parallelism": 1})
    assert cause_with(("/o/j", merge(job, change)), owner=job)["cause"] == cause


def test_the_end_of_the_topmost_owner_is_named() -> None:
    top, below = deployment("v1"), replica_set(1, "v1", deployment("v1"))
    bound, ending = leaving(below)
    recorder = Recorder()
    for key, document in (("/o/d", top), ("/o/r", below), ("/pods/a", bound)):
        recorder.put(key, document)
    recorder.delete("/o/d")
    recorder.delete("/o/r")
    recorder.put("/pods/a", ending)
    move = only(recorder)
    assert (move["cause"], move["detail"]) == ("owner_deleted", "Deployment/web was deleted")


def test_an_unknown_controller_leaves_the_cause_unknown() -> None:
    owner = owned("Gang", "train", "g")
    move = cause_with(owner=owner)
    assert (move["cause"], move["certainty"]) == ("unknown", "unknown")


def test_a_deleted_node_takes_its_pods_along() -> None:
    bound, ending = leaving(None)
    recorder = Recorder()
    recorder.put("/n", node("n1"))
    recorder.put("/pods/a", bound)
    recorder.delete("/n")
    recorder.put("/pods/a", ending)
    assert only(recorder)["cause"] == "node_deleted"


def taint_event(at: str) -> JSON:
    about = {"kind": "Pod", "namespace": "default", "name": "a"}
    message = "Marking for deletion Pod default/a"
    return event(
        "a.1",
        "e",
        reason="TaintManagerEviction",
        message=message,
        eventTime=at,
        involvedObject=about,
    )


@pytest.mark.parametrize(
    ("at", "cause"),
    [
        ("2026-12-01T00:00:00.000000Z", "taint_eviction"),
        ("2026-12-01T00:00:20.000000Z", "deleted_by_user"),  # after the delete was asked for
    ],
)
def test_events_speak_for_servers_without_the_condition(at: str, cause: str) -> None:
    bound, ending = leaving(None)
    recorder = Recorder()
    recorder.put("/pods/a", bound)
    recorder.put("/pods/a", ending)
    recorder.put("/events/a.1", taint_event(at))
    assert only(recorder)["cause"] == cause


def preempted_by(message: str, related: JSON | None = None) -> JSON:
    return event(
        "a.1",
        "e",
        reason="Preempted",
        message=message,
        related=related,
        involvedObject={"kind": "Pod", "uid": "u1"},
    )


@pytest.mark.parametrize(
    ("told", "preemptor"),
    [
        (preempted_by("Preempted by a pod on node n1", {"uid": "vip"}), "default/vip"),
        (preempted_by("Preempted by prod/vip on node n1"), "prod/vip"),
        (preempted_by("Preempted by a pod on node n1"), None),
        (
            preempted_by("Preempted by pod 7bdd93d0-6d6a-4f80-a75e-f20eee28964c on node n1"),
            "7bdd93d0-6d6a-4f80-a75e-f20eee28964c",
        ),
    ],
)
def test_the_preemptor_is_named_in_every_wording(told: JSON, preemptor: str | None) -> None:
    bound, ending = leaving(None)
    recorder = Recorder()
    recorder.put("/pods/vip", pod("vip", "vip"))
    recorder.put("/pods/a", bound)
    recorder.put("/pods/a", ending)
    recorder.put("/events/a.1", told)
    move = only(recorder)
    assert (move["cause"], move["preemptor"]) == ("preemption", preemptor)


def test_each_replacement_is_used_once_in_order() -> None:
    owner = owned("ReplicaSet", "web", "r", spec={"replicas": 2})
    mine = controlled_by(owner)
    evicted = condition("DisruptionTarget", "True", "EvictionByEvictionAPI")
    recorder = Recorder()
    recorder.put("/o/r", owner)
    for uid in ("u1", "u2"):
        recorder.put(f"/pods/{uid}", merge(pod(uid, uid, metadata=mine), BOUND))
    for uid in ("u1", "u2"):
        gone = merge(pod(uid, uid, metadata=mine), merge(BOUND, ENDING))
        recorder.put(f"/pods/{uid}", merge(gone, {"status": {"conditions": [evicted]}}))
    for uid in ("u3", "u4", "u5"):
        recorder.put(f"/pods/{uid}", pod(uid, uid, metadata=mine, spec={"nodeName": "n2"}))
    taken = [(r["replacement_uid"], r["replacement_node"]) for r in fold_moves(recorder.revisions)]
    assert taken == [("u3", "n2"), ("u4", "n2")]


def test_a_pod_never_bound_does_not_move() -> None:
    recorder = Recorder()
    recorder.put("/pods/a", pod())
    recorder.delete("/pods/a")
    assert fold_moves(recorder.revisions) == []
