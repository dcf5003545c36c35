"""Messages of all versions in, reasons out.

The messages and what is right for them come from public issues (named beside each), from the
scheduler's source, or from the recordings: there the scheduler's own text, and the set of
plugins its queue says refused the pod.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.recordings import Recording, Recordings
from tracekit.replay.messages import (
    FILTER_ORDER,
    ParsedReason,
    ParsedVerdict,
    parse_verdict,
    plugin_of,
)

Counts = dict[str, int | None]

CASES = Path(__file__).with_name("counted_messages.json")
COUNTED: list[dict[str, Any]] = json.loads(CASES.read_text(encoding="utf-8"))


def counts(reasons: tuple[ParsedReason, ...]) -> Counts:
    return {reason.reason: reason.nodes for reason in reasons}


@pytest.mark.parametrize("case", COUNTED, ids=[case["met_at"] for case in COUNTED])
def test_counted_message_gives_reasons_in_order_and_both_halves_apart(case: dict[str, Any]) -> None:
    verdict = parse_verdict(case["message"])
    assert (verdict.shape, verdict.nodes_total) == ("counted", case["nodes"])
    assert list(counts(verdict.reasons).items()) == list(case["reasons"].items())
    assert len(verdict.reasons) == len(case["reasons"])
    assert verdict.preemption_nodes == case["preemption_nodes"]
    assert counts(verdict.preemption_reasons) == case["preemption"]
    assert not verdict.prefilter
    assert not verdict.truncated
    assert "unknown" not in {r.plugin for r in verdict.reasons + verdict.preemption_reasons}


def test_fit_failure_lines_of_1_4_are_counted_by_reason() -> None:
    # kubernetes/kubernetes#37232
    verdict = parse_verdict(
        "pod (pod-a-645022479-ov9ka) failed to fit in any node\n"
        + "\n".join(f"fit failure on node (node-{n}): Insufficient cpu" for n in (1, 2, 3, 4))
    )
    assert verdict == ParsedVerdict(
        shape="fit-failure",
        nodes_total=4,
        reasons=(ParsedReason("NodeResourcesFit", "Insufficient cpu", 4),),
        per_node=tuple((f"node-{n}", "Insufficient cpu") for n in (1, 2, 3, 4)),
    )


@pytest.mark.parametrize(
    ("shape", "message", "expected"),
    [
        (  # argoproj/argo-workflows#190
            "predicates",
            "2h		48m		7	default-scheduler			Warning		FailedScheduling	"
            "No nodes are available that match all of the following predicates:: "
            "Insufficient cpu (9), Insufficient memory (15), MatchNodeSelector (18).",
            {"Insufficient cpu": 9, "Insufficient memory": 15, "MatchNodeSelector": 18},
        ),
        (  # 1.8.6, wording of kubernetes/kubernetes#63190
            "predicates",
            "No nodes are available that match all of the predicates: Insufficient memory (3).",
            {"Insufficient memory": 3},
        ),
        (  # 1.5 and 1.6, as the documentation of extended resources quoted it
            "fit-summary",
            "pod (extended-resource-demo-2) failed to fit in any node\n"
            "fit failure summary on nodes : Insufficient example.com/dongle (1)",
            {"Insufficient example.com/dongle": 1},
        ),
        (
            "fit-summary",
            "pod (r) failed to fit in any node fit failure summary on nodes : "
            "Insufficient cpu (1), Insufficient memory (1)",
            {"Insufficient cpu": 1, "Insufficient memory": 1},
        ),
        (  # kubernetes/autoscaler#5692: node groups, not nodes
            "autoscaler",
            "pod didn't trigger scale-up: 12 node(s) didn't match Pod's node affinity/selector, "
            "3 max node group size reached.",
            {
                "node(s) didn't match Pod's node affinity/selector": 12,
                "max node group size reached": 3,
            },
        ),
        (  # kubernetes/autoscaler#2506
            "autoscaler",
            "pod didn't trigger scale-up (it wouldn't fit if a new node is added): "
            "6 Insufficient nvidia.com/gpu",
            {"Insufficient nvidia.com/gpu": 6},
        ),
        (
            "autoscaler",
            "Pod didn't trigger scale-up: 1 max node group size reached",
            {"max node group size reached": 1},
        ),
    ],
)
def test_older_frames_have_counts_but_no_total(shape: str, message: str, expected: Counts) -> None:
    verdict = parse_verdict(message)
    assert (verdict.shape, verdict.nodes_total) == (shape, None)
    assert counts(verdict.reasons) == expected
    assert "unknown" not in {reason.plugin for reason in verdict.reasons}


@pytest.mark.parametrize(
    ("message", "nodes", "reason", "plugin", "prefilter", "postfilter"),
    [
        (  # kubernetes/kubernetes#69928
            "pod has unbound immediate PersistentVolumeClaims",
            None,
            "pod has unbound immediate PersistentVolumeClaims",
            "VolumeBinding",
            False,
            "",
        ),
        (  # 1.26 on, FitError.PreFilterMsg
            "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. "
            "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
            3,
            "pod has unbound immediate PersistentVolumeClaims",
            "VolumeBinding",
            True,
            "",
        ),
        (
            '0/3 nodes are available: persistentvolumeclaim "data-pod-a-0" not found. '
            "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
            3,
            'persistentvolumeclaim "data-pod-a-0" not found',
            "VolumeRestrictions",
            True,
            "",
        ),
        (  # 1.36: DynamicResources finds no state after an aborted PreFilter
            '0/24 nodes are available: persistentvolumeclaim "pvc-25" not found. not found',
            24,
            'persistentvolumeclaim "pvc-25" not found',
            "VolumeRestrictions",
            True,
            "not found",
        ),
    ],
)
def test_prefilter_text_has_no_count(
    message: str, nodes: int | None, reason: str, plugin: str, prefilter: bool, postfilter: str
) -> None:
    verdict = parse_verdict(message)
    assert verdict.reasons == (ParsedReason(plugin, reason, None),)
    assert (verdict.nodes_total, verdict.prefilter) == (nodes, prefilter)
    assert verdict.postfilter == postfilter


@pytest.mark.parametrize(
    ("tail", "raw", "reason"),
    [
        (
            " preemption: not eligible due to preemptionPolicy=Never.",
            "not eligible due to preemptionPolicy=Never.",
            "not eligible due to preemptionPolicy=Never",
        ),
        (
            " preemption: not eligible due to a terminating pod on the nominated node.",
            "not eligible due to a terminating pod on the nominated node.",
            "not eligible due to a terminating pod on the nominated node",
        ),
        (  # kubernetes/kubernetes#140180
            " preemption: found a potential placement for pod on node node-1.",
            "found a potential placement for pod on node node-1.",
            "found a potential placement for pod on node node-1",
        ),
        ("", "", None),
    ],
)
def test_preemption_may_end_in_words(tail: str, raw: str, reason: str | None) -> None:
    verdict = parse_verdict("0/1 nodes are available: 1 Insufficient cpu." + tail)
    assert counts(verdict.reasons) == {"Insufficient cpu": 1}
    assert verdict.preemption == raw
    expected = () if reason is None else (ParsedReason("DefaultPreemption", reason, None),)
    assert verdict.preemption_reasons == expected


def test_another_postfilter_may_stand_behind_preemption() -> None:
    # secretflow/kuscia#45, folded by YAML inside the taint's braces
    verdict = parse_verdict(
        "0/2 nodes are available: 2 node(s) had untolerated taint "
        "{node.kubernetes.io/disk-pressure:\n      }. preemption: 0/2 nodes are available: "
        "2 Preemption is not helpful for scheduling.,\n"
        "      reject the pod pod-a-20230727141300-0 is unschedulable\n      even after PostFilter."
    )
    taint = "node(s) had untolerated taint {node.kubernetes.io/disk-pressure: }"
    assert counts(verdict.reasons) == {taint: 2}
    assert counts(verdict.preemption_reasons) == {"Preemption is not helpful for scheduling": 2}
    assert (
        verdict.postfilter
        == "reject the pod pod-a-20230727141300-0 is unschedulable even after PostFilter"
    )


@pytest.mark.parametrize(
    "message",
    [
        'error while running "VolumeBinding" prebind plugin for pod "pod-a-0": '
        "Failed to bind volumes: timed out waiting for the condition",
        'running PreBind plugin "VolumeBinding": '
        "binding volumes: timed out waiting for the condition",
    ],
)
def test_failed_cycle_names_plugin_and_extension_point(message: str) -> None:
    # kubesphere/kubesphere#4920, codecentric/helm-charts#628
    verdict = parse_verdict(message)
    assert verdict == ParsedVerdict(
        shape="plugin-error",
        point="PreBind",
        reasons=(ParsedReason("VolumeBinding", message, None),),
    )


def test_cut_event_leaves_out_the_reason_cut_in_two() -> None:
    taints = [f"3 node(s) had untolerated taint {{team: t-{n:02}}}" for n in range(1, 30)]
    whole = f"0/87 nodes are available: {', '.join(taints)}."
    verdict = parse_verdict(whole[: 1024 - len(" ...")] + " ...")  # truncateMessage of 1.20 on
    assert verdict.truncated
    assert verdict.nodes_total == 87
    assert [f"{r.nodes} {r.reason}" for r in verdict.reasons] == taints[:21]


def test_cut_behind_the_first_half_leaves_it_whole() -> None:
    verdict = parse_verdict(
        "0/9 nodes are available: 9 node(s) were unschedulable. no new claims to deallocate, "
        "preemption: 0/9 nodes are available: 4 No preemption victims found for incoming pod, "
        "5 Preemption is not help ..."
    )
    assert verdict.truncated
    assert counts(verdict.reasons) == {"node(s) were unschedulable": 9}
    assert counts(verdict.preemption_reasons) == {"No preemption victims found for incoming pod": 4}


@pytest.mark.parametrize(
    ("reason", "plugin"),
    [
        ("node(s) didn't satisfy plugin(s) [NodeAffinity]", "NodeAffinity"),
        ("node(s) had untolerated taint {a: b}", "TaintToleration"),
        ("Insufficient pods", "NodeResourcesFit"),
        ("Too many pods", "NodeResourcesFit"),
        # 1.16 joined the statuses of one node into one reason
        ("Insufficient cpu, Insufficient memory", "NodeResourcesFit"),
        ('running "NodeAffinity" filter plugin: bad', "NodeAffinity"),
        ("no nodes available to schedule pods", "scheduler"),
        ("my own words", "unknown"),
        ("Insufficient cpu, my own words", "unknown"),
        ("", "unknown"),
    ],
)
def test_plugin_of(reason: str, plugin: str) -> None:
    assert plugin_of(reason) == plugin


def test_unknown_reasons_keep_their_words_and_counts() -> None:
    verdict = parse_verdict(
        "0/7 nodes are available: 2 rack is full (a, 3 b). Try later, 5 Insufficient cpu."
    )
    assert verdict.reasons == (
        ParsedReason("unknown", "rack is full (a, 3 b). Try later", 2),
        ParsedReason("NodeResourcesFit", "Insufficient cpu", 5),
    )


def test_filter_order_has_each_plugin_once() -> None:
    assert len(set(FILTER_ORDER)) == len(FILTER_ORDER) == 13


@settings(deadline=None)
@given(st.text())
def test_any_text_gives_one_unknown_reason_with_its_words(text: str) -> None:
    verdict = parse_verdict(text)
    words = text.strip()
    assert verdict.reasons == ((ParsedReason("unknown", words, None),) if words else ())
    assert verdict.shape == ("bare" if words else "empty")


PIECES = st.sampled_from(
    (
        *(
            "0/3 nodes are available: ",
            "3 Insufficient cpu",
            ", 2 ",
            ". ",
            "preemption: ",
            "{",
            "}",
        ),
        *(
            "(",
            ")",
            " (4)",
            "predicates:: ",
            "fit failure on node (",
            "): ",
            "\n",
            '"',
            " ...",
            "9" * 9,
        ),
        *(
            "No nodes are available that match all of the ",
            "didn't trigger scale-up: ",
            "1 ",
            ".,  x",
        ),
    )
)


@settings(deadline=None)
@given(st.lists(PIECES | st.text(max_size=5), max_size=25))
def test_no_mixture_of_pieces_raises(pieces: list[str]) -> None:
    verdict = parse_verdict("".join(pieces))
    assert all(reason.reason for reason in verdict.reasons + verdict.preemption_reasons)


def test_huge_hostile_text_is_parsed_in_linear_time() -> None:
    for filler in ("(a, 1 b) ", ". ", ", 1 ", "{" * 9, " \n", '"x". '):
        parse_verdict("0/3 nodes are available: 1 x" + filler * 100_000)


def verdict_texts(recording: Recording) -> Iterator[str]:
    with (recording / "truth/unschedulable.jsonl").open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)["err"]


def sorted_first_half(verdict: ParsedVerdict) -> str:
    """Join the reasons by the scheduler's rule: sorted as strings, the count included."""
    return ", ".join(
        sorted(r.reason if r.nodes is None else f"{r.nodes} {r.reason}" for r in verdict.reasons)
    )


