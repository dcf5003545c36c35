"""Balance, by hand: three nodes of 1000 m with 0, 500 and 1000 m requested."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.sql.tables import run, second


def _step(node: str, requested: int, **other: Any) -> dict[str, Any]:
    plain = {
        "node": node, "zone": "z", "resource": "cpu", "from_revision": 10, "to_revision": 101,
        "requested": requested, "allocatable": 1000, "ready": True, "open": True,
        "roomless": False,
    }  # fmt: skip
    return {**plain, **other}


def test_balance_measures_ready_nodes(tmp_path: Path) -> None:
    steps = [_step("a", 0), _step("b", 500), _step("c", 1000), _step("d", 900, ready=False)]
    (row,) = run(tmp_path, "balance", {"usage_steps": steps})
    assert (row["from_at"], row["to_at"]) == (second(10), second(100))
    assert row["nodes"] == 3
    assert row["mean_ratio"] == pytest.approx(0.5)
    # population: ((0.5² + 0 + 0.5²) / 3) ** 0.5
    assert row["stddev_ratio"] == pytest.approx((0.5 / 3) ** 0.5)
    assert (row["min_ratio"], row["max_ratio"]) == (0.0, 1.0)
    # mean absolute difference / (2 · mean): sum of |xi - xj| over 9 pairs is 4
    assert row["gini"] == pytest.approx(4 / 9 / (2 * 0.5))


def test_balance_has_a_step_for_each_change(tmp_path: Path) -> None:
    steps = [
        _step("a", 0, to_revision=20),
        _step("a", 600, from_revision=20),
        _step("b", 200),
    ]
    rows = run(tmp_path, "balance", {"usage_steps": steps})
    assert [(r["from_revision"], r["to_revision"]) for r in rows] == [(10, 20), (20, 101)]
    assert [r["mean_ratio"] for r in rows] == pytest.approx([0.1, 0.4])


def test_even_nodes_have_no_gini_and_empty_ones_neither(tmp_path: Path) -> None:
    for requested in (0, 700):
        (row,) = run(
            tmp_path, "balance", {"usage_steps": [_step("a", requested), _step("b", requested)]}
        )
        assert row["gini"] == pytest.approx(0)


def test_stranded_is_free_on_open_nodes_without_room(tmp_path: Path) -> None:
    steps = [
        _step("a", 400, roomless=True),
        _step("b", 400),
        _step("c", 400, roomless=True, open=False),
        _step("d", 1200, roomless=True),
    ]
    (row,) = run(tmp_path, "balance", {"usage_steps": steps})
    assert row["stranded"] == 600


def test_node_balance_gives_the_ratio_and_none_where_nothing_is_offered(tmp_path: Path) -> None:
    steps = [_step("a", 1200), _step("b", 5, allocatable=None), _step("d", 5, allocatable=0)]
    rows = run(tmp_path, "node_balance", {"usage_steps": steps})
    assert [r["ratio"] for r in rows] == [1.2, None, None]
