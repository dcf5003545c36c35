"""Samples of logs give what their sidecars mean.

The right values are those of ``INDEX.json`` beside the samples; its keys are meanings. Times
carry no year where the log tells none, so month, day and time of day are compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import orjson
import polars as pl
import pytest

import tracekit
from tests.recordings import ROOT
from tracekit.pipeline.trace import Trace

SAMPLES: Final = ROOT.parent / "shared" / "samples"
ALL: Final = (
    "04_docker_timestamp_prefix_k8s17.log",
    "05_bound_successfully_k8s118.log",
    "07_structured_success_k8s126.log",
    "08_0_of_315_taints_kibana_reversed.log",
    "10_event_rejected_go_struct.log",
    "11_line_numbers_sample_list_k8s120.log",
    "14_ca_go_struct_taints.log",
    "16_ca_binder_lines_interleaved.log",
    "34_kubelet_journald_k8s15.log",
    "35_kubelet_journald_volumes_cut.log",
    "37_kubelet_structured_journald_us.log",
    "38_kubelet_windows_equal_times.log",
    "40_microk8s_kubelite_trace.log",
    "41_kubelet_blocked_pod_worker.log",
    "43_event_occurred_cancel.log",
    "44_hyperkube_cm_k8s16.log",
    "46_fatal_scheduler_cache.log",
    "47_fatal_with_goroutine_dump.log",
    "49_cri_partial_lines.log",
    "50_scheduling_trace_k8s114.log",
    "53_malformed_structured.log",
    "55_queue_moves.log",
    "56_ktesting_and_space_keys.log",
    "58_multiline_value_lt.log",
    "64_docker_json_kubelet_localtime.jsonl",
    "65_docker_json_mixed_plain.jsonl",
    "67_other_json_loggers.jsonl",
    "68_logrus_klog_interleaved.log",
    "77_ansi_crlf_nonutf8.bin",
    "80_kube-scheduler.node-1.root.log.INFO.20191231-235958.4321.gz",
    "81_kubelet_pod_list_five_shapes.log",
)
# Keys of the sidecars that name one record, and which of those with a header it is.
PLACES: Final = {"first": 0, "second": 1, "third": 2, "fourth": 3}
# Sidecars that count lines before the first header, too.
COUNTED_FROM_TOP: Final = {"37_kubelet_structured_journald_us.log", "46_fatal_scheduler_cache.log"}
PENDING: Final = (
    ("08_0_of_315_taints_kibana_reversed.log", 0),
    ("10_event_rejected_go_struct.log", 0),
    ("49_cri_partial_lines.log", 0),
    ("68_logrus_klog_interleaved.log", 0),
    ("68_logrus_klog_interleaved.log", 1),
    ("80_kube-scheduler.node-1.root.log.INFO.20191231-235958.4321.gz", 0),
)

Row = dict[str, Any]
Told = Callable[[str], Trace]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Give ``told("04_….log")``: a replayed store of that sample."""
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


def index() -> dict[str, Any]:
    entries = orjson.loads((SAMPLES / "INDEX.json").read_bytes())
    return {entry["name"]: entry["expected"] for entry in entries}


def expected(name: str) -> Any:
    return index()[name]


def with_key(*keys: str) -> list[str]:
    """Name the samples whose sidecar has one of the keys; none where there are no samples."""
    if not SAMPLES.is_dir():
        return []
    found = index()
    return [n for n in ALL if isinstance(found[n], dict) and found[n].keys() & set(keys)]


def records(trace: Trace) -> list[Row]:
    return trace.query("log_records").sort("record_no").to_dicts()


def headed(trace: Trace) -> list[Row]:
    return [r for r in records(trace) if r["severity"]]


def cut_lines(trace: Trace) -> list[int]:
    frame = trace.query("SELECT position FROM diagnostics_rows WHERE code = 'LOG_RECORD_CUT'")
    return sorted(frame["position"].to_list())


