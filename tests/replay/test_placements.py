"""Placements: bound and neither terminal nor deleted."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

from tests.recordings import Recordings
from tests.replay.objects import merge, pod
from tests.replay.stream import Recorder, read_revisions
from tracekit.replay.placements import fold_placements

JSON = dict[str, Any]
BOUND = {"spec": {"nodeName": "n1", "containers": [{"resources": {"requests": {"cpu": "1"}}}]}}
ENDING = {"metadata": {"deletionTimestamp": "2026-12-01T00:00:00Z"}}


def stretches(recorder: Recorder) -> list[tuple[Any, ...]]:
    columns = ("uid", "node", "from_revision", "to_revision")
    return [tuple(row[c] for c in columns) for row in fold_placements(recorder.revisions)]


def test_a_terminating_pod_still_counts_a_terminal_one_does_not() -> None:
    recorder = Recorder()
    for state in ({}, BOUND, merge(BOUND, ENDING), merge(BOUND, {"status": {"phase": "Failed"}})):
        recorder.put("/pods/a", merge(pod(), state))
    assert stretches(recorder) == [("u1", "n1", 2, 4)]


def test_a_delete_ends_it_and_the_record_leaves_it_open() -> None:
    recorder = Recorder()
    recorder.put("/pods/a", merge(pod(), BOUND))
    recorder.delete("/pods/a")
    recorder.put("/pods/a", merge(pod(uid="u2"), BOUND))
    assert stretches(recorder) == [("u1", "n1", 1, 2), ("u2", "n1", 3, 4)]


def test_a_resize_begins_another_stretch() -> None:
    larger = {"spec": {"containers": [{"resources": {"requests": {"cpu": "2"}}}]}}
    recorder = Recorder()
    recorder.put("/pods/a", merge(pod(), BOUND))
    recorder.put("/pods/a", merge(merge(pod(), BOUND), larger))
    rows = fold_placements(recorder.revisions)
    assert [(r["to_revision"], json.loads(r["requests"])) for r in rows] == [
        (2, {"cpu": 1000}),
        (3, {"cpu": 2000}),
    ]


def test_who_is_where_equals_the_states_of_that_revision(recordings: Recordings) -> None:
    revisions = read_revisions(recordings("json") / "etcd-watch.json", {"Pod"})
    rows = fold_placements(revisions)
    counted: dict[int, set[tuple[str, str]]] = defaultdict(set)
    last: dict[str, JSON] = {}
    points = [r.revision for r in revisions][:: len(revisions) // 40]
    for revision in revisions:
        last[revision.key] = dict(revision.object or {}) if revision.operation == "PUT" else {}
        if revision.revision in points:
            counted[revision.revision] = {
                (p["metadata"]["uid"], p["spec"]["nodeName"])
                for p in last.values()
                if p.get("spec", {}).get("nodeName")
                and p["status"]["phase"] not in ("Succeeded", "Failed")
            }
    for point, there in counted.items():
        placed = {
            (r["uid"], r["node"]) for r in rows if r["from_revision"] <= point < r["to_revision"]
        }
        assert placed == there
    assert len(counted[points[-1]]) > 50
