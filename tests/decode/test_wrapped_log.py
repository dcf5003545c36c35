"""Logs in wrappings in, the records their writers had out.

Layouts are those of kubelet, docker, systemd, stern, minikube and MicroShift as the modules of
``decode/wrappers`` cite them; what each line means is read off the line itself.
"""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest

from tests.recordings import Recordings
from tracekit.decode import decoder_for, parse_fields
from tracekit.decode.klog import KlogSession
from tracekit.decode.wrapped_log import LooseLogDecoder, WrappedLogDecoder, WrappedLogSession
from tracekit.model.diagnostics import Diagnostic

HEAD = "0206 00:04:05.930901       1 schedule_one.go:826] "
BIND = f'I{HEAD}"Successfully bound pod to node" pod="a/b" node="n1"'
NO_FIT = (
    f'I{HEAD}"Unable to schedule pod; no fit; waiting" pod="a/b" err="0/5 nodes are available."'
)
CRI = "2021-02-06T00:04:05.931087621Z stderr F "
JOURNAL = "Feb 06 00:04:05 host-1 kubelet[735]: "
WRAPPED_US = 1_612_569_845_931_087


def read(
    text: str, block: int = 1 << 20
) -> tuple[pl.DataFrame, list[Diagnostic], dict[str, str | int | None]]:
    session = WrappedLogSession(block_bytes=block)
    batches = [session.parse(chunk) for chunk in session.split(io.BytesIO(text.encode()))]
    frame = pl.concat([b.frame for b in batches]).sort("record_no")
    return frame, [d for b in batches for d in b.diagnostics], session.facts()


def rows(text: str) -> list[dict[str, Any]]:
    return read(text)[0].to_dicts()


def lines_kept(text: str) -> None:
    """Each line with words is in the raw text of exactly one record."""
    frame, _, _ = read(text)
    kept = sorted(line for raw in frame["raw"] for line in raw.split("\n") if line.strip())
    assert kept == sorted(line for line in text.split("\n") if line.strip())


def instant(us: int) -> datetime:
    return datetime.fromtimestamp(us / 1_000_000, UTC)


WRAPPINGS = {
    "cri": CRI + "{}",
    "cri without a tag, before 1.10": "2021-02-06T00:04:05.931087621Z stderr {}",
    "kubectl logs --timestamps": "2021-02-06T00:04:05.931087621Z {}",
    "local offset": "2021-02-06T08:04:05.931087621+08:00 stderr F {}",
    "stern behind timestamps": "kube-scheduler-m1 kube-scheduler 2021-02-06T00:04:05.931087Z {}",
    "journald short-iso-precise": "2021-02-06T00:04:05.931087+0000 host-1 kubelet[735]: {}",
    "journald short-full": "Sat 2021-02-06 00:04:05.931087 UTC host-1 kubelet[735]: {}",
}
UNDATED = {
    "journald short": JOURNAL + "{}",
    "journald short-precise": "Feb 06 00:04:05.931087 host-1 kubelet[735]: {}",
    "journald in Japanese": "2月 06 00:04:05 host-1 kubelet[735]: {}",
    "journald in German": "Feb 06 00:04:05 host-1 kube-scheduler[735]: {}",
    "stern": "kube-scheduler-m1 kube-scheduler {}",
    "stern in colour": "\x1b[36mkube-scheduler-m1 \u203a kube-scheduler\x1b[0m {}",
    "kubetail": "[kube-scheduler-m1 kube-scheduler] {}",
    "kubectl logs --prefix": "[pod/kube-scheduler-m1/kube-scheduler] {}",
    "docker compose": "kube-scheduler-1  | {}",
    "minikube's bullet": "* {}",
    "MicroShift": "kube-scheduler {}",
    "MicroShift, unknown": "??? {}",
    "journald in Chinese": "2月 06 00:04:05 host-1 kubelet[735]: {}",
    "journald, first letter lost": "eb 06 00:04:05 host-1 kubelet[735]: {}",
    "grep": "kube-scheduler.log:{}",
    "grep -n": "/var/log/kube-scheduler.log:254:{}",
    "grep -n of one file": "254:{}",
    "editor, line of context": "  252  {}",
    "log viewer": "   log: {}",
    "indented": "    {}",
    "k9s table": "\u2502 {}                 \u2502",
}


