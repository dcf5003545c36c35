"""What one workload or one damaged line can do: its own row, never the whole record."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

import tracekit
from tracekit.model.options import CollectSummary
from tracekit.pipeline.trace import Trace

JSON = Mapping[str, Any]
PASSWORD = "correct horse battery staple"
ENCODED = base64.b64encode(PASSWORD.encode()).decode()


def _line(key: str, value: JSON | bytes, revision: int, previous: JSON | None = None) -> bytes:
    def pack(content: JSON | bytes) -> str:
        raw = content if isinstance(content, bytes) else orjson.dumps(content)
        return base64.b64encode(raw).decode()

    event: dict[str, Any] = {
        "kv": {
            "key": base64.b64encode(key.encode()).decode(),
            "mod_revision": revision,
            "create_revision": revision,
            "version": 1,
            "value": pack(value),
        }
    }
    if previous is not None:
        event["prev_kv"] = {"key": event["kv"]["key"], "value": pack(previous)}
    return orjson.dumps({"Header": {"cluster_id": 1, "revision": revision}, "Events": [event]})


def _object(kind: str, name: str, api_version: str = "v1", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "n", "uid": f"uid-{name}"}
    metadata |= {"creationTimestamp": "2026-12-01T16:00:00Z", **more.pop("metadata", {})}
    return {"kind": kind, "apiVersion": api_version, "metadata": metadata, **more}


def _pod(name: str, requests: JSON, node: str | None = None, **more: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "c", "resources": {"requests": requests}}]}
    if node:
        spec["nodeName"] = node
    return _object("Pod", name, spec=spec, status={"phase": "Pending"}, **more)


GOOD = _pod("good", {"cpu": "100m"})


def _replayed(folder: Path, *lines: bytes) -> tuple[Trace, list[CollectSummary]]:
    path = folder / "watch.json"
    path.write_bytes(b"\n".join([*lines, _line("/registry/pods/n/good", GOOD, 900)]) + b"\n")
    trace = tracekit.open(folder / "store")
    summaries = list(trace.collect(path))
    trace.replay()
    return trace, summaries


@pytest.mark.parametrize(
    "requests",
    [{"cpu": "1E"}, {"cpu": "10P"}, {"memory": "7Ei"}, {"cpu": "1e999999999"}, {"cpu": "1" * 5000},
     {"memory": "0." + "0" * 5000 + "1"}, {"example.com/x": "-9" + "9" * 30}],
)  # fmt: skip
def test_a_request_beyond_64_bits_is_cut_off(tmp_path: Path, requests: JSON) -> None:
    node = _object("Node", "big", status={"allocatable": {**requests, "pods": "10"}})
    trace, _ = _replayed(
        tmp_path,
        _line("/registry/minions/big", node, 10),
        *(
            _line(f"/registry/pods/n/p{i}", _pod(f"p{i}", requests, "big"), 20 + i)
            for i in range(3)
        ),
    )
    assert trace.query("bindings").height == 3
    assert trace.query("node_balance").height > 0
    assert trace.query("pod_revisions").filter(pod="good").height == 1
    trace.state_at(900)


@pytest.mark.parametrize("grace", [10**11, 2**62, -(10**12), "x"])
def test_a_grace_beyond_the_calendar_stops_nothing(tmp_path: Path, grace: Any) -> None:
    doomed = {"deletionTimestamp": "2026-12-01T16:00:05Z", "deletionGracePeriodSeconds": grace}
    trace, _ = _replayed(
        tmp_path,
        _line("/registry/pods/n/p", _pod("p", {}, "n1"), 10),
        _line("/registry/pods/n/p", _pod("p", {}, "n1", metadata=doomed), 11),
    )
    assert trace.query("pod_revisions").filter(pod="good").height == 1


@pytest.mark.parametrize("version", ["9" * 30, str(2**63), "9" * 5000, "-1", "x", 7])
def test_an_events_resource_version_is_free_text(tmp_path: Path, version: Any) -> None:
    event = _object("Event", "e", reason="Scheduled", eventTime="2026-12-01T16:00:01.000000Z",
                    involvedObject={"kind": "Pod", "namespace": "n", "name": "good",
                                    "uid": "uid-good", "resourceVersion": version})  # fmt: skip
    trace, _ = _replayed(tmp_path, _line("/registry/events/n/e", event, 10))
    assert trace.query("pod_revisions").filter(pod="good").height == 1


@pytest.mark.parametrize("spec", [["a"], "text", 5, {"replicas": "many"}, {"replicas": {}}])
def test_a_custom_resource_may_have_any_spec(tmp_path: Path, spec: Any) -> None:
    widget = _object("Widget", "w", "foo.io/v1", spec=spec)
    owned = _pod("owned", {}, metadata={"ownerReferences": [
        {"apiVersion": "foo.io/v1", "kind": "Widget", "name": "w", "uid": "uid-w",
         "controller": True}]})  # fmt: skip
    trace, _ = _replayed(
        tmp_path,
        _line("/registry/foo.io/widgets/n/w", widget, 10),
        _line("/registry/pods/n/owned", owned, 11),
    )
    assert trace.query("pod_revisions").height == 2


@pytest.mark.parametrize(
    "broken",
    [
        {"spec": ["a"]},
        {"spec": {"containers": {"name": "c"}}},
        {"spec": {"containers": [{"resources": {"requests": [1]}}]}},
        {"status": {"conditions": "none"}},
        {"status": {"conditions": [None]}},
        {"metadata": {"name": 5}},
        {"metadata": {"name": "b", "uid": ["u"], "namespace": "n"}},
        {"metadata": {"name": "b", "ownerReferences": [7]}},
        {"metadata": {"name": "b", "creationTimestamp": 5}},
        {"kind": ["Pod"]},
    ],
)
def test_a_misshapen_object_is_a_diagnostic(tmp_path: Path, broken: JSON) -> None:
    value = {**_object("Pod", "b", spec={}, status={}), **broken}
    trace, _ = _replayed(tmp_path, _line("/registry/pods/n/b", value, 10))
    assert trace.query("pod_revisions").filter(pod="good").height == 1
    assert "VALUE_UNREADABLE" in trace.query("diagnostics")["code"].to_list()


def _stored_text(trace: Trace) -> str:
    texts = [str(trace.query(f"SELECT * FROM {table}_rows").to_dicts())
             for table in ("objects", "diagnostics", "pod_states")]  # fmt: skip
    return " ".join(texts)


@pytest.mark.parametrize("cut", [(0.5, b"\n"), (0.7, b"\n"), (1, b"")])
def test_a_broken_secret_line_shows_none_of_it(tmp_path: Path, cut: tuple[float, bytes]) -> None:
    secret = _object("Secret", "s", data={"password": ENCODED * 8})
    line = _line("/registry/secrets/n/s", secret, 10)
    middle = int(len(line) * cut[0])
    trace, _ = _replayed(tmp_path, line[:middle] + cut[1] + line[middle:])
    told = _stored_text(trace)
    inner = base64.b64encode(orjson.dumps(secret)).decode()
    assert PASSWORD not in told
    assert ENCODED not in told
    assert not any(inner[i : i + 24] in told for i in range(0, len(inner) - 24, 3))


@pytest.mark.parametrize("missing", ["kind", "apiVersion"])
def test_a_secret_that_tells_no_kind_is_known_by_its_key(tmp_path: Path, missing: str) -> None:
    secret = _object("Secret", "s", stringData={"password": PASSWORD})
    del secret[missing]
    trace, _ = _replayed(tmp_path, _line("/registry/secrets/n/s", secret, 10))
    assert PASSWORD not in _stored_text(trace)


def test_a_secret_before_another_kind_is_hashed(tmp_path: Path) -> None:
    secret = _object("Secret", "s", stringData={"password": PASSWORD})
    trace, _ = _replayed(tmp_path, _line("/registry/x", _pod("p", {}), 10, previous=secret))
    assert PASSWORD not in _stored_text(trace)


def test_a_byte_order_mark_costs_nothing(tmp_path: Path) -> None:
    line = b"\xef\xbb\xbf" + _line("/registry/pods/n/p", _pod("p", {}), 10)
    _, (summary,) = _replayed(tmp_path, line)
    assert (summary.records, summary.diagnostics) == (2, 0)


def test_numbers_of_a_log_beyond_64_bits_stop_nothing(tmp_path: Path) -> None:
    big = "9" * 40
    log = tmp_path / "scheduler.log"
    log.write_text(
        f'I1201 16:00:00.000001       1 schedule_one.go:9] "Plugin scored node for pod" '
        f'pod="n/p" plugin="X" node="a" score={big}\n'
        f'I1201 16:00:00.000002       1 schedule_one.go:9] "Successfully bound pod to node" '
        f'pod="n/p" node="a" evaluatedNodes={big} feasibleNodes={big}\n'
    )
    trace = tracekit.open(tmp_path / "store")
    list(trace.collect(log))
    trace.replay()
    (attempt,) = trace.query("attempts").to_dicts()
    assert (attempt["verdict"], attempt["nodes_evaluated"]) == ("bound", None)


def test_an_open_quote_is_seen_in_one_pass(tmp_path: Path) -> None:
    # Each quote began a scan to the end once: 160 KB took 99 s. The test's own time is its bound.
    log = tmp_path / "scheduler.log"
    log.write_text('I1201 16:00:00.000001       1 a.go:1] "x" pod="' + '\\"' * 400_000 + "\n")
    trace = tracekit.open(tmp_path / "store")
    (summary,) = trace.collect(log)
    assert summary.records == 1
