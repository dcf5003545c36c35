"""Waiting and latency, by hand; revisions are a second apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.sql.tables import run, second

JSON = dict[str, Any]


def _spell(uid: str, start: int, end: int, cause: str, **other: Any) -> JSON:
    plain = {
        "namespace": "n",
        "pod": uid,
        "uid": uid,
        "from_revision": start,
        "to_revision": end,
        "open": False,
        "kind": "unschedulable",
        "cause": cause,
        "nodes_blocked": 3,
    }
    return {**plain, **other}


def _pod(uid: str, **other: Any) -> JSON:
    plain = {
        "namespace": "n",
        "pod": uid,
        "uid": uid,
        "workload": "Deployment/w",
        "created_revision": 1,
        "created_known": True,
        "path": "scheduler",
    }
    return {**plain, **other}


def test_pending_by_cause_sums_stretches_and_counts_pods_once(tmp_path: Path) -> None:
    rows = run(
        tmp_path,
        "pending_by_cause",
        {
            "pods": [_pod("p"), _pod("q")],
            "pending_spells": [
                _spell("p", 10, 15, "Insufficient cpu"),
                _spell("p", 15, 16, "gated", kind="gated"),
                _spell("p", 16, 36, "Insufficient cpu"),
                _spell("q", 20, 22, "Insufficient cpu"),
            ],
        },
    )
    told = [(r["cause"], r["pods"], r["pod_seconds"], r["longest_seconds"]) for r in rows]
    assert told == [("Insufficient cpu", 2, 27.0, 20.0), ("gated", 1, 1.0, 1.0)]


def test_waited_seconds_need_the_creation_in_the_record(tmp_path: Path) -> None:
    pods = [
        _pod("p", bound_revision=31, node="a"),
        _pod("q", bound_revision=41, node="a", created_known=False),
        _pod("r"),
    ]
    rows = run(tmp_path, "bindings", {"pods": pods})
    assert [(r["pod"], r["waited_seconds"], r["at"]) for r in rows] == [
        ("p", 30.0, second(31)), ("q", None, second(41)),
    ]  # fmt: skip


def test_percentiles_are_nearest_rank(tmp_path: Path) -> None:
    # waits of 1 to 10 s: rank ceil(0.5 · 10) = 5, ceil(0.9 · 10) = 9, ceil(0.99 · 10) = 10
    pods = [_pod(f"p{n:02}", bound_revision=1 + n) for n in range(1, 11)]
    (row,) = run(tmp_path, "scheduling_latency", {"pods": pods})
    assert (row["step"], row["pods"]) == ("created_to_bound", 10)
    assert [row[f"p{p}_seconds"] for p in (50, 90, 99)] == [5.0, 9.0, 10.0]


def test_latency_leaves_out_pods_without_both_ends(tmp_path: Path) -> None:
    pods = [
        _pod("p", bound_revision=5, started_revision=8),
        _pod("q", bound_revision=5, created_known=False),
        _pod("r", bound_revision=1, path="preset", started_revision=3),
    ]
    rows = run(tmp_path, "scheduling_latency", {"pods": pods})
    told = [(r["step"], r["pods"], r["p50_seconds"], r["p99_seconds"]) for r in rows]
    assert told == [("bound_to_running", 2, 2.0, 3.0), ("created_to_bound", 1, 4.0, 4.0)]
