from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.recordings import Recordings
from tests.replay.stream import Recorder, read_revisions
from tracekit.model.objects import ObjectRevision
from tracekit.replay.anchors import Anchor, anchors_of, epoch_us
from tracekit.replay.clock import RevisionTime, estimate_times

START = 1_800_000_000 * 1_000_000  # 2027-01-15T08:00:00Z
SECOND = 1_000_000
HOUR = 3600 * SECOND

JSON = dict[str, Any]
Window = tuple[int, int]


def micro(at_us: int) -> str:
    return datetime.fromtimestamp(at_us // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%S.") + (
        f"{at_us % SECOND:06d}Z"
    )


def second(at_us: int) -> str:
    return micro(at_us)[:19] + "Z"


def meta(stamp_us: int, **more: Any) -> JSON:
    return {
        "creationTimestamp": second(START),
        "managedFields": [{"manager": "m", "time": second(stamp_us)}],
        **more,
    }


def lease(node: str, at_us: int, *, ahead_us: int = 0) -> JSON:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": meta(at_us, name=node, namespace="kube-node-lease", uid=node),
        "spec": {"holderIdentity": node, "renewTime": micro(at_us + ahead_us - 4_000)},
    }


def config(at_us: int, n: int) -> JSON:
    """Give an object of no special kind: its only time is the API server's stamp."""
    about = meta(at_us, name=f"c{n}", namespace="default", uid=f"c{n}")
    about["creationTimestamp"] = second(at_us)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about}


def pod(at_us: int, *, node: str = "", message: str = "", bound_us: int = 0) -> JSON:
    condition = {"type": "PodScheduled", "status": "False", "message": message}
    if node:
        condition = {"type": "PodScheduled", "status": "True"}
        condition["lastTransitionTime"] = second(bound_us)
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta(at_us, name="web", namespace="default", uid="web-uid"),
        "spec": {"nodeName": node} if node else {},
        "status": {"conditions": [condition]} if node or message else {},
    }


def event(at_us: int, written_us: int, *, reason: str, seen: int, message: str = "") -> JSON:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": meta(written_us, name=f"e{at_us}", namespace="default", uid=f"e{at_us}"),
        "involvedObject": {"kind": "Pod", "uid": "web-uid", "resourceVersion": str(seen)},
        "reason": reason,
        "message": message,
        "eventTime": micro(at_us),
        "reportingComponent": "default-scheduler",
        "reportingInstance": "default-scheduler-1",
    }


def estimate(changes: Iterable[ObjectRevision]) -> dict[int, RevisionTime]:
    changes = list(changes)
    anchors = [a for change in changes for a in anchors_of(change)]
    times = estimate_times([change.revision for change in changes], anchors)
    assert_orderly(times)
    return {t.revision: t for t in times}


def assert_orderly(times: Sequence[RevisionTime]) -> None:
    assert [t.revision for t in times] == sorted({t.revision for t in times})
    known = [t.at_us for t in times if t.at_us is not None]
    assert known == sorted(known)
    for t in times:
        assert (t.at_us is None) == (t.error_us is None) == (t.certainty == "unknown")
        assert t.error_us is None or t.error_us >= 0


def off(time: RevisionTime, true_us: int) -> int:
    assert time.at_us is not None
    return abs(time.at_us - true_us)


def covers(time: RevisionTime, true_us: int) -> bool:
    return time.error_us is not None and off(time, true_us) <= time.error_us


# --- single anchors -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:01Z", SECOND),
        ("1970-01-01T00:00:01.000007Z", SECOND + 7),
        ("1970-01-01T01:00:01+01:00", SECOND),
        ("0001-01-01T00:00:00Z", None),
        ("soon", None),
        ("", None),
        (None, None),
        (7, None),
    ],
)
def test_a_time_is_read_to_the_microsecond(text: object, expected: int | None) -> None:
    assert epoch_us(text) == expected


def test_a_delete_has_no_anchor_as_its_object_is_the_state_before() -> None:
    recorder = Recorder()
    recorder.put("/lease/n1", lease("n1", START))
    recorder.delete("/lease/n1")
    assert anchors_of(recorder.revisions[0])
    assert anchors_of(recorder.revisions[1]) == []


def test_a_stamp_bounds_from_above_only_where_the_request_renewed_it() -> None:
    recorder = Recorder()
    recorder.put("/pod", pod(START))
    recorder.put("/pod", pod(START, message="no"))
    recorder.put("/pod", pod(START + 5 * SECOND, message="no"))
    stamps = [[a for a in anchors_of(c) if a.claim != "names"] for c in recorder.revisions]
    assert stamps == [
        [Anchor(1, START, "within")],
        [Anchor(2, START, "after")],
        [Anchor(3, START + 5 * SECOND, "within")],
    ]


