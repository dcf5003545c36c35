"""Stages: the most advanced change of a revision (contract.md)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.replay.objects import condition, merge, pod
from tracekit.replay.stages import STAGES, pod_stage

JSON = dict[str, Any]


def with_conditions(*conditions: JSON) -> JSON:
    return {"status": {"conditions": list(conditions)}}


UNSCHEDULABLE = with_conditions(condition("PodScheduled", "False", "Unschedulable", "0/3 nodes"))
OTHER_WORDS = with_conditions(condition("PodScheduled", "False", "Unschedulable", "0/4 nodes"))
SCHEDULER_ERROR = with_conditions(condition("PodScheduled", "False", "SchedulerError", "oops"))
GATED = {
    "spec": {"schedulingGates": [{"name": "g"}]},
    **with_conditions(condition("PodScheduled", "False", "SchedulingGated")),
}
BOUND = {"spec": {"nodeName": "n1"}, **with_conditions(condition("PodScheduled", "True"))}
NOMINATED = merge(UNSCHEDULABLE, {"status": {"nominatedNodeName": "n1"}})
READY = with_conditions(condition("Ready", "True"))
RUNNING = {"status": {"phase": "Running"}}
STARTED = {"status": {"containerStatuses": [{"name": "c", "state": {"running": {}}}]}}
TERMINATING = {"metadata": {"deletionTimestamp": "2026-12-01T00:00:00Z"}}


@pytest.mark.parametrize(
    ("before", "after", "stage"),
    [
        ({}, UNSCHEDULABLE, "unschedulable"),
        (UNSCHEDULABLE, OTHER_WORDS, "unschedulable"),
        (UNSCHEDULABLE, merge(UNSCHEDULABLE, {"metadata": {"labels": {"a": "b"}}}), "updated"),
        ({}, SCHEDULER_ERROR, "updated"),
        ({}, NOMINATED, "nominated"),
        (UNSCHEDULABLE, BOUND, "bound"),
        (BOUND, merge(BOUND, STARTED), "started"),
        (BOUND, merge(BOUND, RUNNING), "started"),
        (STARTED, merge(STARTED, RUNNING), "updated"),
        (BOUND, merge(RUNNING, READY), "ready"),
        (GATED, {}, "updated"),
        ({}, GATED, "gated"),
        (RUNNING, TERMINATING, "terminating"),
        (TERMINATING, merge(TERMINATING, {"metadata": {"finalizers": []}}), "updated"),
        (RUNNING, {"status": {"phase": "Succeeded"}}, "succeeded"),
        (RUNNING, merge(TERMINATING, {"status": {"phase": "Failed"}}), "failed"),
        ({}, {}, "updated"),
    ],
)
def test_stage_of_a_change(before: JSON, after: JSON, stage: str) -> None:
    assert pod_stage("PUT", 2, merge(pod(), before), merge(pod(), after)) == stage
    assert stage in STAGES


@pytest.mark.parametrize(
    ("after", "stage"),
    [({}, "created"), (GATED, "gated"), ({"spec": {"nodeName": "n1"}}, "bound")],
)
def test_stage_of_a_creation(after: JSON, stage: str) -> None:
    assert pod_stage("PUT", 1, None, merge(pod(), after)) == stage


def test_without_the_state_before_nothing_is_certain() -> None:
    assert pod_stage("PUT", 7, None, merge(pod(), merge(BOUND, RUNNING))) == "updated"
    assert pod_stage("PUT", 7, pod(), None) == "updated"


def test_a_delete_is_a_delete() -> None:
    assert pod_stage("DELETE", 0, pod(), pod()) == "deleted"
