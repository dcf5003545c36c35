"""Spread and redundancy, by hand: what stands in which zone when, and at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.sql.tables import run

LAST = 100
JSON = dict[str, Any]


def _node(name: str, zone: str | None, *, is_open: bool = True) -> JSON:
    return {
        "node": name,
        "zone": zone,
        "from_revision": 1,
        "to_revision": LAST + 1,
        "ready": True,
        "unschedulable": not is_open,
        "open": is_open,
    }


def _stay(uid: str, node: str, start: int = 10, end: int = LAST + 1) -> JSON:
    return {
        "namespace": "n",
        "pod": uid,
        "uid": uid,
        "node": node,
        "from_revision": start,
        "to_revision": end,
        "requests": "{}",
    }


def _pod(uid: str, workload: str) -> JSON:
    return {"namespace": "n", "pod": uid, "uid": uid, "workload": workload, "created_revision": 5}


NODES = [_node("a", "z1"), _node("b", "z2"), _node("c", "z3", is_open=False), _node("d", None)]


def _redundancy(folder: Path, places: dict[str, str], workload: str = "Deployment/w") -> JSON:
    rows = run(
        folder,
        "zone_redundancy",
        {
            "node_spans": NODES,
            "placements": [_stay(uid, node) for uid, node in places.items()],
            "pods": [_pod(uid, workload) for uid in places],
        },
    )
    return rows[0] if rows else {}


def test_one_replica_is_the_first_risk(tmp_path: Path) -> None:
    row = _redundancy(tmp_path, {"p": "a"})
    assert (row["risk"], row["replicas"]) == ("single_replica", 1)
    assert row["spread_was_possible"] is False


def test_all_in_one_zone(tmp_path: Path) -> None:
    row = _redundancy(tmp_path, {"p": "a", "q": "a"})
    assert row["risk"] == "single_zone"
    assert (row["zones_used"], row["zones_available"]) == (1, 2)
    assert (row["largest_zone_share"], row["skew"]) == (1.0, 2)
    assert row["seconds_in_one_zone"] == 90.0
    assert row["spread_was_possible"] is True


def test_skew_counts_the_empty_open_zone_and_not_the_closed_one(tmp_path: Path) -> None:
    row = _redundancy(tmp_path, {"p": "a", "q": "b"})
    assert (row["risk"], row["skew"], row["seconds_in_one_zone"]) == ("none", 0, 0.0)


def test_skew_over_one_is_skewed(tmp_path: Path) -> None:
    row = _redundancy(tmp_path, {"p": "a", "q": "a", "r": "a", "s": "b"})
    assert (row["risk"], row["skew"], row["largest_zone_share"]) == ("skewed", 2, 0.75)


def test_nodes_without_a_zone_are_no_zone(tmp_path: Path) -> None:
    row = _redundancy(tmp_path, {"p": "d", "q": "d"})
    assert (row["risk"], row["zones_used"], row["largest_zone_share"]) == ("single_zone", 0, 0.0)


def test_daemon_sets_and_ended_pods_count_in_none(tmp_path: Path) -> None:
    assert _redundancy(tmp_path, {"p": "a"}, "DaemonSet/d") == {}
    rows = run(
        tmp_path,
        "zone_redundancy",
        {
            "node_spans": NODES,
            "placements": [_stay("p", "a", 10, 50)],
            "pods": [_pod("p", "Job/j")],
        },
    )
    assert rows == []


def test_spread_is_a_step_function(tmp_path: Path) -> None:
    rows = run(
        tmp_path,
        "zone_spread",
        {
            "node_spans": NODES,
            "placements": [
                _stay("p", "a", 10, 40),
                _stay("q", "a", 20, 101),
                _stay("r", "b", 20, 30),
            ],
            "pods": [_pod(uid, "Deployment/w") for uid in "pqr"],
        },
    )
    steps = [(r["zone"], r["from_revision"], r["to_revision"], r["pods"]) for r in rows]
    assert steps == [
        ("z1", 10, 20, 1), ("z1", 20, 40, 2), ("z1", 40, 101, 1),
        ("z2", 20, 30, 1), ("z2", 30, 101, 0),
    ]  # fmt: skip


def test_a_node_that_changes_zone_moves_its_pods(tmp_path: Path) -> None:
    spans = [
        {**_node("a", "z1"), "to_revision": 50},
        {**_node("a", "z2"), "from_revision": 50},
    ]
    rows = run(
        tmp_path,
        "zone_spread",
        {
            "node_spans": spans,
            "placements": [_stay("p", "a", 10)],
            "pods": [_pod("p", "Pod/p")],
        },
    )
    steps = [(r["zone"], r["from_revision"], r["to_revision"], r["pods"]) for r in rows]
    assert steps == [("z1", 10, 50, 1), ("z1", 50, 101, 0), ("z2", 50, 101, 1)]


def test_pods_of_a_node_that_is_gone_still_count_but_in_no_zone(tmp_path: Path) -> None:
    spans = [{**_node("a", "z1"), "to_revision": 60}, _node("b", "z2")]
    tables = {
        "node_spans": spans,
        "placements": [_stay("p", "a"), _stay("q", "b"), _stay("r", "nowhere")],
        "pods": [_pod(uid, "Deployment/w") for uid in "pqr"],
    }
    rows = run(tmp_path, "zone_spread", tables)
    steps = [(r["zone"], r["from_revision"], r["to_revision"], r["pods"]) for r in rows]
    assert steps == [
        ("z1", 10, 60, 1), ("z1", 60, 101, 0), ("z2", 10, 101, 1),
        (None, 10, 60, 1), (None, 60, 101, 2),
    ]  # fmt: skip
    (row,) = run(tmp_path, "zone_redundancy", tables)
    assert (row["replicas"], row["zones_used"]) == (3, 1)
