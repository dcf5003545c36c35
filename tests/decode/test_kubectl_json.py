"""JSON that kubectl prints: lists, watches, objects behind each other, and their damage."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.decode.session import Decoded, decoded
from tracekit.decode.api_objects import etcd_key
from tracekit.decode.kubectl_json import KubectlJsonDecoder

# Source: kube-apiserver storage_factory.go; each of these is a key in the recordings.
NODE_LEASE = "/registry/leases/kube-node-lease/n"
POLICY = "/registry/networkpolicies/default/i"
KEYS = [
    (("v1", "Pod", "default", "a"), "/registry/pods/default/a"),
    (("v1", "Node", "", "n"), "/registry/minions/n"),
    (("v1", "Service", "default", "s"), "/registry/services/specs/default/s"),
    (("v1", "Endpoints", "default", "s"), "/registry/services/endpoints/default/s"),
    (("events.k8s.io/v1", "Event", "default", "e"), "/registry/events/default/e"),
    (("apps/v1", "Deployment", "default", "d"), "/registry/deployments/default/d"),
    (("coordination.k8s.io/v1", "Lease", "kube-node-lease", "n"), NODE_LEASE),
    (("scheduling.k8s.io/v1", "PriorityClass", "", "p"), "/registry/priorityclasses/p"),
    (("networking.k8s.io/v1", "Ingress", "default", "i"), "/registry/ingress/default/i"),
    (("networking.k8s.io/v1", "NetworkPolicy", "default", "i"), POLICY),
    (
        ("scheduling.x-k8s.io/v1alpha1", "PodGroup", "ns-a", "pg1"),
        "/registry/scheduling.x-k8s.io/podgroups/ns-a/pg1",
    ),
    (
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "c"),
        "/registry/apiextensions.k8s.io/customresourcedefinitions/c",
    ),
]  # fmt: skip


def pod(name: str, revision: str, **parts: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "n", "resourceVersion": revision, "uid": f"uid-{name}"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, **parts}


def read(data: bytes) -> Decoded:
    return decoded(KubectlJsonDecoder(), data)


def lines(*values: object) -> bytes:
    return b"".join(orjson.dumps(value) + b"\n" for value in values)


def pretty(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n"


@pytest.mark.parametrize(("object_", "key"), KEYS, ids=[k for _, k in KEYS])
def test_key_is_that_of_etcd(object_: tuple[str, str, str, str], key: str) -> None:
    assert etcd_key(*object_) == key


def test_watch_events_become_changes() -> None:
    bound = {"nodeName": "x"}
    found = read(
        lines(
            {"type": "ADDED", "object": pod("a", "10")},
            {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": "15"}}},
            {"type": "MODIFIED", "object": pod("a", "20", spec=bound)},
            {"type": "DELETED", "object": pod("a", "30", spec=bound)},
        )
    )
    assert found.rows("objects", "revision", "operation", "key", "version", "uid") == [
        (10, "PUT", "/registry/pods/n/a", 0, "uid-a"),
        (20, "PUT", "/registry/pods/n/a", 0, "uid-a"),
        (30, "DELETE", "/registry/pods/n/a", 0, "uid-a"),
    ]
    *_, deleted = found.tables["objects"]
    assert deleted["value"] is None
    assert orjson.loads(deleted["prev_value"])["spec"] == bound
    assert found.notes == []


def test_value_is_the_object_without_its_revision() -> None:
    (row,) = read(lines(pod("a", "10", spec={"x": [1]}))).tables["objects"]
    wanted = pod("a", "10", spec={"x": [1]})
    del wanted["metadata"]["resourceVersion"]
    assert orjson.loads(row["value"]) == wanted


def test_expired_watch_is_a_gap_behind_the_last_revision() -> None:
    status = {"kind": "Status", "status": "Failure", "message": "too old", "code": 410}
    found = read(
        lines(
            {"type": "ADDED", "object": pod("a", "10")},
            {"type": "BOOKMARK", "object": {"kind": "Pod", "metadata": {"resourceVersion": "15"}}},
            {"type": "ERROR", "object": status},
        )
    )
    assert [(g.from_revision, g.to_revision) for g in found.gaps] == [(16, None)]
    assert found.notes == [("API_REFUSED", 3)]


@pytest.mark.parametrize("indent", [b"  ", b"    ", b"\t"])
def test_pretty_list_gives_its_items(indent: bytes) -> None:
    listed = pretty({
        "apiVersion": "v1",
        "items": [
            pod("a", "10", spec={"volumes": [{"configMap": {"items": [{"key": "k"}]}}]}),
            pod("b", "11"),
        ],
        "kind": "List",
        "metadata": {"resourceVersion": ""},
    }).replace(b"  ", indent)  # fmt: skip
    found = read(listed)
    assert found.rows("objects", "revision", "name", "kind") == [(10, "a", "Pod"), (11, "b", "Pod")]
    assert found.notes == []


def test_typed_list_tells_the_kind_of_its_items() -> None:
    secret = {
        "metadata": {"name": "s", "namespace": "n", "resourceVersion": "5"},
        "data": {"p": "c2VjcmV0"},
    }
    listed = {"kind": "SecretList", "apiVersion": "v1", "metadata": {}, "items": [secret]}
    for data in (pretty(listed), lines(listed)):
        (row,) = read(data).tables["objects"]
        assert (row["kind"], row["key"], row["redacted"]) == (
            "Secret",
            "/registry/secrets/n/s",
            True,
        )
        assert b"c2VjcmV0" not in row["value"]


@pytest.mark.parametrize(
    "data",
    [
        pretty(pod("a", "1")) + pretty(pod("b", "2")),
        pretty([pod("a", "1"), pod("b", "2")]),
        lines([pod("a", "1"), pod("b", "2")]),
        lines(pod("a", "1")).strip() + lines(pod("b", "2")),
        b"[\n" + lines(pod("a", "1")).strip() + b",\n" + lines(pod("b", "2")) + b"]\n",
        b"\xef\xbb\xbf" + pretty(pod("a", "1")).replace(b"\n", b"\r\n") + pretty(pod("b", "2")),
    ],
    ids=["concatenated", "array", "compact array", "no break between", "line array", "windows"],
)
def test_any_way_of_writing_two_objects(data: bytes) -> None:
    assert KubectlJsonDecoder().recognises(data)
    found = read(data)
    assert found.rows("objects", "revision", "name") == [(1, "a"), (2, "b")]
    assert found.notes == []


def test_damage_costs_only_what_it_hits() -> None:
    a, b, c = (pretty(pod(name, rev)) for name, rev in (("a", "1"), ("b", "2"), ("c", "3")))
    found = read(a + b[:60] + b"\n" + c + a.replace(b'"a"', b'"a', 1) + c[:30])
    assert [name for (name,) in found.rows("objects", "name")] == ["a", "c"]
    assert [code for code, _ in found.notes] == ["OBJECT_CUT", "OBJECT_UNREADABLE", "OBJECT_CUT"]


def test_words_of_a_broken_object_are_not_shown() -> None:
    session = KubectlJsonDecoder()
    data = lines({"apiVersion": "v1", "kind": "Secret", "data": {"p": "aHVudGVyMg=="}})[:-4]
    found = decoded(session, data + b"\n")
    assert found.notes
    assert found.tables["objects"] == []


def test_event_without_a_revision_is_a_text() -> None:
    event = {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "a.1"},
        "reason": "FailedScheduling", "eventTime": "2026-01-01T00:00:01.5Z",
        "involvedObject": {"kind": "Pod", "namespace": "n", "name": "a"},
        "series": {"count": 7, "lastObservedTime": "2026-01-01T00:00:09.5Z"}, "message": "m",
    }  # fmt: skip
    found = read(lines(event))
    (text,) = found.tables["event_texts"]
    assert (text["namespace"], text["name"], text["count"]) == ("n", "a", 7)
    assert (text["first_at"].second, text["at"].second) == (1, 9)
    assert found.tables["objects"] == []


@pytest.mark.parametrize(
    "head",
    [
        b'{"ts":1678174252192.0676,"caller":"x.go:1","msg":"m","v":0}\n',
        b'{"log":"I0926 ...\\n","stream":"stderr","time":"2017-09-26T11:59:07Z"}\n',
        b'{"Header":{"cluster_id":1},"Events":null}\n',
        b'{"kind":"Event","apiVersion":"audit.k8s.io/v1","auditID":"a","stage":"ResponseComplete"}\n',
        b"",
        b"I0101 00:00:00.000000       1 a.go:1] x\n",
    ],
)
def test_other_json_is_not_recognised(head: bytes) -> None:
    assert not KubectlJsonDecoder().recognises(head)


def test_cut_pieces_are_joined() -> None:
    decoder = KubectlJsonDecoder()
    whole = pretty(pod("a", "1")) + pretty(pod("b", "2"))
    end = whole.index(b"\n}\n") + 3
    for cut in range(5, end):
        assert decoder.lead(whole[:cut][-64:], whole[cut:]) == end - cut
    assert decoder.lead(whole[:end][-64:], whole[end:]) == 0