@pytest.mark.parametrize("name", ["seed", "mid", "wide", "json"])
def test_reasons_give_back_every_recorded_message(recordings: Recordings, name: str) -> None:
    for text in verdict_texts(recordings(name)):
        verdict = parse_verdict(text)
        preemption = f"preemption: {verdict.preemption}" if verdict.preemption else ""
        tail = ", ".join(part for part in (verdict.postfilter, preemption) if part)
        half = f"0/{verdict.nodes_total} nodes are available: {sorted_first_half(verdict)}."
        assert f"{half} {tail}".rstrip() == text
        parsed = verdict.reasons + verdict.preemption_reasons
        assert "unknown" not in {reason.plugin for reason in parsed}


NO_FIT = re.compile(r'"Unable to schedule pod; no fit; waiting" pod="([^"]*)" err="(.*)"$')
QUEUED = re.compile(
    r'pod="([^"]*)" event="ScheduleAttemptFailure".* unschedulable plugins=(\{.*\})'
)


@pytest.mark.parametrize("name", ["seed", "mid", "wide"])
def test_plugins_are_those_the_scheduler_queued_the_pod_for(
    recordings: Recordings, name: str
) -> None:
    verdicts: dict[str, str] = {}
    compared = 0
    with (recordings(name) / "kube-scheduler.log").open(encoding="utf-8") as lines:
        for line in lines:
            if match := NO_FIT.search(line):
                verdicts[match[1]] = match[2].replace('\\"', '"')
            elif "ScheduleAttemptFailure" in line and (match := QUEUED.search(line)):
                text = verdicts.pop(match[1])
                plugins = {reason.plugin for reason in parse_verdict(text).reasons}
                assert plugins == set(json.loads(match[2])), text
                compared += 1
    assert compared >= {"seed": 118, "mid": 11_691, "wide": 1_352}[name]
