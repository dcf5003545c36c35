"""Audit logs: stages merged, names and nodes found where the level has them, secrets hidden."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.decode.session import Decoded, decoded
from tracekit.decode.audit import AuditDecoder


def event(audit_id: str, stage: str = "ResponseComplete", **parts: Any) -> dict[str, Any]:
    return {
        "kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Request", "auditID": audit_id,
        "stage": stage, "verb": "create", "user": {"username": "u"}, "userAgent": "agent",
        "requestReceivedTimestamp": "2026-01-01T00:00:00.000001Z",
        "stageTimestamp": "2026-01-01T00:00:01.000001Z", **parts,
    }  # fmt: skip


def read(*events: object, tail: bytes = b"") -> Decoded:
    data = b"".join(orjson.dumps(e) + b"\n" for e in events) + tail
    assert AuditDecoder().recognises(data)
    return decoded(AuditDecoder(), data)


def test_later_stage_takes_the_place_of_the_earlier() -> None:
    found = read(
        event("a", "RequestReceived"),
        event("b", "RequestReceived"),
        event("a", "ResponseStarted"),
        event("a", responseStatus={"code": 200}),
        event("c", responseStatus={"code": 201}),
        event("c", "RequestReceived"),
    )
    assert sorted(found.rows("api_requests", "audit_id", "stage", "status")) == [
        ("a", "ResponseComplete", 200),
        ("b", "RequestReceived", None),
        ("c", "RequestReceived", None),
        ("c", "ResponseComplete", 201),
    ]
    assert found.records == 6


def test_names_come_from_where_they_are() -> None:
    binding: dict[str, Any] = {
        "objectRef": {"resource": "pods", "namespace": "n", "name": "p", "subresource": "binding"},
        "requestObject": {"kind": "Binding", "target": {"kind": "Node", "name": "node-2"}},
    }
    generated: dict[str, Any] = {
        "objectRef": {"resource": "pods", "namespace": "n"},
        "responseObject": {"metadata": {"name": "p-x1", "uid": "u", "resourceVersion": "77"}},
    }
    found = read(event("a", **binding), event("b", **generated))
    assert found.rows("api_requests", "name", "node", "uid", "revision") == [
        ("p", "node-2", "", None),
        ("p-x1", None, "u", 77),
    ]


SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "s"},
    "data": {"p": "aHVudGVyMg=="},
}
HIDING = {
    "whole": ({"resource": "secrets"}, {"requestObject": SECRET, "responseObject": SECRET}),
    "patch": ({"resource": "secrets"}, {"requestObject": {"data": {"p": "aHVudGVyMg=="}}}),
    "json patch": (
        {"resource": "configmaps"},
        {"requestObject": [{"op": "add", "path": "/data/p", "value": "aHVudGVyMg=="}]},
    ),
    "list": (
        {"resource": "secrets"},
        {"responseObject": {"apiVersion": "v1", "kind": "SecretList",
                            "items": [{"metadata": {"name": "s"}, "data": {"p": "aHVudGVyMg=="}}]}},
    ),
    "token": (
        {"resource": "serviceaccounts", "subresource": "token"},
        {"responseObject": {"kind": "TokenRequest", "status": {"token": "aHVudGVyMg=="}}},
    ),
    "wrong kind": ({"resource": "secrets"}, {"requestObject": SECRET | {"data": ["aHVudGVyMg=="]}}),
}  # fmt: skip


@pytest.mark.parametrize(("reference", "bodies"), HIDING.values(), ids=HIDING)
def test_payloads_are_hidden(reference: dict[str, str], bodies: dict[str, Any]) -> None:
    (row,) = read(event("a", objectRef=reference, **bodies)).tables["api_requests"]
    assert "aHVudGVyMg==" not in row["raw"]
    assert orjson.loads(row["raw"])["auditID"] == "a"


def test_other_records_stay_as_they_were() -> None:
    line = orjson.dumps(event("a", objectRef={"resource": "pods"}, requestObject={"kind": "Pod"}))
    (row,) = decoded(AuditDecoder(), line + b"\n").tables["api_requests"]
    assert row["raw"].encode() == line


def test_damage_costs_its_line() -> None:
    found = read(event("a"), {"kind": "x"}, event("b"), tail=b'{"kind":"Event","auditID":"c","sta')
    assert [name for (name,) in found.rows("api_requests", "audit_id")] == ["a", "b"]
    assert found.notes == [("AUDIT_LINE_UNREADABLE", 2), ("AUDIT_LINE_CUT", 4)]


def test_webhook_batch_is_many_records() -> None:
    found = read(event("z"), {"kind": "EventList", "items": [event("a"), event("b")]})
    assert len(found.tables["api_requests"]) == found.records == 3