@pytest.mark.parametrize("shape", [*WRAPPINGS.values(), *UNDATED.values()], ids=str)
def test_record_is_that_of_the_bare_log(shape: str) -> None:
    text = "".join(shape.format(line) + "\n" for line in (BIND, NO_FIT))
    assert decoder_for(text.encode(), path="x", forced=None).name == "wrapped-log"
    session = KlogSession()
    bare = [
        session.parse(c).frame for c in session.split(io.BytesIO(f"{BIND}\n{NO_FIT}\n".encode()))
    ]
    frame, damage, _ = read(text)
    told = ("record_no", "severity", "thread", "caller", "message", "structured")
    assert frame.select(told).to_dicts() == bare[0].select(told).to_dicts()
    assert frame["raw"].to_list() == text.splitlines()
    assert [parse_fields(b) for b in frame["body"]] == [parse_fields(r) for r in bare[0]["raw"]]
    assert damage == []


@pytest.mark.parametrize("shape", WRAPPINGS.values(), ids=WRAPPINGS)
def test_wrapping_tells_the_time(shape: str) -> None:
    assert rows(shape.format(BIND) + "\n")[0]["wrapped_at"] == instant(WRAPPED_US)


@pytest.mark.parametrize("shape", UNDATED.values(), ids=UNDATED)
def test_wrapping_without_year_tells_no_instant(shape: str) -> None:
    assert rows(shape.format(BIND) + "\n")[0]["wrapped_at"] is None


@pytest.mark.parametrize(
    ("shape", "component", "node"),
    [
        (UNDATED["stern"], "kube-scheduler", "m1"),
        (UNDATED["kubectl logs --prefix"], "kube-scheduler", "m1"),
        (UNDATED["kubetail"], "kube-scheduler", "m1"),
        (UNDATED["journald short"], "kubelet", "host-1"),
        ("Feb 06 00:04:05 h microk8s.daemon-scheduler[1]: {}", "kube-scheduler", "h"),
        # One process for all: the file that logged tells which part it was.
        ("Feb 06 00:04:05 h microk8s.daemon-kubelite[1]: {}", "kube-scheduler", "h"),
        ("Feb 06 00:04:05 h k3s[1]: {}", "kube-scheduler", "h"),
        (UNDATED["MicroShift"], "kube-scheduler", None),
        ("cluster-autoscaler-7f8d9c6b5-abcde cluster-autoscaler {}", "cluster-autoscaler", None),
        ("kube-proxy-x7k2p kube-proxy {}", "kube-proxy", None),
        (CRI + "{}", None, None),
    ],
)
def test_wrapping_names_the_writer(shape: str, component: str | None, node: str | None) -> None:
    row = rows(shape.format(BIND) + "\n")[0]
    assert row["component"] == (component if component else "kube-scheduler")
    assert row["node"] == node


def test_docker_json() -> None:
    record = {"log": f"{BIND}\n", "stream": "stderr", "time": "2021-02-06T00:04:05.931087621Z"}
    row = rows(json.dumps(record) + "\n")[0]
    assert (row["body"], row["wrapped_at"]) == (BIND, instant(WRAPPED_US))


def test_docker_splits_long_lines_at_16_kib() -> None:
    def part(text: str, stream: str = "stderr") -> str:
        return json.dumps({"log": text, "stream": stream, "time": "2021-02-06T00:04:05.9Z"}) + "\n"

    long = f'{BIND[:-1]}{"x" * 40_000}"'
    cut = [long[:16384], long[16384:32768], f"{long[32768:]}\n"]
    text = part(cut[0]) + part("between\n", "stdout") + part(cut[1]) + part(cut[2])
    found = rows(text)
    assert [r["body"] for r in found] == [long, "between"]
    lines_kept(text)


@pytest.mark.parametrize(
    "record",
    [
        {"@timestamp": "2021-02-06T00:04:05.931087Z", "log": BIND, "kubernetes": {
            "pod_name": "kube-scheduler-m1", "container_name": "kube-scheduler", "host": "m1"}},
        {"__REALTIME_TIMESTAMP": "1612569845931087", "_HOSTNAME": "m1", "MESSAGE": BIND,
         "_SYSTEMD_UNIT": "kube-scheduler.service"},
        {"textPayload": BIND, "timestamp": "2021-02-06T00:04:05.931087621Z"},
    ],
)  # fmt: skip
def test_json_of_log_collectors(record: dict[str, Any]) -> None:
    row = rows(json.dumps(record) + "\n")[0]
    assert (row["body"], row["wrapped_at"]) == (BIND, instant(WRAPPED_US))
    assert row["component"] == "kube-scheduler"