def reasons(trace: Trace, attempt_id: str) -> dict[str, int | None]:
    frame = trace.query("attempt_reasons").filter(
        pl.col("attempt_id") == attempt_id, pl.col("origin") == "scheduler"
    )
    return dict(frame.select("reason", "nodes").iter_rows())


@pytest.mark.parametrize("name", ALL)
def test_every_line_is_kept_once(told: Told, name: str) -> None:
    if name.endswith(".gz"):
        pytest.skip("compared by its own test")
    data = (SAMPLES / name).read_bytes().decode("utf-8", "replace")
    lines = [line.removesuffix("\r") for line in data.split("\n") if line.strip()]
    kept = [line.removesuffix("\r") for r in records(told(name)) for line in r["raw"].split("\n")]
    assert sorted(line for line in kept if line.strip()) == sorted(lines)


@pytest.mark.parametrize("name", with_key(*PLACES))
def test_named_record(told: Told, name: str) -> None:
    all_records = records(told(name)) if name in COUNTED_FROM_TOP else headed(told(name))
    for key, place in PLACES.items():
        meant = expected(name).get(key)
        if meant is None:
            continue
        if "outer_ts" in meant and name.startswith("65"):
            all_records = records(told(name))
        assert_record(all_records[place], meant)


def assert_record(row: Row, meant: Row) -> None:
    assert row["severity"] == meant["sev"]
    assert row["source_file"] == meant["file"]
    assert row["source_line"] == meant["line"]
    if "msg" in meant:
        assert row["message"] == meant["msg"]
    assert meant.get("msg_contains", "") in row["raw"]
    stamp = re.search(r"[IWEF](\d{4}) (\d\d:\d\d:\d\d\.\d{6})", row["raw"])
    assert stamp is not None
    assert stamp.groups() == (meant["mmdd"], meant["time"])
    fields = orjson.loads(row["fields"])
    for field, value in meant.get("kv", {}).items():
        assert as_text(fields[field]) == value
    if "host" in meant:
        assert row["node"] == meant["host"]
    if meant.get("unit") == "kubelet":
        assert row["component"] == "kubelet"


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


@pytest.mark.parametrize("name", with_key("n_lines", "n_records"))
def test_number_of_records(told: Told, name: str) -> None:
    meant = expected(name)
    rows = records(told(name))
    if "n_records" in meant:
        assert (
            len([r for r in rows if r["severity"] or name.startswith("67")]) == meant["n_records"]
        )
    if "n_lines" in meant and not name.startswith(("41", "46")):
        assert sum(r["raw"].count("\n") + 1 for r in rows) == meant["n_lines"]
    if "n_lines" in meant and name.startswith(("41", "46")):
        assert len(headed(told(name))) == meant["n_lines"]  # comments and prompts do not count
    if "continuation_lines" in meant:
        assert sum(r["raw"].count("\n") for r in rows) >= meant["continuation_lines"]


@pytest.mark.parametrize("name", [n for n in ALL if not n.startswith(("10", "65", "80"))])
def test_truncated_lines_are_told(told: Told, name: str) -> None:
    meant = expected(name)
    cut = meant.get("truncated_lines", []) if isinstance(meant, dict) else []
    assert cut_lines(told(name)) == cut


@pytest.mark.parametrize(("name", "place"), PENDING)
def test_pending(told: Told, name: str, place: int) -> None:
    meant = expected(name)
    verdict = meant[place] if isinstance(meant, list) else meant
    attempts = told(name).query("attempts").filter(pl.col("verdict") == "unschedulable")
    found = [
        row
        for row in attempts.iter_rows(named=True)
        if row["nodes_total"] == verdict["total_nodes"]
        and reasons(told(name), row["attempt_id"]) == verdict["reasons"]
    ]
    assert len(found) == 1
    if "pod" in verdict:
        assert f"{found[0]['namespace']}/{found[0]['pod']}" == verdict["pod"]


