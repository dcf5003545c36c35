"""Samples of what kubectl, audit logs and people's pastes hold give what their sidecars mean.

The right values are those of ``INDEX.json`` beside the samples; its keys are meanings.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import orjson
import polars as pl
import pytest

import tracekit
from tests.recordings import ROOT
from tracekit.pipeline.trace import Trace

SAMPLES: Final = ROOT.parent / "shared" / "samples"
VERDICTS: Final = (
    "01_fit_failure_multiline_k8s14.txt",
    "02_predicates_double_colon_k8s17.txt",
    "17_gpu_three_resources.txt",
    "19_hardwrap_taint_comma.txt",
    "20_unbound_pvc_variants.txt",
    "23_old_affinity_double_reason.txt",
    "25_topology_spread.txt",
    "26_preemption_repeats_filter_reasons.txt",
    "28_hostports_then_scheduled.txt",
    "31_double_dot_and_parenthesis.txt",
    "32_pod_yaml_folded_coscheduling.yaml",
    "52_extender_reasons.txt",
    "62_preemption_wording_history.txt",
    "78_truncated_1024.txt",
)
ALL: Final = (
    *VERDICTS,
    "13_ca_notrigger_with_counts.txt",
    "22_prebind_timeout.txt",
    "29_kubelet_rejects.txt",
    "59_disruption_target_k8s126.txt",
    "61_nominated_table.txt",
    "73_kubectl_watch_pretty_concatenated.json",
    "74_audit_binding.jsonl",
    "75b_events_list_mixed.json",
    "75c_events_list_preempted.json",
)

Told = Callable[[str], Trace]
Row = dict[str, Any]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Give ``told("01_….txt")``: a replayed store of that sample."""
    if not SAMPLES.is_dir():
        pytest.skip("the samples are not here: put them in ../shared/samples")
    traces: dict[str, Trace] = {}

    def trace(name: str) -> Trace:
        if name not in traces:
            traces[name] = tracekit.open(tmp_path_factory.mktemp("sample") / "store")
            list(traces[name].collect(SAMPLES / name))
            traces[name].replay()
        return traces[name]

    return trace


def expected(name: str) -> Any:
    return next(
        entry["expected"]
        for entry in orjson.loads((SAMPLES / "INDEX.json").read_bytes())
        if entry["name"] == name
    )


def rows(trace: Trace, query: str, **equal: Any) -> list[Row]:
    frame = trace.query(query)
    for column, value in equal.items():
        frame = frame.filter(pl.col(column) == value)
    return frame.to_dicts()


def verdicts(trace: Trace) -> list[Row]:
    """Return each attempt in the words of the sidecars."""
    found = []
    for attempt in rows(trace, "attempts"):
        reasons = rows(trace, "attempt_reasons", attempt_id=attempt["attempt_id"])
        preemption = orjson.loads(attempt["preemption"] or "{}")
        half = {"total": preemption.get("nodes"), "reasons": preemption.get("reasons")}
        found.append(
            {
                "total_nodes": attempt["nodes_total"],
                "reasons": {reason["reason"]: reason["nodes"] for reason in reasons},
                "preemption": half if "nodes" in preemption else preemption or None,
                "prefilter": attempt["prefilter"],
                "truncated": attempt["truncated"],
                "extra_postfilter": attempt["postfilter"],
                "verdict": attempt["verdict"],
                "message": attempt["message"],
                "pod": attempt["pod"],
            }
        )
    return found


@pytest.mark.parametrize("name", ALL)
def test_sample_is_read_whole_and_once(told: Told, name: str) -> None:
    trace = told(name)
    again = list(trace.collect(SAMPLES / name))
    assert [s.stored for s in again] == [0]
    assert not again[0].data_lost
    assert not trace.verify().filter(pl.col("severity") == "ERROR").height


@pytest.mark.parametrize("name", VERDICTS)
def test_verdicts_are_those_of_the_sidecar(told: Told, name: str) -> None:
    found = verdicts(told(name))
    wanted = expected(name)
    compared = ("total_nodes", "reasons", "preemption", "prefilter", "truncated")
    for one in wanted if isinstance(wanted, list) else [wanted]:
        keys = [key for key in (*compared, "extra_postfilter") if key in one]
        assert {key: one[key] for key in keys} in [{k: f[k] for k in keys} for f in found]
        assert {f["verdict"] for f in found} <= {"unschedulable", "bound"}