def test_partial_lines_are_joined_by_stream() -> None:
    text = (
        f"{CRI.replace(' F ', ' P ')}{NO_FIT[:90]}\n"
        "2021-02-06T00:04:05.931087621Z stdout F between\n"
        f"{CRI.replace(' F ', ' P:x ')}{NO_FIT[90:100]}\n"
        f"{CRI}{NO_FIT[100:]}\n"
    )
    found = rows(text)
    assert [r["body"] for r in found] == [NO_FIT, "between"]
    lines_kept(text)


@pytest.mark.parametrize(
    ("text", "codes"),
    [("Hello from init container!", []), (f"{BIND[:-3]}{'x' * 16300}", ["LOG_RECORD_CUT"] * 2)],
)
def test_partial_line_at_the_end(text: str, codes: list[str]) -> None:
    """A last line without a newline is written as partial; only a full buffer is a cut."""
    frame, damage, _ = read(f"{CRI.replace(' F ', ' P ')}{text}\n")
    assert frame["body"].to_list() == [text]
    assert [d.code for d in damage] == codes


MULTILINE = [
    'I0603 10:22:33.000001       1 configfile.go:105] "Using component config" config=<',
    "\tapiVersion: kubescheduler.config.k8s.io/v1",
    "\tkind: X I0603 10:22:33.000001       1 a.go:1] quoted",
    ' > after="x"',
    'I0603 10:22:34.000001       1 trace.go:236] Trace[1]: "Scheduling" (total time: 101ms):',
    'Trace[1]: ---"Computing predicates done" 100ms (10:22:34.000)',
    "Trace[1]: [101ms] [1ms] END",
    "F0603 10:22:35.000001       1 cache.go:291] Schedulercache is corrupted",
    "goroutine 157 [running]:",
    "k8s.io/kubernetes/vendor/github.com/golang/glog.stacks(0xc4202fd800, 0xc42134a000)",
    "\t/go/src/glog.go:766 +0xa5",
    "created by k8s.io/kubernetes/pkg/scheduler.(*ConfigFactory).Run",
    "\t/go/src/factory.go:330 +0x5e",
    "goroutine 1 [sleep]:",
    "time.Sleep(0x3b9aca00)",
    "\t/usr/local/go/src/runtime/time.go:59 +0xf9",
]


@pytest.mark.parametrize(
    "shape",
    [CRI + "{}", JOURNAL + "{}", UNDATED["stern"], UNDATED["minikube's bullet"], UNDATED["grep"],
     "2021-02-06T00:04:05.931087621Z {}"],
)  # fmt: skip
def test_records_of_many_lines_are_joined(shape: str) -> None:
    text = "".join(shape.format(line) + "\n" for line in MULTILINE)
    found = rows(text)
    assert [r["body"].count("\n") for r in found] == [3, 2, 8]
    assert parse_fields(found[0]["body"])["after"] == "x"
    lines_kept(text)


@pytest.mark.parametrize("outer", ["", JOURNAL.replace("kubelet", "microshift"), CRI])
def test_continuation_without_the_prefix(outer: str) -> None:
    """MicroShift writes the component on the header only."""
    text = "".join(
        outer + (f"kube-scheduler {line}" if line[:1] in "IF" else line) + "\n"
        for line in MULTILINE
    )
    found = rows(text)
    assert [r["body"].count("\n") for r in found] == [3, 2, 8]
    assert {r["component"] for r in found} == {"kube-scheduler"}
    lines_kept(text)


def test_blocks_do_not_change_rows() -> None:
    text = "".join(f"{CRI}{line}\n" for line in MULTILINE * 20)
    whole = read(text)[0]
    for block in (1, 100, 1000):
        assert read(text, block)[0].equals(whole)


