"""A scheduler that logs JSON tells the attempts that one that logs text does.

Right values: the verdict lines of the recording, counted by its README and ``truth/``.
"""

from __future__ import annotations

from pathlib import Path

import orjson
import polars as pl
import pytest

import tracekit
from tests.recordings import Recordings
from tracekit.pipeline.trace import Trace


@pytest.fixture(scope="module")
def trace(recordings: Recordings, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    found = tracekit.open(tmp_path_factory.mktemp("json") / "store")
    recording = recordings("json")
    list(found.collect(recording / "etcd-watch.json", recording / "kube-scheduler.log"))
    found.replay()
    return found


def test_every_verdict_of_the_log_is_an_attempt(trace: Trace, recordings: Recordings) -> None:
    attempts = trace.query("attempts").filter(pl.col("sources").str.contains("log"))
    assert dict(attempts.group_by("verdict").len().iter_rows()) == {
        "unschedulable": 4651,
        "bound": 270,
    }
    truth = Path(recordings("json") / "truth/unschedulable.jsonl").read_bytes().splitlines()
    assert len(truth) == 4651


def test_fields_are_those_of_the_records(trace: Trace) -> None:
    bound = trace.query("log_records").filter(pl.col("message") == "Successfully bound pod to node")
    for row in bound.iter_rows(named=True):
        record = orjson.loads(row["raw"])
        fields = orjson.loads(row["fields"])
        pod = record["pod"]
        assert fields["pod"] == f"{pod['namespace']}/{pod['name']}"
        assert fields["node"] == record["node"]
        assert (row["source_file"], row["source_line"]) == ("schedule_one.go", 481)
    assert bound.height == 270


def test_times_are_the_logs_own(trace: Trace) -> None:
    records = trace.query("log_records")
    assert set(records["at_certainty"]) == {"observed"}
    assert records["at"].null_count() == 0


def test_coverage(trace: Trace) -> None:
    row = trace.query("log_coverage").row(0, named=True)
    assert (row["component"], row["lines"], row["verbosity"]) == ("kube-scheduler", 53646, 4)
    assert "every attempt" in row["answers"]
    assert "node scores" not in row["answers"]
