"""The thirteen stories of the seed recording, each told by query rows (issue 2, row 11).

What must be told stands in the table of the recordings' README; uids of victims and evictions
are those of ``truth/deletes.tsv``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import orjson
import polars as pl
import pytest

from tests.acceptance.stores import Replayed, Stores

ZONES = {
    "node-65": "cn-hangzhou-g",
    "node-124": "cn-hangzhou-h",
    "node-33": "cn-hangzhou-i",
    "master-1": "cn-hangzhou-g",
}
WORKERS = ("node-65", "node-124", "node-33")
TAINTED = "node(s) had untolerated taint(s)"
CORDONED = "node(s) were unschedulable"
UNMATCHED = "node(s) didn't match Pod's node affinity/selector"
FULL = "Insufficient cpu"

Row = dict[str, Any]


@pytest.fixture
def seed(stores: Stores) -> Replayed:
    return stores("seed", log=True)


def chapter(store: Replayed, number: int) -> tuple[int, int]:
    """Return the revisions between a story's mark and the next one's."""
    keys = store.trace.keys("/registry/configmaps/default/mark-")
    rows = keys.select("key", "last_revision").rows()
    marks = {int(key.split("-")[1]): revision for key, revision in rows}
    return marks[number], marks.get(number + 1, 1 << 62)


def inside(rows: Collection[Row], span: tuple[int, int]) -> list[Row]:
    return [row for row in rows if span[0] < row["revision"] < span[1]]


def only(rows: Collection[Row]) -> Row:
    assert len(rows) == 1, rows
    return next(iter(rows))


def binding(store: Replayed, pod: str, span: tuple[int, int]) -> Row:
    return only(inside(store.rows("bindings", namespace="default", pod=pod), span))


def attempts(store: Replayed, uid: str, verdict: str) -> list[Row]:
    """Return a pod's attempts with this verdict, oldest first."""
    return sorted(store.rows("attempts", uid=uid, verdict=verdict), key=lambda row: row["at"])


def reasons(store: Replayed, attempt: Row) -> dict[str, int]:
    rows = store.rows("attempt_reasons", attempt_id=attempt["attempt_id"])
    return {row["reason"]: row["nodes"] for row in rows}


def waits(store: Replayed, uid: str) -> list[Row]:
    """Return a pod's waiting after the scheduler first refused it."""
    return store.rows("pending", uid=uid, kind="unschedulable")


def change(store: Replayed, span: tuple[int, int], node: str, kind: str, detail: str) -> int:
    rows = store.rows("node_changes", node=node, change=kind, detail=detail)
    return int(only(inside(rows, span))["revision"])


def taints(store: Replayed, revision: int) -> dict[str, set[str]]:
    """Return the taints of each node at a revision, as key=value:effect."""
    return {
        node["name"]: {f"{t['key']}={t.get('value', '')}:{t['effect']}" for t in node["taints"]}
        for node in store.trace.state_at(revision)["nodes"]
    }


def accepted_deletes(store: Replayed, agent: str, request: str) -> set[str]:
    """Return the uids whose first accepted delete or eviction is of this agent."""
    _, *lines = (store.recording / "truth/deletes.tsv").read_text().splitlines()
    first: dict[str, tuple[str, str]] = {}
    for _, _, uid, _, how, who, grace, status, _ in (line.split("\t") for line in lines):
        if grace != "0" and status in ("200", "201"):
            first.setdefault(uid, (who, how))
    return {uid for uid, (who, how) in first.items() if who.endswith(agent) and how == request}


def test_01_life_of_a_pod(seed: Replayed) -> None:
    span = chapter(seed, 1)
    bound = binding(seed, "ubuntu", span)
    assert (bound["node"], bound["path"]) == ("node-33", "scheduler")
    life = seed.rows("pod_revisions", uid=bound["uid"])
    assert inside(life, span) == life
    stages = [row["stage"] for row in life]
    assert (stages[0], stages[-1]) == ("created", "deleted")
    assert {"bound", "started", "ready", "terminating"} <= set(stages)
    landed = only([row for row in life if row["stage"] == "bound"])
    assert landed["revision"] == bound["revision"]
    assert {"/spec/nodeName", "/status/conditions"} <= set(orjson.loads(landed["changed"]))
    assert landed["at"] < life[-1]["at"]
    scheduled = only(seed.rows("events", uid=bound["uid"], reason="Scheduled"))
    assert scheduled["source"] == "default-scheduler"
    assert seed.rows("moves", uid=bound["uid"])[0]["cause"] == "deleted_by_user"


