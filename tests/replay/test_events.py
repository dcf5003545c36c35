"""Events: one row for each write that tells an occurrence, of either API."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import orjson

from tests.recordings import Recordings
from tests.replay.objects import event, merge
from tests.replay.stream import Recorder, read_revisions
from tracekit.replay.events import fold_events

JSON = dict[str, Any]
NEW = event(
    "a.1",
    "e1",
    reason="FailedScheduling",
    type="Warning",
    message="0/4 nodes",
    eventTime="2026-12-01T16:00:00.123456Z",
    firstTimestamp=None,
    lastTimestamp=None,
    involvedObject={"kind": "Pod", "namespace": "default", "name": "a", "uid": "u1"},
    reportingComponent="default-scheduler",
)
OLD = event(
    "b.1",
    "e2",
    reason="NodeNotReady",
    count=1,
    firstTimestamp="2026-12-01T16:00:00Z",
    lastTimestamp="2026-12-01T16:00:00Z",
    involvedObject={"kind": "Node", "name": "n1", "resourceVersion": "17"},
    source={"component": "node-controller"},
)


def test_both_apis_give_time_count_and_source() -> None:
    recorder = Recorder()
    recorder.put("/events/a.1", NEW)
    recorder.put("/events/b.1", OLD)
    new, old = fold_events(recorder.revisions)
    assert new["at"] == datetime(2026, 12, 1, 16, 0, 0, 123456, tzinfo=UTC)
    assert (new["at_error_seconds"], new["count"], new["source"]) == (0.0, 1, "default-scheduler")
    assert (new["namespace"], new["name"], new["uid"]) == ("default", "a", "u1")
    assert (old["at_error_seconds"], old["count"], old["source"]) == (1.0, 1, "node-controller")
    assert (old["namespace"], old["kind"], old["regarding_revision"]) == ("", "Node", 17)


def test_a_series_and_a_count_tell_again_other_writes_do_not() -> None:
    series = {"series": {"count": 2, "lastObservedTime": "2026-12-01T16:00:05.000000Z"}}
    recorder = Recorder()
    recorder.put("/events/a.1", NEW)
    recorder.put("/events/a.1", merge(NEW, {"metadata": {"labels": {"x": "y"}}}))
    recorder.put("/events/a.1", merge(NEW, series))
    recorder.put("/events/b.1", OLD)
    recorder.put("/events/b.1", merge(OLD, {"count": 2, "lastTimestamp": "2026-12-01T16:01:00Z"}))
    recorder.delete("/events/a.1")  # expiry
    rows = fold_events(recorder.revisions)
    assert [(r["revision"], r["count"]) for r in rows] == [(1, 1), (3, 2), (4, 1), (5, 2)]
    assert rows[1]["at"] == datetime(2026, 12, 1, 16, 0, 5, tzinfo=UTC)


def test_the_served_form_is_read_too() -> None:
    served = merge(event("c.1", "e3"), {"apiVersion": "events.k8s.io/v1", "note": "n"})
    served |= {"regarding": {"kind": "Pod", "name": "c"}, "related": {"kind": "Pod", "name": "p"}}
    recorder = Recorder()
    recorder.put("/events/c.1", served)
    (row,) = fold_events(recorder.revisions)
    assert (row["message"], row["name"], row["at"]) == ("n", "c", None)
    assert json.loads(row["related"])["name"] == "p"


def test_last_rows_of_seed_equal_what_kubectl_listed(recordings: Recordings) -> None:
    recording = recordings("seed")
    rows = fold_events(read_revisions(recording / "etcd-watch.json", {"Event"}))
    last = {row["event_uid"]: row for row in rows}
    listed = orjson.loads((recording / "events.json").read_bytes())["items"]
    assert len(listed) > 100
    for item in listed:
        row = last[item["metadata"]["uid"]]
        series = item.get("series") or {}
        assert row["count"] == (series.get("count") or item.get("count") or 1)
        assert (row["reason"], row["message"]) == (item["reason"], item["message"])
        time = series.get("lastObservedTime") or item["eventTime"] or item["lastTimestamp"]
        assert row["at"] == (datetime.fromisoformat(time) if time else None)