@pytest.mark.parametrize("name", with_key("bindings"))
def test_bindings(told: Told, name: str) -> None:
    bound = told(name).query("attempts").filter(pl.col("verdict") == "bound").sort("at")
    rows = [
        [f"{r['namespace']}/{r['pod']}", r["node"], r["nodes_evaluated"], r["nodes_feasible"]]
        for r in bound.iter_rows(named=True)
    ]
    assert rows == expected(name)["bindings"]


def test_04_no_nodes_registered_is_one_attempt_with_its_event(told: Told) -> None:
    trace = told("04_docker_timestamp_prefix_k8s17.log")
    row = trace.query("attempts").row(0, named=True)
    assert trace.query("attempts").height == 1
    assert f"{row['namespace']}/{row['pod']}" in expected(ALL[0])["pending"]
    assert (row["verdict"], row["message"]) == (
        "unschedulable",
        "no nodes available to schedule pods",
    )
    # The outer stamp gives year and zone of the header.
    assert row["at"].isoformat() == "2017-09-22T12:23:11.527958+00:00"
    assert headed(trace)[0]["at_certainty"] == "observed"
    event = trace.query("events").row(0, named=True)
    assert (event["reason"], event["name"]) == ("FailedScheduling", "pod-a-3067162316-k8jw4")


def test_07_fields_of_the_sixth_line(told: Told) -> None:
    name = "07_structured_success_k8s126.log"
    fields = orjson.loads(headed(told(name))[5]["fields"])
    assert {k: str(v) for k, v in fields.items()} == expected(name)["kv_line6"]
    assert told(name).query("moves").height == 0  # "Delete event for unscheduled pod" is none


def test_08_log_viewer_times(told: Told) -> None:
    found = headed(told("08_0_of_315_taints_kibana_reversed.log"))
    assert [r["at"].year for r in found] == [2021, 2021]
    assert found[0]["severity"] == "W"


def test_10_the_lost_event_is_an_event_and_told(told: Told) -> None:
    trace = told("10_event_rejected_go_struct.log")
    event = trace.query("events").row(0, named=True)
    assert (event["namespace"], event["name"]) == ("ns-b", "pod-b-0")
    assert event["message"].startswith("0/12 nodes are available: ")
    assert "EVENT_LOST" in trace.query("diagnostics")["code"].to_list()
    assert cut_lines(trace) == [2]


def test_11_body_line_and_status_are_kept(told: Told) -> None:
    found = headed(told("11_line_numbers_sample_list_k8s120.log"))
    assert found[5]["message"].endswith("&{2 [] <nil>}")
    assert [r["record_no"] for r in found] == list(range(1, 8))


def test_14_taint_of_a_go_struct_is_in_the_message(told: Told) -> None:
    taint = expected("14_ca_go_struct_taints.log")["taint"]
    words = f'Key:"{taint["key"]}", Value:"{taint["value"]}", Effect:"{taint["effect"]}"'
    assert words in headed(told("14_ca_go_struct_taints.log"))[4]["message"]


@pytest.mark.parametrize("name", with_key("pods_line3", "pods_each_of_first_six"))
def test_pods_of_the_kubelets_list(told: Told, name: str) -> None:
    found = [r["pods"] for r in headed(told(name))]
    meant = expected(name)
    if "pods_line3" in meant:
        assert orjson.loads(found[2]) == meant["pods_line3"]
    else:
        assert [orjson.loads(pods) for pods in found[:6]] == [meant["pods_each_of_first_six"]] * 6
        assert [orjson.loads(pods) for pods in found[6:]] == [["ns-a/pod-a"]] * 2


def test_37_orphan_fragment(told: Told) -> None:
    assert records(told("37_kubelet_structured_journald_us.log"))[0]["severity"] is None