def test_sections_name_the_component() -> None:
    text = (
        f"* ==> kube-scheduler [c6f1f8a3] <==\n* {BIND}\n*\n"
        f"* ==> kubelet <==\n* -- Logs begin at Sat 2021-02-06 --\n* {JOURNAL}{BIND}\n"
        f"\n==> /var/log/kube-controller-manager.log <==\n{BIND}\n"
    )
    found = [r for r in rows(text) if r["severity"]]
    assert [r["component"] for r in found] == [
        "kube-scheduler",
        "kubelet",
        "kube-controller-manager",
    ]


def test_log_viewer_newest_first() -> None:
    text = (
        f"   log: {NO_FIT}\n   log_time: 2021-02-06T00:04:05.931087580+00:00\n\n"
        f"   log: {BIND}\n   log_time: 2021-02-06T00:04:04.931087580+00:00\n"
    )
    found = rows(text)
    assert [r["wrapped_at"] for r in found] == [
        instant(WRAPPED_US),
        instant(WRAPPED_US - 1_000_000),
    ]


def test_plain_lines_between_stay_and_keep_their_time() -> None:
    text = f"{CRI}Flag --x has been deprecated.\n{CRI}{BIND}\n{CRI}Error: no config\n"
    found = rows(text)
    assert [r["severity"] for r in found] == [None, "I", None]
    assert found[2]["message"] == "Error: no config"
    assert found[2]["wrapped_at"] == instant(WRAPPED_US)


def test_comments_and_prompts_do_not_belong_to_records() -> None:
    text = f"$ journalctl -u kubelet\n{JOURNAL}{BIND}\n\n# then it restarted\n{JOURNAL}{BIND}\n"
    found = rows(text)
    assert [r["severity"] for r in found] == [None, "I", None, "I"]
    assert [r["body"] for r in found if r["severity"]] == [BIND, BIND]


