"""What ``kubectl get pods -w`` recorded, collected alone, tells what the etcd stream tells."""

from __future__ import annotations

import csv
from pathlib import Path

import orjson
import polars as pl
import pytest

from tests.acceptance.stores import Stores, build
from tests.recordings import Recordings
from tracekit.pipeline.trace import Trace

_WHO = ["namespace", "pod", "uid", "revision"]


@pytest.fixture(scope="module", params=["seed", "mid", "wide"])
def recorded(
    request: pytest.FixtureRequest, recordings: Recordings, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Trace]:
    source = recordings(request.param) / "kubectl-pods.json"
    return request.param, build(tmp_path_factory.mktemp("kubectl") / "store", [source])


def test_bindings_are_those_of_the_truth(
    recorded: tuple[str, Trace], recordings: Recordings
) -> None:
    name, trace = recorded
    with Path(recordings(name) / "truth/bindings.tsv").open() as file:
        columns = ("namespace", "pod", "uid", "node")
        truth = {tuple(row[c] for c in columns) for row in csv.DictReader(file, delimiter="\t")}
    bindings = trace.query("bindings").filter(pl.col("path") == "scheduler")
    assert set(bindings.select(columns).iter_rows()) == truth


def test_pod_revisions_are_those_of_etcd(recorded: tuple[str, Trace], stores: Stores) -> None:
    """All but pods created in a way that their object does not show: with a node, or twice."""
    name, trace = recorded
    mine, etcd = trace.query("pod_revisions"), stores(name).query("pod_revisions")
    both = mine.join(etcd, on=_WHO, how="full", suffix="_etcd", coalesce=True)
    assert both.height == mine.height == etcd.height
    unknown = (pl.col("version_etcd") == 1) & (pl.col("version") == 0)
    assert both.filter(unknown).height <= {"seed": 1, "mid": 1, "wide": 26}[name]
    known = both.filter(~unknown)
    for column in ("operation", "stage", "node", "phase", "writer"):
        assert known.filter(pl.col(column).ne_missing(pl.col(f"{column}_etcd"))).height == 0
    for column in ("changed", "heartbeats", "patch"):
        for one, other in known.select(column, f"{column}_etcd").iter_rows():
            assert _unordered(one) == _unordered(other)


def test_a_watch_without_versions_has_no_holes(recorded: tuple[str, Trace]) -> None:
    assert recorded[1].query("gaps").height == 0


def _unordered(text: str | None) -> list[str] | None:
    """A field is in no order: kubectl sorts keys, etcd has them as the API numbers them."""
    return None if text is None else sorted(map(str, orjson.loads(text)))


@pytest.mark.parametrize("name", ["seed", "json"])
def test_audit_log_tells_bindings_and_deletes(
    name: str, recordings: Recordings, tmp_path: Path
) -> None:
    trace = build(tmp_path / "store", [recordings(name) / "audit.log"])
    requests = trace.query("api_requests").filter(pl.col("resource") == "pods")
    bound = requests.filter(pl.col("subresource") == "binding", pl.col("status") == 201)
    evicted = pl.col("subresource") == "eviction"
    deleted = requests.filter(
        ((pl.col("verb") == "delete") & (pl.col("subresource") == "")) | evicted
    )
    told: tuple[str, ...] = ("namespace", "pod", "uid", "node", "received_at", "completed_at")
    columns: tuple[str, ...] = ("namespace", "name", "uid", "node", "at", "completed_at")
    assert sorted(_written(bound, columns)) == _truth(recordings(name) / "truth/bindings.tsv", told)
    told, columns = (
        ("namespace", "pod", "status", "received_at"),
        ("namespace", "name", "status", "at"),
    )
    assert sorted(_written(deleted, columns)) == _truth(
        recordings(name) / "truth/deletes.tsv", told
    )


def _written(frame: pl.DataFrame, columns: tuple[str, ...]) -> list[tuple[str, ...]]:
    times = [c for c in columns if c.endswith("at")]
    shown = frame.with_columns(pl.col(times).dt.strftime("%Y-%m-%dT%H:%M:%S.%6fZ"))
    return [tuple(map(str, row)) for row in shown.select(columns).iter_rows()]


def _truth(path: Path, columns: tuple[str, ...]) -> list[tuple[str, ...]]:
    with path.open() as file:
        return sorted(
            tuple(row[c] for c in columns) for row in csv.DictReader(file, delimiter="\t")
        )