def test_02_node_name_set_by_hand(seed: Replayed) -> None:
    bound = binding(seed, "pinned", chapter(seed, 2))
    assert (bound["node"], bound["path"]) == ("node-124", "preset")
    assert bound["revision"] == bound["created_revision"]
    assert seed.rows("attempts", pod="pinned") == []


def test_03_zone_leaves_one_node(seed: Replayed) -> None:
    bound = binding(seed, "zoned", chapter(seed, 3))
    assert (bound["node"], bound["path"]) == ("node-124", "scheduler")
    attempt = only(seed.rows("attempts", uid=bound["uid"]))
    assert (attempt["nodes_evaluated"], attempt["nodes_feasible"]) == (4, 1)
    zones = {n["name"]: n["zone"] for n in seed.trace.state_at(bound["revision"])["nodes"]}
    assert zones == ZONES
    pod = seed.trace.get("/registry/pods/default/zoned", revision=bound["revision"])
    assert list(pod.object["spec"]["nodeSelector"].values()) == [ZONES["node-124"]]


def test_04_taint_without_toleration(seed: Replayed) -> None:
    span = chapter(seed, 4)
    bound = binding(seed, "ubuntu", span)
    assert (bound["node"], bound["path"]) == ("node-65", "scheduler")
    incarnations = seed.trace.pod("default", "ubuntu")["pods"]["uid"].to_list()
    assert len(incarnations) == 2
    assert incarnations[-1] == bound["uid"]
    refused = only(attempts(seed, bound["uid"], "unschedulable"))
    assert refused["nodes_total"] == 4
    assert reasons(seed, refused) == {TAINTED: 4}
    # The message names no taint: the nodes of that revision do.
    assert taints(seed, refused["revision"]) == {
        **{node: {"debug=true:NoSchedule"} for node in WORKERS},
        "master-1": {"node-role.kubernetes.io/control-plane=:NoSchedule"},
    }
    for node in WORKERS:
        added = change(seed, span, node, "taint_added", "debug=true:NoSchedule")
        assert added < refused["revision"]
    gone = {n: change(seed, span, n, "taint_removed", "debug=true:NoSchedule") for n in WORKERS}
    assert min(gone, key=lambda node: gone[node]) == "node-65"
    assert refused["revision"] < gone["node-65"] < bound["revision"]
    assert bound["revision"] < min(gone["node-124"], gone["node-33"])
    wait = only(waits(seed, bound["uid"]))
    assert (wait["cause"], wait["nodes_blocked"], wait["open"]) == (TAINTED, 4, False)
    assert (wait["from_revision"], wait["to_revision"]) == (refused["revision"], bound["revision"])


def test_04_scheduler_names_the_taints(seed: Replayed) -> None:
    uid = binding(seed, "ubuntu", chapter(seed, 4))["uid"]
    refused = only(attempts(seed, uid, "unschedulable"))
    logs = seed.query("log_records").filter(
        pl.col("message") == "node had untolerated taints",
        (pl.lit(refused["at"]) - pl.col("at")).is_between(pl.duration(), pl.duration(seconds=1)),
    )
    told = [orjson.loads(text) for text in logs["fields"]]
    assert {row["pod"] for row in told} == {"default/ubuntu"}
    assert {row["node"]: row["untoleratedTaint"]["key"] for row in told} == {
        **dict.fromkeys(WORKERS, "debug"),
        "master-1": "node-role.kubernetes.io/control-plane",
    }