def test_38_order_of_the_file_is_kept(told: Told) -> None:
    name = "38_kubelet_windows_equal_times.log"
    found = records(told(name))
    back = [i + 1 for i in range(1, 6) if found[i]["at"] < found[i - 1]["at"]]
    assert back == expected(name)["non_monotonic"]


@pytest.mark.parametrize("name", with_key("year_hint"))
def test_year_of_a_trace(told: Told, name: str) -> None:
    assert headed(told(name))[0]["at"].year == expected(name)["year_hint"]


def test_41_restart_shows_as_another_process(told: Told) -> None:
    name = "41_kubelet_blocked_pod_worker.log"
    threads = told(name).query("SELECT DISTINCT thread FROM log_lines_rows WHERE thread > 0")
    assert sorted(threads["thread"], reverse=True) == expected(name)["restart"]


def test_43_cancelled_deletion_is_an_event_and_no_move(told: Told) -> None:
    trace = told("43_event_occurred_cancel.log")
    event = trace.query("events").row(0, named=True)
    assert (event["reason"], event["kind"]) == ("TaintManagerEviction", "Pod")
    assert event["message"].startswith("Cancelling deletion of Pod ")
    assert trace.query("moves").height == 0


def test_44_text_with_pairs_is_not_structured(told: Told) -> None:
    found = headed(told("44_hyperkube_cm_k8s16.log"))
    assert {r["fields"] for r in found} == {"{}"}
    assert 'nodeName="10.0.0.20"  does not' in found[3]["message"]


def test_46_each_fatal_line_is_a_restart(told: Told) -> None:
    name = "46_fatal_scheduler_cache.log"
    assert [r["severity"] for r in headed(told(name))] == ["F"] * expected(name)["restarts"]


def test_47_stacks_belong_to_the_fatal_record(told: Told) -> None:
    name = "47_fatal_with_goroutine_dump.log"
    lines = headed(told(name))[2]["raw"].splitlines()
    assert len(lines) - 1 == expected(name)["continuation_lines"]


def test_50_trace_steps_belong_to_the_record(told: Told) -> None:
    name = "50_scheduling_trace_k8s114.log"
    (row,) = records(told(name))
    assert f"(total time: {expected(name)['total_ms']}ms)" in row["message"]
    assert row["raw"].count("\nTrace[1260452793]: ") == 4


def test_53_values_that_are_json(told: Told) -> None:
    found = headed(told("53_malformed_structured.log"))
    assert orjson.loads(found[1]["fields"])["remainingDevices"][0]["devmem"] == 32768


def test_55_queue_moves(told: Told) -> None:
    name = "55_queue_moves.log"
    fields = [orjson.loads(r["fields"]) for r in headed(told(name))]
    assert [[f["event"], f["queue"]] for f in fields] == expected(name)["moves"]


def test_56_keys_with_a_space(told: Told) -> None:
    name = "56_ktesting_and_space_keys.log"
    keys = {key for r in headed(told(name)) for key in orjson.loads(r["fields"])}
    assert set(expected(name)["space_keys"]) <= keys
    first = headed(told(name))[0]
    assert (first["source_file"], first["message"]) == ("framework.go", "Plugin failed")


def test_58_pairs_behind_a_block(told: Told) -> None:
    name = "58_multiline_value_lt.log"
    fields = orjson.loads(headed(told(name))[1]["fields"])
    assert expected(name)["kv_record2"].items() <= fields.items()
    assert fields["err"].endswith(' > not the end marker, this line starts with TAB space gt"')


def test_64_offset_is_measured(told: Told) -> None:
    name = "64_docker_json_kubelet_localtime.jsonl"
    (offset,) = told(name).query("SELECT utc_offset_seconds FROM log_clocks_rows").row(0)
    assert offset == expected(name)["utc_offset_hours"] * 3600
    assert headed(told(name))[0]["at"].isoformat() == "2017-09-26T11:59:07.162477+00:00"