def test_year_of_each_record_is_that_of_its_wrapping() -> None:
    def line(day: str, at: str) -> str:
        return f"{at} stderr F I{day} 10:00:00.000000       1 a.go:1] x\n"

    text = (
        line("1231", "2019-12-31T10:00:00Z")
        + line("0215", "2022-02-15T10:00:00Z")
        + line("0610", "2021-06-10T10:00:00Z")
        # The zone is half a day ahead: the header is in the new year, the wrapping is not.
        + line("0101", "2022-12-31T21:00:00Z")
    )
    steps = [r["stamp_us"] // (1461 * 86_400_000_000) for r in rows(text)]
    assert steps == [0, 3, 2, 4]


@pytest.mark.parametrize(
    ("line", "severity", "at", "fields"),
    [
        # karpenter, controller-runtime, zap in seconds, zap console, logrus: sample 67, 68.
        ('{"level":"ERROR","time":"2024-04-03T06:40:04.552Z","logger":"c","message":"m","pod":"a/b"}',
         "E", "2024-04-03T06:40:04.552Z", {"logger": "c", "pod": "a/b"}),
        ('{"level":"Level(-2)","ts":"2024-12-09T21:21:39.997158Z","caller":"s/a.go:5","msg":"m","n":1}',
         "I", "2024-12-09T21:21:39.997158Z", {"n": 1}),
        ('{"level":"info","ts":1576762653.0310497,"caller":"s/a.go:5","msg":"m"}',
         "I", "2019-12-19T13:37:33.031050Z", {}),
        ('manager {"level":"warn","ts":"2023-06-01T14:50:36Z","msg":"m"}',
         "W", "2023-06-01T14:50:36Z", {}),
        ('2023-10-05T05:31:23.571Z\tERROR\tc.p\tm\t{"pod": "a/b"}',
         "E", "2023-10-05T05:31:23.571Z", {"logger": "c.p", "pod": "a/b"}),
        ('time="2024-04-22T09:36:00Z" level=debug msg="m" node=n-2 vols=',
         "I", "2024-04-22T09:36:00Z", {"node": "n-2", "vols": ""}),
        # klog's own JSON inside a wrapping is in milliseconds.
        (CRI + '{"ts":1612569845931.0876,"caller":"s/a.go:5","msg":"m","v":2,'
         '"pod":{"name":"b","namespace":"a"}}',
         "I", "2021-02-06T00:04:05.931087Z", {"pod": "a/b"}),
    ],
)  # fmt: skip
def test_other_loggers(line: str, severity: str, at: str, fields: dict[str, Any]) -> None:
    row = rows(f"{line}\n")[0]
    assert (row["severity"], row["message"]) == (severity, "m")
    assert row["wrapped_at"] == datetime.fromisoformat(at)
    assert parse_fields(row["body"] or row["raw"]) == fields


def test_ktesting() -> None:
    """Source: klog buffer.go SprintHeader; the message is not quoted, a logger stands before."""
    row = rows(
        '    framework.go:1280: E0831 20:03:47.184243] R/D: Plugin failed err="x \\"y\\"" n=1\n'
    )[0]
    told = (row["severity"], row["caller"], row["thread"], row["message"], row["structured"])
    assert told == ("E", "framework.go:1280", None, "Plugin failed", True)
    assert parse_fields(row["body"]) == {"logger": "R/D", "err": 'x "y"', "n": 1}


@pytest.mark.parametrize(
    ("last", "is_cut"),
    [
        (f"{JOURNAL}I0206", True),
        (f"{JOURNAL}I0206 00:04:05.930901", True),
        (f'{JOURNAL}I{HEAD}"Unable', True),
        (f'{JOURNAL}I{HEAD}"m" pods=["a/b","c', True),
        (f'{JOURNAL}I{HEAD}SyncLoop (ADD, "api"): "pod-a_ns(1), pod', True),
        (f"{JOURNAL}I{HEAD}Unable to schedul", True),
        (f"{JOURNAL}I{HEAD}all is said", False),
        (f"{JOURNAL}{BIND}", False),
    ],
)
def test_cut_last_line(last: str, is_cut: bool) -> None:
    _, damage, _ = read(f"{JOURNAL}{BIND}\n{last}\n")
    assert [(d.code, d.position) for d in damage] == [("LOG_RECORD_CUT", 2)] * is_cut


def test_lines_cut_at_the_width_of_a_screen() -> None:
    def cut(text: str) -> str:
        return f"{JOURNAL}I{HEAD}{text}"[:160] + "\n"

    text = (
        f"{JOURNAL}I{HEAD}short\n"
        + cut(f'a "{"x" * 200}')
        + cut(f"b {'y ' * 99}")
        + f"{JOURNAL}{BIND}\n"
    )
    _, damage, _ = read(text)
    assert [d.position for d in damage] == [2, 3]


def test_damaged_docker_line_keeps_its_text() -> None:
    text = '{"log":"I0610 08:29:07.698664 Waiting for caches\\n", "time:"2021-06-10T08:29:07.6Z"}\n'
    frame, damage, _ = read(text)
    assert frame["message"].to_list() == ["Waiting for caches"]
    assert [d.code for d in damage] == ["LOG_WRAPPER_DAMAGED"]


@pytest.mark.parametrize(
    "head",
    [
        f"{BIND}\n{NO_FIT}\n".encode(),
        "\n".join(MULTILINE).encode(),
        b'{"kind":"List","items":[]}\n',
        b"Log file created at: 2019/12/31 23:59:58\nRunning on machine: n\n" + BIND.encode(),
    ],
)
def test_other_formats_are_refused(head: bytes) -> None:
    assert not WrappedLogDecoder().recognises(head)


@pytest.mark.parametrize(
    ("head", "is_log"),
    [
        (b"2019-03-01 11:37:42.600462 I | etcdserver: starting\n", True),
        (b"the quick brown fox\n", False),
        (b"\x7fELF\x02\x01\x01 2019-03-01 11:37:42 \x05\x06\x07\x08\x0e\x0f", False),
    ],
)
def test_last_resort_takes_what_looks_like_a_log(head: bytes, is_log: bool) -> None:
    assert LooseLogDecoder().recognises(head) is is_log


def test_wrapped_recording_gives_the_records_of_the_bare_one(recordings: Recordings) -> None:
    lines = (recordings("seed") / "kube-scheduler.log").read_text().splitlines()
    session = KlogSession()
    plain = "".join(f"{line}\n" for line in lines)
    bare = pl.concat(session.parse(c).frame for c in session.split(io.BytesIO(plain.encode())))
    frame, damage, _ = read("".join(f"{CRI}{line}\n" for line in lines))
    told = [c for c in bare.columns if c not in {"raw", "stamp_us"}]
    assert frame.select(told).equals(bare.select(told))
    assert frame["body"].to_list() == bare["raw"].to_list()
    assert damage == []