def test_05_no_execute_evicts(seed: Replayed) -> None:
    span = chapter(seed, 5)
    tainted = change(seed, span, "node-65", "taint_added", "maintenance=true:NoExecute")
    moves = inside(seed.query("moves").to_dicts(), span)
    assert {row["uid"] for row in moves} == accepted_deletes(seed, "node-controller", "delete")
    assert {(row["cause"], row["node"]) for row in moves} == {("taint_eviction", "node-65")}
    assert all("maintenance=true:NoExecute" in row["detail"] for row in moves)
    assert all(row["revision"] > tainted for row in moves)
    by_workload = {row["workload"]: row for row in moves}
    assert set(by_workload) == {"Deployment/web", "Pod/ubuntu"}
    replaced = by_workload["Deployment/web"]
    assert replaced["replacement_pod"].startswith("web-")
    replacement = binding(seed, replaced["replacement_pod"], span)
    assert replacement["uid"] == replaced["replacement_uid"]
    assert replacement["node"] == replaced["replacement_node"] != "node-65"
    assert replacement["created_revision"] > tainted
    assert by_workload["Pod/ubuntu"]["replacement_uid"] is None


def test_06_cordoned_node_keeps_a_pod_waiting(seed: Replayed) -> None:
    span = chapter(seed, 6)
    cordoned = change(seed, span, "node-124", "cordoned", "spec.unschedulable")
    uncordoned = change(seed, span, "node-124", "uncordoned", "spec.unschedulable")
    bound = binding(seed, "onlyone", span)
    assert (bound["node"], bound["path"]) == ("node-124", "scheduler")
    refused = attempts(seed, bound["uid"], "unschedulable")
    assert cordoned < refused[0]["revision"] < uncordoned < bound["revision"]
    assert [reasons(seed, row) for row in refused] == [
        {TAINTED: 1, CORDONED: 1, UNMATCHED: 2},
        {TAINTED: 1, CORDONED: 2, UNMATCHED: 1},
        {TAINTED: 2, CORDONED: 1, UNMATCHED: 1},
    ]
    pod = seed.trace.get("/registry/pods/default/onlyone", revision=bound["revision"])
    assert pod.object["spec"]["nodeSelector"] == {"kubernetes.io/hostname": "node-124"}
    closed = {n["name"] for n in seed.trace.state_at(refused[0]["revision"])["nodes"]
              if n["unschedulable"]}  # fmt: skip
    assert closed == {"node-124"}
    wait = waits(seed, bound["uid"])
    assert [row["to_revision"] for row in wait[:-1]] == [row["from_revision"] for row in wait[1:]]
    assert (wait[0]["from_revision"], wait[-1]["to_revision"]) == (
        refused[0]["revision"],
        bound["revision"],
    )


def test_06_drain_moves_pods(seed: Replayed) -> None:
    span = chapter(seed, 6)
    drained = change(seed, span, "node-33", "cordoned", "spec.unschedulable")
    moves = inside(seed.query("moves").to_dicts(), span)
    assert {row["uid"] for row in moves} == accepted_deletes(seed, "kubectl:4cb5f07", "eviction")
    assert len(moves) == 2
    for row in moves:
        assert (row["cause"], row["node"], row["workload"]) == (
            "api_eviction",
            "node-33",
            "Deployment/web",
        )
        assert row["revision"] > drained
        assert row["replacement_node"] == "node-65"
        assert binding(seed, row["replacement_pod"], span)["uid"] == row["replacement_uid"]
    assert len({row["replacement_uid"] for row in moves}) == 2


def test_07_only_who_tolerates(seed: Replayed) -> None:
    span = chapter(seed, 7)
    tainted = change(seed, span, "node-33", "taint_added", "env=prod:NoExecute")
    freed = change(seed, span, "node-33", "taint_removed", "env=prod:NoExecute")
    tolerating, waiting = binding(seed, "prodpod", span), binding(seed, "testpod", span)
    assert tolerating["node"] == waiting["node"] == "node-33"
    assert tainted < tolerating["revision"] < freed < waiting["revision"]
    assert attempts(seed, tolerating["uid"], "unschedulable") == []
    refused = only(attempts(seed, waiting["uid"], "unschedulable"))
    assert reasons(seed, refused) == {UNMATCHED: 2, TAINTED: 2}
    wait = only(waits(seed, waiting["uid"]))
    assert (wait["cause"], wait["open"]) == (TAINTED, False)
    # Nobody else was there, so nobody had to go.
    assert inside(seed.query("moves").to_dicts(), span) == []
    stood = seed.trace.state_at(tainted)["pods"]
    assert [pod["name"] for pod in stood if pod["node"] == "node-33"] == []