def test_old_message_names_pod_and_counts_two_events(told: Told) -> None:
    trace = told(VERDICTS[0])
    assert len(rows(trace, "events", reason="FailedScheduling")) == 2
    first = next(f for f in verdicts(trace) if f["total_nodes"] == 4)
    assert first["pod"] == "pod-a-645022479-ov9ka"
    for node in expected(VERDICTS[0])["per_node"]:
        assert f"fit failure on node ({node}): Insufficient cpu" in first["message"]


def test_preemption_text_is_kept_where_it_counts_nothing(told: Told) -> None:
    name = "62_preemption_wording_history.txt"
    texts = {
        f["preemption"]["text"] for f in verdicts(told(name)) if "text" in (f["preemption"] or ())
    }
    assert texts == {
        one["preemption"]["text"] for one in expected(name) if "text" in one.get("preemption", ())
    }


def test_plugin_error_is_an_error_with_its_point(told: Told) -> None:
    name = "22_prebind_timeout.txt"
    wanted = expected(name)
    trace = told(name)
    attempts = rows(trace, "attempts")
    assert len(rows(trace, "events")) == len(attempts) == wanted["n_events"]
    assert {a["verdict"] for a in attempts} == {"error"}
    assert {a["point"] for a in attempts} == {wanted["point"]}
    assert {r["plugin"] for r in rows(trace, "attempt_reasons")} == {wanted["plugin"]}
    assert all(wanted["cause"] in a["message"] for a in attempts)


def test_autoscaler_counts_node_groups(told: Told) -> None:
    name = "13_ca_notrigger_with_counts.txt"
    trace = told(name)
    events = rows(trace, "events", reason="NotTriggerScaleUp")
    counts = [orjson.loads(e["reasons"]) for e in events]
    assert sorted(map(str, counts)) == sorted(str(e["reasons"]) for e in expected(name)["events"])
    assert ("default", "pod-a-5vrjp") in {(e["namespace"], e["name"]) for e in events}
    assert rows(trace, "attempts") == []


def test_table_of_one_pod_tells_its_waiting(told: Told) -> None:
    name = "28_hostports_then_scheduled.txt"
    wanted, trace = expected(name), told(name)
    (failed,) = rows(trace, "events", reason="FailedScheduling")
    (scheduled,) = rows(trace, "events", reason="Scheduled")
    assert failed["first_age_seconds"] - scheduled["age_seconds"] == wanted["pending_seconds"]
    (bound,) = rows(trace, "attempts", verdict="bound")
    assert (bound["namespace"], bound["pod"]) == ("ns-a", "pod-a-77b44684fd-mphc5")
    assert bound["node"] == wanted["then_scheduled"]


def test_kubelet_rejections_are_moves(told: Told) -> None:
    name = "29_kubelet_rejects.txt"
    moves = rows(told(name), "moves", cause="kubelet_rejection")
    found = [orjson.loads(move["evidence"]) for move in moves]
    for wanted in expected(name)["rejects"]:
        assert any(wanted.items() <= one.items() for one in found), wanted
    assert len(moves) == 3


def test_preemption_is_read_from_a_condition_in_a_session(told: Told) -> None:
    name = "59_disruption_target_k8s126.txt"
    wanted, trace = expected(name), told(name)
    (move,) = rows(trace, "moves")
    assert f"{move['namespace']}/{move['pod']}" == wanted["pod"]
    assert (move["cause"], move["preemptor"]) == ("preemption", wanted["preemptor"])
    assert orjson.loads(move["evidence"])["reason"] == wanted["reason"]


def test_table_of_pods_gives_nominations_and_victims(told: Told) -> None:
    name = "61_nominated_table.txt"
    wanted, trace = expected(name), told(name)
    nominated: Row = {}
    for pod in ("p0", "p1", "p2"):
        status = trace.get(f"/registry/pods/default/{pod}").object["status"]
        nominated |= {pod: status["nominatedNodeName"]} if "nominatedNodeName" in status else {}
    assert nominated == wanted["nominated"]
    moves = rows(trace, "moves")
    assert [m["pod"] for m in moves] == wanted["victims"]
    assert (moves[0]["cause"], moves[0]["certainty"]) == ("preemption", "estimated")