def test_65_text_and_broken_wrapping(told: Told) -> None:
    name = "65_docker_json_mixed_plain.jsonl"
    found = records(told(name))
    assert [r["record_no"] for r in found if not r["severity"]] == expected(name)["non_klog_lines"]
    frame = told(name).query("SELECT position FROM diagnostics_rows WHERE source_id <> ''")
    assert frame["position"].to_list() == expected(name)["invalid_json_lines"]
    assert [r["at"].year for r in found] == [2021, 2021, 2021, 2022, 2021]


def test_67_loggers_that_are_no_scheduler(told: Told) -> None:
    found = records(told("67_other_json_loggers.jsonl"))
    meant = expected("67_other_json_loggers.jsonl")["karpenter"]
    assert orjson.loads(found[0]["fields"])["pod"] == meant["pod"]
    for pool, words in meant["nodepools"].items():
        assert f'nodepool "{pool}"' in found[0]["message"]
        assert found[0]["message"].endswith(words)
    assert [r["severity"] for r in found] == ["E", "I", "E", "I", "E"]
    assert [r["at"].year for r in found] == [2024, 2024, 2023, 2019, 2023]
    assert {r["component"] for r in found} == {None}
    assert told("67_other_json_loggers.jsonl").query("attempts").height == 0


def test_77_dirt_around_and_in_lines(told: Told) -> None:
    name = "77_ansi_crlf_nonutf8.bin"
    found = headed(told(name))
    assert [r["severity"] for r in found] == expected(name)["severities"]
    key = expected(name)["kv_line5"]["key"]
    assert orjson.loads(found[4]["fields"])["key"] == key
    assert "LOG_NOT_UTF8" in told(name).query("diagnostics")["code"].to_list()


def test_80_years_and_names_of_a_log_file(told: Told) -> None:
    name = "80_kube-scheduler.node-1.root.log.INFO.20191231-235958.4321.gz"
    found = headed(told(name))
    assert sorted({r["at"].year for r in found}) == expected(name)["years"]
    assert {(r["component"], r["node"]) for r in found} == {("kube-scheduler", "node-1")}


def test_severity_files_of_one_log_count_once(tmp_path: Path) -> None:
    """glog and klog write a warning to the INFO file, too.

    Source: klog_file.go, klog.go output().
    """
    lines = [
        "I1231 23:59:58.900001    4321 serving.go:319] Generated self-signed cert in-memory",
        "W1231 23:59:59.999999    4321 authorization.go:47] Authorization is disabled",
    ]
    for severity, kept in (("INFO", lines), ("WARNING", lines[1:])):
        path = tmp_path / f"kube-scheduler.n.root.log.{severity}.20191231-235958.4321"
        path.write_text("".join(f"{line}\n" for line in kept))
    trace = tracekit.open(tmp_path / "store")
    assert [s.stored for s in trace.collect(*sorted(tmp_path.glob("kube*")))] == [2, 0]


def test_json_log_tells_attempts_and_what_it_covers(tmp_path: Path) -> None:
    line = (
        '{"ts":1796141959935.9812,"caller":"scheduler/schedule_one.go:1239",'
        '"msg":"Unable to schedule pod; no fit; waiting","pod":{"name":"b","namespace":"a"},'
        '"v":2,"err":"0/3 nodes are available: 3 Insufficient cpu."}\n'
    )
    path = tmp_path / "kube-scheduler.log"
    path.write_text(line)
    trace = tracekit.open(tmp_path / "store")
    list(trace.collect(path))
    trace.replay()
    row = trace.query("attempts").row(0, named=True)
    assert (row["namespace"], row["pod"], row["nodes_total"], row["sources"]) == (
        "a",
        "b",
        3,
        "log",
    )
    coverage = trace.query("log_coverage").row(0, named=True)
    assert (coverage["component"], coverage["lines"], coverage["verbosity"]) == (
        "kube-scheduler",
        1,
        2,
    )
    assert "bindings" in coverage["answers"]
    assert "every attempt" not in coverage["answers"]