@pytest.mark.parametrize("pod", ["aff1", "aff2", "aff3"])
def test_08_preferred_affinity_shows_in_the_scores(pod: str, seed: Replayed) -> None:
    span = chapter(seed, 8)
    bound = binding(seed, pod, span)
    assert bound["node"] == "node-33"
    assert change(seed, span, "node-33", "labels", "perf=high added") < bound["revision"]
    assert change(seed, span, "node-124", "labels", "perf=mid added") < bound["revision"]
    attempt = only(seed.rows("attempts", uid=bound["uid"]))
    scores = seed.rows("node_scores", attempt_id=attempt["attempt_id"])
    by_plugin = {
        plugin: {row["node"]: row["score"] for row in scores if row["plugin"] == plugin}
        for plugin in ("NodeAffinity", "Total")
    }
    # 80 and 20, scaled so that the best has 100, times the plugin's weight of 2.
    assert by_plugin["NodeAffinity"] == {"node-33": 200, "node-124": 50, "node-65": 0}
    assert max(by_plugin["Total"], key=lambda node: by_plugin["Total"][node]) == "node-33"
    plugins = {row["plugin"] for row in scores} - {"Total"}
    for node, total in by_plugin["Total"].items():
        own = [r["score"] for r in scores if r["node"] == node and r["plugin"] in plugins]
        assert sum(own) == total
    assert {row["origin"] for row in scores} == {"scheduler"}
    stored = seed.trace.get(f"/registry/pods/default/{pod}", revision=bound["revision"]).object
    preferred = stored["spec"]["affinity"]["nodeAffinity"]
    terms = preferred["preferredDuringSchedulingIgnoredDuringExecution"]
    assert sorted(term["weight"] for term in terms) == [20, 80]


def test_09_pod_affinity_waits_for_its_peer(seed: Replayed) -> None:
    span = chapter(seed, 9)
    follower, details = binding(seed, "follower", span), binding(seed, "details", span)
    refused = attempts(seed, follower["uid"], "unschedulable")
    assert reasons(seed, refused[0]) == {TAINTED: 1, "node(s) didn't match pod affinity rules": 3}
    assert refused[-1]["at"] < follower["at"]
    wait = only(waits(seed, follower["uid"]))
    assert (wait["cause"], wait["nodes_blocked"]) == ("node(s) didn't match pod affinity rules", 3)
    assert follower["node"] == details["node"]
    assert refused[0]["revision"] < details["revision"] < follower["revision"]


def test_10_anti_affinity_waits_for_a_place(seed: Replayed) -> None:
    span = chapter(seed, 10)
    solos = [binding(seed, f"solo{number}", span) for number in (1, 2, 3, 4)]
    assert sorted(row["node"] for row in solos[:3]) == sorted(WORKERS)
    refused = attempts(seed, solos[3]["uid"], "unschedulable")
    rule = "node(s) didn't match pod anti-affinity rules"
    assert reasons(seed, refused[0]) == {TAINTED: 1, rule: 3}
    wait = only(waits(seed, solos[3]["uid"]))
    assert (wait["cause"], wait["nodes_blocked"], wait["open"]) == (rule, 3, False)
    move = only(inside(seed.query("moves").to_dicts(), span))
    assert (move["uid"], move["cause"]) == (solos[1]["uid"], "deleted_by_user")
    # A pod that has ended takes no place any more, though its object still stands.
    ended = only(seed.rows("pod_revisions", uid=solos[1]["uid"], stage="succeeded"))
    assert move["revision"] < ended["revision"] < solos[3]["revision"]
    assert solos[3]["node"] == solos[1]["node"] == move["node"] == ended["node"]


