"""Events that logs tell of, and verdict lines of every version, read off real lines.

Source: client-go ``tools/record/event.go``; scheduler ``factory.go``, ``scheduler.go`` and
``schedule_one.go`` of the versions named (facts/klog-messages-scheduler.tsv).
"""

from __future__ import annotations

from typing import Any

import pytest

from tracekit.decode import parse_fields
from tracekit.replay.evidence import verdict_line
from tracekit.replay.log_events import logged_event

HEADER = "I0105 09:01:38.255936    1704 event.go:291] "
REFERENCE = (
    'Kind:"Pod", Namespace:"ns-a", Name:"pod-a", UID:"u1", APIVersion:"v1", '
    'ResourceVersion:"234", FieldPath:""'
)


def row(text: str) -> dict[str, Any]:
    structured = text.startswith('"')
    message = text[1 : text.index('"', 1)] if structured else text
    return {
        "source_id": "s", "record_no": 3, "stamp_us": 5, "wrapped_us": None, "message": message,
        "structured": structured, "raw": HEADER + text,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "reason", "message"),
    [
        # To 1.18, from 1.19, and the scheduler's broadcaster.
        (f"Event(v1.ObjectReference{{{REFERENCE}}}): type: 'Warning' reason: 'FailedScheduling' no "
         "nodes available", "FailedScheduling", "no nodes available"),
        ('"Event occurred" object="ns-a/pod-a" kind="Pod" apiVersion="" type="Normal" '
         'reason="TaintManagerEviction" message="Cancelling deletion of Pod ns-a/pod-a"',
         "TaintManagerEviction", "Cancelling deletion of Pod ns-a/pod-a"),
        ('"Event occurred" object="ns-a/pod-a" fieldPath="" kind="Pod" type="Warning" '
         'reason="FailedScheduling" action="Scheduling" note="0/1 nodes are available."',
         "FailedScheduling", "0/1 nodes are available."),
        (f"Server rejected event '&v1.Event{{Reason:\"FailedScheduling\", "
         f"Regarding:v1.ObjectReference{{{REFERENCE}}}, Related:(*v1.ObjectReference)(nil), "
         'Note:"0/1 nodes: \\"x\\"", Type:"Warning"}\': \'must be\' (will not retry!)',
         "FailedScheduling", '0/1 nodes: "x"'),
    ],
)  # fmt: skip
def test_event(text: str, reason: str, message: str) -> None:
    event = logged_event(row(text), parse_fields)
    assert event is not None
    assert (event.namespace, event.kind, event.name) == ("ns-a", "Pod", "pod-a")
    assert (event.reason, event.message) == (reason, message)
    assert event.is_lost is text.startswith("Server rejected")


@pytest.mark.parametrize(
    "text",
    [
        '"Event occurred" object="ns-a/pod-a"',  # cut before it says what happened
        '"Something else" object="ns-a/pod-a" reason="FailedScheduling"',
        "Event(v1.ObjectReference{Kind:",
    ],
)
def test_no_event(text: str) -> None:
    assert logged_event(row(text), parse_fields) is None


@pytest.mark.parametrize(
    ("text", "verdict", "message"),
    [
        ("Unable to schedule ns-a pod-a: no fit: MSG; waiting", "unschedulable", "MSG"),
        ("Unable to schedule ns-a/pod-a: no fit: MSG; waiting", "unschedulable", "MSG"),
        ("Unable to schedule ns-a pod-a: no nodes are registered to the cluster; waiting",
         "unschedulable", "no nodes available to schedule pods"),
        ("Unable to schedule ns-a/pod-a: no nodes are registered to the cluster; waiting",
         "unschedulable", "no nodes available to schedule pods"),
        ("Unable to schedule ns-a/pod-a: possibly due to node not found: MSG; waiting",
         "unschedulable", "MSG"),
        ("Error scheduling ns-a pod-a: MSG; retrying", "error", "MSG"),
        ("Error scheduling ns-a/pod-a: MSG: more; retrying", "error", "MSG: more"),
        ('"Unable to schedule pod; no nodes are registered to the cluster; waiting" '
         'pod="ns-a/pod-a"',
         "unschedulable", "no nodes available to schedule pods"),
        ('"Unable to schedule pod belonging to a pod group; waiting" pod="ns-a/pod-a" err="MSG"',
         "unschedulable", "MSG"),
        ('"pod is bound successfully on node" pod="ns-a/pod-a" node="n" evaluated nodes=1 '
         "feasible nodes=1", "bound", ""),
        ("pod ns-a/pod-a is bound successfully on node n, 4 nodes evaluated, 2 nodes were found "
         "feasible", "bound", ""),
    ],
)  # fmt: skip
def test_verdict_of_every_version(text: str, verdict: str, message: str) -> None:
    line = verdict_line(row(text), parse_fields)
    assert line is not None
    assert (line.namespace, line.pod, line.verdict, line.message) == (
        "ns-a", "pod-a", verdict, message,
    )  # fmt: skip