def test_watch_without_types_gives_both_states(told: Told) -> None:
    name = "73_kubectl_watch_pretty_concatenated.json"
    wanted, trace = expected(name), told(name)
    revisions = rows(trace, "pod_revisions")
    assert [r["revision"] for r in revisions] == [1001, 1007]
    assert len(revisions) == wanted["n_objects"]
    assert [b["node"] for b in rows(trace, "bindings")] == [wanted["bound"]]
    assert "resourceVersion" not in trace.get("/registry/pods/ns-a/pod-a").object["metadata"]


def test_audit_tells_bindings_and_who_deleted(told: Told) -> None:
    name = "74_audit_binding.jsonl"
    wanted, trace = expected(name), told(name)
    requests = rows(trace, "api_requests")
    shown = [(f"{r['namespace']}/{r['name']}", r) for r in requests]
    bindings = [(pod, r) for pod, r in shown if r["subresource"] == "binding"]
    assert [[p, r["node"], r["status"]] for p, r in bindings if r["status"] == 201] == wanted[
        "bindings"
    ]
    assert [[p, r["status"]] for p, r in bindings if r["status"] != 201] == wanted[
        "failed_bindings"
    ]
    deleted = [
        p for p, r in shown if r["verb"] == "delete" and r["user"] == "system:kube-scheduler"
    ]
    assert deleted == wanted["preemption_deletes"]
    blocked = [p for p, r in shown if r["subresource"] == "eviction" and r["status"] == 429]
    assert blocked == wanted["evictions_blocked"]
    created, bound = (r["completed_at"] for p, r in shown if p == "ns-b/pod-1")
    assert bound - created == timedelta(seconds=wanted["latency_seconds"]["ns-b/pod-1"])


@pytest.mark.parametrize("name", ["75b_events_list_mixed.json", "75c_events_list_preempted.json"])
def test_event_lists_give_their_timeline(told: Told, name: str) -> None:
    events = told(name).query(
        "SELECT first_at, reason, namespace, name, count FROM events ORDER BY first_at"
    )
    timeline = [
        [_written(first), reason, f"{namespace}/{pod}", count]
        for first, reason, namespace, pod, count in events.rows()
    ]
    assert timeline == expected(name)["timeline"]


def test_preempted_event_names_the_preemptor(told: Told) -> None:
    name = "75c_events_list_preempted.json"
    wanted = expected(name)["preemption"]
    (move,) = rows(told(name), "moves")
    assert f"{move['namespace']}/{move['pod']}" == wanted["victim"]
    assert (move["preemptor"], move["node"]) == (wanted["preemptor"], wanted["node"])


def _written(at: Any) -> str:
    text: str = at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return text.replace(".000000Z", "Z")


def test_samples_are_all_here() -> None:
    if not SAMPLES.is_dir():
        pytest.skip("the samples are not here: put them in ../shared/samples")
    assert {name for name in ALL if not Path(SAMPLES / name).is_file()} == set()


def test_etcd_watch_with_progress_lines_tells_the_life(told: Told) -> None:
    name = "70_etcd_watch.jsonl"
    trace = told(name)
    for pod, wanted in expected(name)["pods"].items():
        namespace, _, short = pod.partition("/")
        life = rows(trace, "pod_revisions", namespace=namespace, pod=short)
        assert [r["revision"] for r in life] == wanted["revs"]
        assert {r["uid"] for r in life} == {wanted["uid"]}
        assert [r["revision"] for r in life if r["stage"] == "deleted"] == [wanted["deleted_rev"]]
        assert [r["revision"] for r in life if r["stage"] == "nominated"] == [1004]
        (binding,) = rows(trace, "bindings", pod=short)
        assert binding["node"] == wanted["bound"]
        failed = rows(trace, "attempts", verdict="unschedulable")
        assert [a["message"] for a in failed] == [wanted["condition_message"]]


def test_plain_etcdctl_get_is_decoded(told: Told) -> None:
    name = "71_etcdctl_get_plain_garbled.bin"
    trace = told(name)
    pod = trace.get(f"/registry/pods/{expected(name)['pod']}").object
    assert pod["status"]["conditions"][0]["reason"] == "Unschedulable"
    assert [d["code"] for d in rows(trace, "diagnostics")] == ["GET_WITHOUT_REVISIONS"]