def test_11_no_node_is_that_big(seed: Replayed) -> None:
    span = chapter(seed, 11)
    created = only(inside(seed.rows("pod_revisions", pod="toobig", stage="created"), span))
    refused = attempts(seed, created["uid"], "unschedulable")
    assert reasons(seed, refused[0]) == {TAINTED: 1, FULL: 3}
    # Nodes where preemption would help are none of the four.
    assert refused[0]["message"].endswith("4 Preemption is not helpful for scheduling.")
    state = seed.trace.state_at(refused[0]["revision"])
    pod = seed.trace.get("/registry/pods/default/toobig", revision=created["revision"]).object
    assert pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "64"
    assert max(node["allocatable"]["cpu"] for node in state["nodes"]) < 64_000
    wait = only(waits(seed, created["uid"]))
    assert (wait["cause"], wait["nodes_blocked"], wait["open"]) == (FULL, 3, True)
    assert seed.rows("bindings", uid=created["uid"]) == []


def test_12_full_cluster_makes_fillers_wait(seed: Replayed) -> None:
    waiting = only(seed.rows("pending_by_cause", workload="Deployment/filler", cause=FULL))
    bound = [row for row in seed.query("bindings").to_dicts() if row["pod"].startswith("filler-")]
    stood = seed.trace.state_at(chapter(seed, 13)[0])["pods"]
    unplaced = [p for p in stood if p["name"].startswith("filler-") and p["node"] is None]
    assert waiting["pods"] == len(unplaced) > 0
    placed = [p for p in stood if p["name"].startswith("filler-") and p["node"] is not None]
    # Four of those that had a place lost it to vip.
    assert len(placed) == len(bound) - 4


def test_12_vip_preempts(seed: Replayed) -> None:
    span = chapter(seed, 12)
    vip = binding(seed, "vip", span)
    assert (vip["node"], vip["path"]) == ("node-33", "scheduler")
    life = seed.rows("pod_revisions", uid=vip["uid"])
    nominated = only([row for row in life if row["stage"] == "nominated"])
    named = [s["value"] for s in orjson.loads(nominated["patch"])
             if s["path"] == "/status/nominatedNodeName"]  # fmt: skip
    assert named == ["node-33"]
    assert nominated["node"] is None
    refused = attempts(seed, vip["uid"], "unschedulable")
    assert reasons(seed, refused[0]) == {TAINTED: 1, FULL: 3}
    # Its nominated node is tried first and is the only one tried.
    landed = only(attempts(seed, vip["uid"], "bound"))
    assert (landed["nodes_evaluated"], landed["nodes_feasible"]) == (1, 1)
    moves = inside(seed.query("moves").to_dicts(), span)
    assert {row["uid"] for row in moves} == accepted_deletes(seed, "scheduler", "delete")
    assert len(moves) == 4
    for row in moves:
        assert (row["cause"], row["node"], row["workload"]) == (
            "preemption",
            "node-33",
            "Deployment/filler",
        )
        assert row["preemptor"] == "default/vip"
        assert row["replacement_pod"].startswith("filler-")
        assert row["replacement_node"] is None
        assert nominated["revision"] < row["revision"] < vip["revision"]
    assert len({row["replacement_uid"] for row in moves}) == 4


def test_13_end(seed: Replayed) -> None:
    first, _ = chapter(seed, 13)
    assert inside(seed.query("moves").to_dicts(), (first, 1 << 62)) == []
    assert inside(seed.query("bindings").to_dicts(), (first, 1 << 62)) == []
    still = [row for row in seed.query("pending").to_dicts() if row["open"]]
    assert {row["workload"] for row in still} == {"Deployment/filler", "Pod/toobig"}
    assert {row["cause"] for row in still} == {FULL}
    state = seed.trace.state_at(first)
    assert {pod["uid"] for pod in state["pods"] if pod["node"] is None} == {
        row["uid"] for row in still
    }
    running = {pod["name"]: pod["node"] for pod in state["pods"] if pod["phase"] == "Running"}
    assert running["vip"] == "node-33"
    assert all(node["ready"] and not node["unschedulable"] for node in state["nodes"])