def test_a_delete_request_is_dated_by_its_deadline_less_the_grace() -> None:
    recorder = Recorder()
    terminating = pod(START)
    terminating["metadata"] |= {
        "deletionTimestamp": second(START + 40 * SECOND),
        "deletionGracePeriodSeconds": 30,
    }
    recorder.put("/pod", pod(START))
    recorder.put("/pod", terminating)
    assert Anchor(2, START + 10 * SECOND, "within") in anchors_of(recorder.revisions[1])


def test_an_object_whose_past_is_unknown_bounds_from_below_only() -> None:
    recorder = Recorder()
    recorder.put("/lease/n1", lease("n1", START), version=9)
    claims = {(a.claim, a.prompt) for a in anchors_of(recorder.revisions[0])}
    assert claims == {("after", False)}


# --- estimates on written streams ---------------------------------------------------------


def test_no_revisions_give_no_times() -> None:
    assert estimate_times([], []) == []
    assert estimate_times([], [Anchor(3, START, "within")]) == []


def test_revisions_without_any_time_are_unknown() -> None:
    unknown = RevisionTime(4, None, "unknown", None)
    assert estimate_times([5, 4, 4], []) == [unknown, replace(unknown, revision=5)]


def test_whole_seconds_alone_place_revisions_within_a_second() -> None:
    recorder, true = Recorder(), {}
    for n in range(100):
        true[n + 1] = START + n * 130_000
        recorder.put(f"/c{n}", config(true[n + 1], n))
    times = estimate(recorder.revisions)
    assert all(covers(times[r], at) for r, at in true.items())
    assert all(off(times[r], at) <= SECOND for r, at in true.items())
    assert max(t.error_us or 0 for t in times.values()) < 1.2 * SECOND


def test_a_binding_is_placed_by_its_event_to_the_millisecond() -> None:
    recorder = Recorder()
    recorder.put("/pod", pod(START + 100_000))
    recorder.put("/pod", pod(START + 100_000, node="n1", bound_us=START + 700_000))
    recorder.put("/c", config(START + 900_000, 0))
    recorder.put("/e", event(START + 703_000, START + 950_000, reason="Scheduled", seen=1))
    time = estimate(recorder.revisions)[2]
    assert off(time, START + 700_000) <= 5_000
    assert covers(time, START + 700_000)


def test_a_binding_is_not_placed_by_an_event_about_another_incarnation() -> None:
    recorder = Recorder()
    recorder.put("/pod", pod(START + 100_000))
    recorder.put("/pod", pod(START + 100_000, node="n1", bound_us=START + 700_000))
    other = event(START + 90_000, START + 950_000, reason="Scheduled", seen=1)
    other["involvedObject"]["uid"] = "another"
    recorder.put("/e", other)
    assert covers(estimate(recorder.revisions)[2], START + 700_000)


def test_a_verdict_is_placed_by_its_event_though_the_event_is_stored_late() -> None:
    recorder, words = Recorder(), "0/3 nodes are available: 3 Insufficient cpu."
    recorder.put("/pod", pod(START + 100_000))
    recorder.put("/pod", pod(START + 100_000, message=words))
    failed = event(START + 440_000, START + 9 * SECOND, reason="FailedScheduling", seen=1)
    recorder.put("/e", failed | {"message": words})
    assert off(estimate(recorder.revisions)[2], START + 446_000) <= 5_000


def leases_of(ahead: dict[str, int], *, rounds: int = 20) -> tuple[Recorder, dict[int, int]]:
    """Record nodes that renew every 10.07 s; ``ahead`` is how far each node's clock is."""
    recorder, true = Recorder(), {}
    for beat in range(rounds):
        for i, (node, ahead_us) in enumerate(ahead.items()):
            at = START + beat * 10_070_000 + i * 1_370_000
            recorder.put(f"/lease/{node}", lease(node, at, ahead_us=ahead_us))
            true[recorder.revisions[-1].revision] = at
    return recorder, true


