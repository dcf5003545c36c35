"""The stream's clock against the API server's: when bindings were committed (row 5)."""

from __future__ import annotations

from datetime import datetime, timedelta
from math import ceil

import polars as pl

from tests.acceptance.stores import Replayed, Stores

# Seconds: nearest-rank percentiles of the distance, from issue 2.
P50, P95 = 0.020, 0.400
COVERAGE = 0.99


def distances(store: Replayed) -> list[tuple[float, float]]:
    """Return how far each estimate lies outside [received, completed], and its stated bound."""
    _, *lines = (store.recording / "truth/bindings.tsv").read_text().splitlines()
    spans = {
        uid: (datetime.fromisoformat(received), datetime.fromisoformat(completed))
        for _, _, uid, _, received, completed in (line.split("\t") for line in lines)
    }
    rows = store.query("bindings").filter(pl.col("path") == "scheduler")
    assert set(rows["at_certainty"]) == {"estimated"}
    found = []
    for uid, at, bound in rows.select("uid", "at", "at_error_seconds").iter_rows():
        received, completed = spans[uid]
        outside = max(received - at, at - completed, timedelta())
        found.append((outside.total_seconds(), bound))
    return found


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[ceil(share * len(values)) - 1]


def test_bindings_of_mid_are_timed_well(stores: Stores) -> None:
    outside = [distance for distance, _ in distances(stores("mid"))]
    assert percentile(outside, 0.50) <= P50
    assert percentile(outside, 0.95) <= P95


def test_stated_bounds_hold(name: str, stores: Stores) -> None:
    found = distances(stores(name))
    held = sum(distance <= bound for distance, bound in found)
    assert held / len(found) >= COVERAGE


def test_time_never_runs_backwards(name: str, stores: Stores) -> None:
    rows = stores(name).query("pod_revisions").sort("revision")
    assert rows["at"].null_count() == 0
    assert rows["at"].is_sorted()
