"""YAML of Kubernetes objects: documents, lists, pieces, and what nobody vouches for."""

from __future__ import annotations

import orjson
import pytest

from tests.decode.session import decoded
from tracekit.decode.kubectl_yaml import KubectlYamlDecoder

POD = b"""apiVersion: v1
kind: Pod
metadata:
  annotations:
    on: "yes"
    date: 2024-01-01T00:00:00Z
  name: p1
  namespace: n1
  resourceVersion: "77"
status:
  conditions:
  - message: '0/2 nodes are available: 2 node(s) had untolerated taint {a:
      }.'
    reason: Unschedulable
    status: "False"
    type: PodScheduled
"""
LIST = b"""apiVersion: v1
items:
- apiVersion: v1
  kind: Node
  metadata:
    name: n
    resourceVersion: "5"
- apiVersion: v1
  kind: Node
  metadata: {name: [broken
- apiVersion: v1
  kind: Secret
  metadata:
    name: s
    namespace: x
    resourceVersion: "6"
  data:
    p: c2VjcmV0
kind: List
metadata:
  resourceVersion: ""
---
apiVersion: v1
kind: Node
metadata:
  name: m
  resourceVersion: "7"
"""


def test_scalars_are_those_of_json() -> None:
    (row,) = decoded(KubectlYamlDecoder(), POD).tables["objects"]
    value = orjson.loads(row["value"])
    assert value["metadata"]["annotations"] == {"on": "yes", "date": "2024-01-01T00:00:00Z"}
    message = value["status"]["conditions"][0]["message"]
    assert message == "0/2 nodes are available: 2 node(s) had untolerated taint {a: }."
    assert row["revision"] == 77


def test_list_and_documents_lose_only_the_broken_item() -> None:
    found = decoded(KubectlYamlDecoder(), LIST)
    assert found.rows("objects", "revision", "name", "redacted") == [
        (5, "n", False),
        (6, "s", True),
        (7, "m", False),
    ]
    assert [code for code, _ in found.notes] == ["OBJECT_UNREADABLE"]
    assert all(b"c2VjcmV0" not in row["value"] for row in found.tables["objects"])


def test_items_of_a_typed_list_get_its_kind() -> None:
    data = b"kind: PodList\napiVersion: v1\nitems:\n- metadata:\n    name: a\n    namespace: n\n"
    (row,) = decoded(KubectlYamlDecoder(), data).tables["objects"]
    assert (row["kind"], row["key"], row["revision"]) == ("Pod", "/registry/pods/n/a", 0)


@pytest.mark.parametrize(
    "data",
    [
        b"apiVersion: v1\nkind: X\na: " + b"[" * 3000,
        b"apiVersion: v1\na: &a [x, x, x, x, x, x, x, x, x]\n"
        + b"".join(
            b"%c: &%c [%s]\n" % (i, i, b", ".join([b"*%c" % (i - 1)] * 9)) for i in range(98, 110)
        ),
        b"apiVersion: v1\nkind: X\nmetadata:\n  name: x\n? [a]\n: b\n",
        b"apiVersion: v1\nkind: X\nmetadata:\n  name: x\nb: !!binary aGk=\n",
        b"apiVersion: v1\nkind: X\n\tmetadata: x\n",
    ],
    ids=["deep", "billion laughs", "odd key", "binary", "tab"],
)
def test_hostile_yaml_is_damage(data: bytes) -> None:
    found = decoded(KubectlYamlDecoder(), data)
    assert [code for code, _ in found.notes] == ["OBJECT_UNREADABLE"]
    assert found.tables["objects"] == []


def test_configuration_is_no_object() -> None:
    data = b"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
    found = decoded(KubectlYamlDecoder(), data)
    assert found.notes == [("OBJECT_UNKNOWN", 1)]


def test_a_log_is_not_recognised() -> None:
    assert not KubectlYamlDecoder().recognises(
        b"status: ok\nI0101 00:00:00.000000 1 a.go:1] kind: x\n"
    )