@pytest.mark.parametrize("ahead_us", [90 * SECOND, -90 * SECOND, 2 * SECOND, HOUR])
def test_a_node_with_a_skewed_clock_does_not_break_the_rest(ahead_us: int) -> None:
    skewed = {"n1": 0, "n2": 0, "n3": ahead_us, "n4": 0, "n5": 0}
    recorder, true = leases_of(skewed)
    times = estimate(recorder.revisions)
    others = [r for r in true if r % 5 != 3]
    assert max(off(times[r], true[r]) for r in others) <= 20_000
    assert max(off(times[r], true[r]) for r in true) <= SECOND
    assert all(covers(times[r], true[r]) for r in true)


def test_a_skewed_node_is_outvoted_by_its_peers_where_no_stamp_tells() -> None:
    recorder, true = leases_of({"n1": 0, "n2": 0, "n3": 90 * SECOND, "n4": 0})
    anchors = [a for c in recorder.revisions for a in anchors_of(c) if a.clock]
    times = {t.revision: t for t in estimate_times(list(true), anchors)}
    assert_orderly(list(times.values()))
    assert max(off(times[r], true[r]) for r in true if r % 4 != 3) <= 20_000


def test_a_clock_that_is_set_during_the_record_is_left_out() -> None:
    recorder, true = leases_of({"n1": 0, "n2": 0, "n3": 0})
    anchors = [
        replace(a, at_us=a.at_us + 90 * SECOND) if a.clock == "node/n2" and a.revision > 30 else a
        for c in recorder.revisions
        for a in anchors_of(c)
    ]
    times = estimate_times(list(true), anchors)
    assert all(covers(t, true[t.revision]) for t in times)


def test_a_quiet_hour_is_bounded_by_what_stands_around_it() -> None:
    recorder = Recorder()
    true = [START, START + SECOND, START + HOUR, START + HOUR + SECOND]
    recorder.put("/c0", config(true[0], 0))
    recorder.put("/c1", config(true[1], 1))
    recorder.delete("/c1")  # carries no time of its own
    recorder.put("/c2", config(true[2], 2))
    recorder.put("/c3", config(true[3], 3))
    times = estimate(recorder.revisions)
    for revision, at in zip((1, 2, 4, 5), true, strict=True):
        assert covers(times[revision], at)
        assert (times[revision].error_us or 0) < 1.2 * SECOND
    silent = times[3]
    assert true[1] <= (silent.at_us or 0) <= true[2] + SECOND
    assert covers(silent, true[1])
    assert covers(silent, true[2])


def test_a_hole_in_the_revisions_stretches_no_estimate_beyond_its_neighbours() -> None:
    recorder = Recorder()
    recorder.put("/c0", config(START, 0), revision=10)
    recorder.put("/c1", config(START + HOUR, 1), revision=9_000)
    recorder.delete("/c0", revision=9_001)
    recorder.put("/c2", config(START + HOUR + 2 * SECOND, 2), revision=9_002)
    times = estimate(recorder.revisions)
    assert covers(times[10], START)
    assert off(times[9_001], START + HOUR + SECOND) <= 2 * SECOND


def test_one_stamp_from_the_future_is_not_believed() -> None:
    recorder, true = Recorder(), {}
    for n in range(60):
        true[n + 1] = START + n * 500_000
        stamp = START + HOUR if n == 20 else true[n + 1]
        recorder.put(f"/c{n}", config(stamp, n))
    times = estimate(recorder.revisions)
    assert all(covers(times[r], at) for r, at in true.items())
    assert max(off(times[r], at) for r, at in true.items()) <= 1.2 * SECOND


def test_a_clock_that_goes_backwards_still_gives_times_that_do_not() -> None:
    recorder = Recorder()
    for n in range(80):
        at = START + n * SECOND - (HOUR if n >= 50 else 0)
        recorder.put(f"/c{n}", config(at, n))
    times = estimate(recorder.revisions)  # asserts the order
    assert len(times) == 80
    assert all(covers(times[n + 1], START + n * SECOND) for n in range(50))


def test_a_record_that_ends_in_deletes_states_a_wide_bound() -> None:
    recorder = Recorder()
    for n in range(5):
        recorder.put(f"/c{n}", config(START + n * SECOND, n))
    recorder.delete("/c1")
    last = estimate(recorder.revisions)[6]
    assert covers(last, START + 4 * SECOND)
    assert covers(last, START + 12 * SECOND)


_clocks = st.sampled_from(["", "node/a", "node/b", "writer/s"])
_anchors = st.builds(
    Anchor,
    revision=st.integers(0, 40),
    at_us=st.integers(START - HOUR, START + HOUR),
    claim=st.sampled_from(["after", "before", "within", "names"]),
    clock=_clocks,
    prompt=st.booleans(),
    uid=st.sampled_from(["", "", "u1", "u2"]),
    word=st.sampled_from(["", "bound", "seen", "0/3 nodes"]),
)


