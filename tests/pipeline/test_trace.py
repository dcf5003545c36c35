"""The library on the sample recording, against a scan of the stream that shares none of it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

import tracekit
from tests.recordings import Recordings
from tracekit.decode import decode_value
from tracekit.errors import NotFoundError, StoreError, TracekitError
from tracekit.model.options import CollectOptions
from tracekit.pipeline.trace import Trace

VIP = "/registry/pods/default/vip"
POINTS = [290, 400, 620, 850, 962]
_SUFFIXES = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}


@pytest.fixture(scope="module")
def trace(recordings: Recordings, tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """Give the sample, collected and replayed; tests only read it."""
    trace = tracekit.open(tmp_path_factory.mktemp("trace") / "store")
    recording = recordings("seed")
    list(trace.collect(recording / "etcd-watch.json", recording / "kube-scheduler.log"))
    trace.replay()
    return trace


def events(stream: Path) -> Iterator[tuple[int, str, dict[str, Any] | None]]:
    """Yield revision, key and object (None for a delete) of each event of the stream."""
    for line in stream.read_bytes().splitlines():
        for event in orjson.loads(line)["Events"]:
            pair = event["kv"]
            key = base64.b64decode(pair["key"]).decode()
            gone = event.get("type") == 1
            value = None if gone else decode_value(base64.b64decode(pair["value"])).object
            yield pair["mod_revision"], key, None if value is None else dict(value)


def standing(stream: Path, revision: int, prefix: str) -> dict[str, dict[str, Any]]:
    """Return the objects below a prefix as they stood at a revision, by key."""
    state: dict[str, dict[str, Any]] = {}
    for at, key, found in events(stream):
        if at <= revision and key.startswith(prefix):
            if found is None:
                state.pop(key, None)
            else:
                state[key] = found
    return state


def amount(text: str, *, milli: bool) -> int:
    """Read the quantities of the sample: 100m, 1, 64Mi, 3989516Ki."""
    for suffix, factor in _SUFFIXES.items():
        if text.endswith(suffix):
            return int(text.removesuffix(suffix)) * factor
    if text.endswith("m"):
        assert milli
        return int(text.removesuffix("m"))
    return int(text) * (1000 if milli else 1)


def requests(pod: dict[str, Any]) -> tuple[int, int]:
    """Sum the containers' requests: the sample has no init containers and no overhead.

    Source: k8s.io/component-helpers/resource/helpers.go, PodRequests.
    """
    spec = pod["spec"]
    assert not spec.get("initContainers")
    assert not spec.get("overhead")
    assert not spec.get("resources")
    asked = [c.get("resources", {}).get("requests", {}) for c in spec["containers"]]
    return (
        sum(amount(r.get("cpu", "0"), milli=True) for r in asked),
        sum(amount(r.get("memory", "0"), milli=False) for r in asked),
    )


@pytest.mark.parametrize("revision", POINTS)
def test_state_at_agrees_with_the_stream(
    trace: Trace, recordings: Recordings, revision: int
) -> None:
    stream = recordings("seed") / "etcd-watch.json"
    pods = standing(stream, revision, "/registry/pods/").values()
    nodes = standing(stream, revision, "/registry/minions/").values()
    state = trace.state_at(revision)

    assert list(state) == ["revision", "at", "nodes", "pods"]
    assert state["pods"] == sorted(
        (
            {
                "namespace": pod["metadata"]["namespace"],
                "name": pod["metadata"]["name"],
                "uid": pod["metadata"]["uid"],
                "node": pod["spec"].get("nodeName"),
                "phase": pod["status"]["phase"],
            }
            for pod in pods
        ),
        key=lambda pod: (pod["namespace"], pod["name"]),
    )
    assert [node["name"] for node in state["nodes"]] == sorted(n["metadata"]["name"] for n in nodes)
    told = {node["name"]: node for node in state["nodes"]}
    for node in nodes:
        name = node["metadata"]["name"]
        mine = [
            pod
            for pod in pods
            if pod["spec"].get("nodeName") == name
            and pod["status"]["phase"] not in ("Succeeded", "Failed")
        ]
        asked = [requests(pod) for pod in mine]
        conditions = {c["type"]: c["status"] for c in node["status"]["conditions"]}
        offered = node["status"]["allocatable"]
        assert list(told[name]) == [
            "name",
            "zone",
            "unschedulable",
            "ready",
            "taints",
            "allocatable",
            "requested",
        ]
        assert told[name]["zone"] == node["metadata"]["labels"].get("topology.kubernetes.io/zone")
        assert told[name]["unschedulable"] is node["spec"].get("unschedulable", False)
        assert told[name]["ready"] is (conditions.get("Ready") == "True")
        assert told[name]["taints"] == node["spec"].get("taints", [])
        assert told[name]["allocatable"]["cpu"] == amount(offered["cpu"], milli=True)
        assert told[name]["allocatable"]["memory"] == amount(offered["memory"], milli=False)
        assert told[name]["allocatable"]["pods"] == int(offered["pods"])
        assert told[name]["requested"]["cpu"] == sum(cpu for cpu, _ in asked)
        assert told[name]["requested"]["memory"] == sum(memory for _, memory in asked)
        assert told[name]["requested"]["pods"] == len(mine)


def test_state_at_a_time_is_that_of_the_last_revision_until_then(trace: Trace) -> None:
    times = trace.query('SELECT revision, "at" FROM revision_times_rows ORDER BY revision')
    revision, at = times.row(600)
    assert isinstance(at, datetime)
    later = times.filter(pl.col("at") == at)["revision"].max()
    assert trace.state_at(at)["revision"] == later
    just_before = trace.state_at(at - timedelta(microseconds=1))
    assert just_before["revision"] < revision
    assert trace.revision_time(revision)["at"] == at
    with pytest.raises(NotFoundError, match="revision 1 lies before the record; it begins at"):
        trace.state_at(1)


def test_get_is_the_object_as_the_stream_has_it(trace: Trace, recordings: Recordings) -> None:
    stream = recordings("seed") / "etcd-watch.json"
    for revision, key, found in events(stream):
        if key == VIP and found is not None:
            stored = trace.get(VIP, revision=revision)
            assert (stored.revision, stored.object) == (revision, found)


def test_diff_and_pod_tell_the_same_change(trace: Trace) -> None:
    life = trace.pod("default", "vip")
    rows = life["pod_revisions"].to_dicts()
    for before, after in pairwise(rows):
        steps = orjson.loads(after["patch"])
        changes = trace.diff(VIP, before["revision"], after["revision"])
        assert [(c["op"], c["path"]) for c in changes] == [(s["op"], s["path"]) for s in steps]


def test_pod_has_every_incarnation_oldest_first(trace: Trace) -> None:
    life = trace.pod("default", "ubuntu")
    # traces/README.md, stories 01 and 04.
    assert life["pods"]["node"].to_list() == ["node-33", "node-65"]
    uids = life["pods"]["uid"].to_list()
    assert life["pod_revisions"]["uid"].unique(maintain_order=True).to_list() == uids
    one = trace.pod("default", "ubuntu", uid=uids[1])
    assert one["pods"]["uid"].to_list() == [uids[1]]
    frames = {"pods", "pod_revisions", "attempts", "attempt_reasons", "node_scores"}
    assert set(one) == {*frames, "pending", "moves"}
    assert set(one["attempt_reasons"]["attempt_id"]) <= set(one["attempts"]["attempt_id"])


def test_query_gives_a_frame_with_times_in_utc(trace: Trace) -> None:
    frame = trace.query("bindings")
    assert frame.filter(pl.col("path") == "scheduler").height == 38
    assert frame.schema["at"] == pl.Datetime("us", "UTC")
    assert trace.query("SELECT count(*) AS n FROM objects_rows").item() == 962


def test_collecting_again_changes_nothing(trace: Trace, recordings: Recordings) -> None:
    (summary,) = trace.collect(recordings("seed") / "etcd-watch.json")
    assert (summary.records, summary.stored, summary.duplicates) == (962, 0, 962)
    assert trace.is_replayed
    assert not trace.replay().fresh


def test_replaying_anew_gives_the_same_rows(
    trace: Trace, recordings: Recordings, tmp_path: Path
) -> None:
    other = tracekit.open(tmp_path / "store")
    recording = recordings("seed")
    list(other.collect(recording / "kube-scheduler.log"))
    list(other.collect(recording / "etcd-watch.json"))
    other.replay()
    for name in ("pod_revisions", "bindings", "attempts", "pending", "moves", "node_changes"):
        assert other.query(name).equals(trace.query(name))


def test_collect_tells_its_progress(recordings: Recordings, tmp_path: Path) -> None:
    told: list[tuple[str, int]] = []
    log = recordings("seed") / "kube-scheduler.log"
    trace = tracekit.open(tmp_path / "store", cluster="prod")
    (summary,) = trace.collect(
        log, options=CollectOptions(cluster="prod"), progress=lambda *now: told.append(now)
    )
    assert {path for path, _ in told} == {str(log)}
    assert max(records for _, records in told) <= summary.records
    assert trace.cluster == "prod"


def test_errors_are_of_one_tree(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store here"):
        tracekit.open(tmp_path / "nothing").query("bindings")
    (tmp_path / "file").touch()
    for attempt in (lambda t: t.keys(), lambda t: list(t.collect("x")), lambda t: t.verify()):
        with pytest.raises(TracekitError, match="this is a file, a store is a folder"):
            attempt(tracekit.open(tmp_path / "file"))


def test_report_and_its_data_say_the_same(trace: Trace, tmp_path: Path) -> None:
    trace.report(tmp_path / "r.html")
    trace.report_data(tmp_path / "r.json")
    data = orjson.loads((tmp_path / "r.json").read_bytes())
    assert data["facts"]["cluster"] == "default"
    assert data["facts"]["last_revision"] == trace.state_at(10**9)["revision"]
    assert (tmp_path / "r.html").stat().st_size > 10_000