@given(st.lists(st.integers(1, 30), max_size=30), st.lists(_anchors, max_size=40))
def test_any_anchors_give_one_ordered_row_per_revision(
    revisions: list[int], anchors: list[Anchor]
) -> None:
    times = estimate_times(revisions, anchors)
    assert [t.revision for t in times] == sorted(set(revisions))
    assert_orderly(times)
    assert times == estimate_times(revisions[::-1], anchors)


# --- estimates on recordings --------------------------------------------------------------


@cache
def changes_of(path: Path) -> list[ObjectRevision]:
    return read_revisions(path)


def binding_windows(path: Path, changes: Iterable[ObjectRevision]) -> dict[int, Window]:
    """Give (received, completed) of the API server's audit for each binding's revision."""
    rows = [line.split("\t") for line in path.read_text().splitlines()[1:]]
    windows = {row[2]: (epoch_us(row[4]), epoch_us(row[5])) for row in rows}
    found: dict[int, Window] = {}
    for change in changes:
        if change.kind != "Pod" or change.operation != "PUT" or change.uid not in windows:
            continue
        if (change.object or {}).get("spec", {}).get("nodeName"):
            received, completed = windows.pop(change.uid)
            assert received is not None
            assert completed is not None
            found[change.revision] = (received, completed)
    assert not windows
    return found


def score(
    recordings: Recordings, name: str, keep: Callable[[Anchor], bool] = lambda _: True
) -> tuple[list[float], float, float]:
    """Give p50 and p95 of the distance (ms), the share covered, and the median bound (ms)."""
    changes = changes_of(recordings(name) / "etcd-watch.json")
    anchors = [a for change in changes for a in anchors_of(change) if keep(a)]
    times = estimate_times([change.revision for change in changes], anchors)
    assert_orderly(times)
    by_revision = {t.revision: t for t in times}
    far, covered, bounds = [], [], []
    for revision, (low, high) in binding_windows(
        recordings(name) / "truth/bindings.tsv", changes
    ).items():
        time = by_revision[revision]
        assert time.at_us is not None
        assert time.error_us is not None
        distance = abs(time.at_us - min(max(time.at_us, low), high))
        far.append(distance / 1000)
        covered.append(distance <= time.error_us)
        bounds.append(time.error_us / 1000)
    quantiles = [float(q) for q in np.quantile(far, [0.5, 0.95])]
    return quantiles, float(np.mean(covered)), float(np.median(bounds))


@pytest.mark.parametrize("name", ["seed", "mid", "wide", "json"])
def test_bindings_of_a_recording_are_placed_closely(recordings: Recordings, name: str) -> None:
    (p50, p95), covered, bound = score(recordings, name)
    assert p50 <= 20
    assert p95 <= 100
    assert covered >= 0.99
    assert bound <= 100


@pytest.mark.parametrize("name", ["seed", "mid", "wide", "json"])
def test_bindings_are_placed_as_closely_without_leases(recordings: Recordings, name: str) -> None:
    (p50, p95), covered, bound = score(recordings, name, lambda a: "node/" not in a.clock)
    assert p50 <= 20
    assert p95 <= 100
    assert covered >= 0.99
    assert bound <= 100


@pytest.mark.parametrize("name", ["seed", "mid", "wide", "json"])
def test_bindings_keep_honest_bounds_without_events(recordings: Recordings, name: str) -> None:
    (p50, p95), covered, bound = score(recordings, name, lambda a: "writer/" not in a.clock)
    assert p50 <= 200
    assert p95 <= 1000
    assert covered >= 0.99
    assert bound <= 1000


@pytest.mark.parametrize("name", ["seed", "mid"])
def test_one_skewed_node_costs_a_recording_nothing(recordings: Recordings, name: str) -> None:
    changes = changes_of(recordings(name) / "etcd-watch.json")
    anchors = [a for change in changes for a in anchors_of(change)]
    skewed = next(a.clock for a in anchors if a.clock.startswith("node/"))
    shifted = [replace(a, at_us=a.at_us + 90 * SECOND) if a.clock == skewed else a for a in anchors]
    times = {t.revision: t for t in estimate_times([c.revision for c in changes], shifted)}
    windows = binding_windows(recordings(name) / "truth/bindings.tsv", changes)
    far = [abs((times[r].at_us or 0) - low) for r, (low, _) in windows.items()]
    assert max(far) <= SECOND
