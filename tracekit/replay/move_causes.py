"""Why a pod left its node, judged on the revision that decided it.

The pod's own record comes first (its DisruptionTarget condition, its phase and reason),
then what its owner's record implies at that revision.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tracekit.replay import stages
from tracekit.replay.cluster_view import ClusterView, Owner
from tracekit.replay.owners import ControllerRef, controller_of

__all__ = [
    "DISRUPTIONS",
    "KUBELET_EVICTIONS",
    "KUBELET_REJECTIONS",
    "Finding",
    "judge_deletion",
    "judge_end",
]

_Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A cause with what shows it.

    Attributes:
        cause: One of the causes of contract.md.
        certainty: ``observed`` when written down, ``estimated`` when it follows from the
            owner's state, ``unknown``.
        evidence: JSON of the revisions and words behind it.
    """

    cause: str
    detail: str
    certainty: str = "estimated"
    actor: str | None = None
    evidence: dict[str, Any] = field(default_factory=dict)


# Source: core/v1 PodReason* constants of condition DisruptionTarget (field-guide.md, Pods).
DISRUPTIONS = {
    "PreemptionByScheduler": ("preemption", None),
    "PreemptionByKubeScheduler": ("preemption", None),  # 1.25 and 1.26.0
    "DeletionByTaintManager": ("taint_eviction", "taint-eviction-controller"),
    "EvictionByEvictionAPI": ("api_eviction", None),
    "DeletionByPodGC": ("pod_gc", "pod-garbage-collector"),
    "TerminationByKubelet": ("kubelet_eviction", "kubelet"),
}

# Source: pkg/kubelet eviction (Evicted), preemption (Preempting), nodeshutdown (Terminated).
KUBELET_EVICTIONS = frozenset({"Evicted", "Preempting", "Terminated"})

# Source: pkg/kubelet/lifecycle predicate.go and handlers.go, cm/topologymanager, cpumanager.
KUBELET_REJECTIONS = re.compile(
    r"OutOf\w+|Node(?:Affinity|Name|Ports|Selector|Shutdown|UnschedulableTaint)|MatchNodeSelector|"
    r"HostName|PodFitsHostPorts|TaintToleration|UnexpectedAdmissionError|\w*AdmissionError|"
    r"InvalidNodeInfo|UnexpectedPredicateFailureType|UnknownReason|TopologyAffinityError|"
    r"SMTAlignmentError|AppArmor|PodOS\w+|InitContainerRestartPolicyForbidden|"
    r"SupplementalGroupsPolicyNotSupported|PodLevelResourcesNotAdmitted\w*|PodFeatureUnsupported"
)
_REJECTION_WORDS = re.compile(r"Pod (?:was rejected|The node had condition|Predicate)")


def _condition_evidence(condition: _Object) -> dict[str, Any]:
    named = ("type", "reason", "message", "lastTransitionTime")
    return {"condition": {name: condition[name] for name in named if condition.get(name)}}


def _by_disruption(pod: _Object, view: ClusterView) -> Finding | None:
    """Read condition DisruptionTarget, which says who ends the pod and why."""
    condition = stages.condition(pod, "DisruptionTarget")
    known = DISRUPTIONS.get(condition.get("reason", ""))
    if condition.get("status") != "True" or known is None:
        return None
    cause, actor = known
    message = str(condition.get("message") or condition.get("reason"))
    evidence = _condition_evidence(condition)
    node = stages.node_name(pod) or ""
    gone = view.node_gone(node)
    if cause == "pod_gc" and (gone is not None or "node no longer exists" in message):
        cause, evidence = "node_deleted", {**evidence, "node_deleted_revision": gone}
    if cause == "taint_eviction" and (taints := _untolerated(pod, view.node(node) or {})):
        message = f"{message}: {', '.join(taints)}"
        evidence = {**evidence, "taints": taints}
    return Finding(
        cause=cause, detail=message, certainty="observed", actor=actor, evidence=evidence
    )


def _untolerated(pod: _Object, node: _Object) -> list[str]:
    """List the NoExecute taints of a node that a pod does not tolerate for ever.

    Source: component-helpers ``scheduling/corev1/helpers.go``, Toleration.ToleratesTaint;
    tolerationSeconds bounds a toleration in time (core/v1 types.go).
    """
    tolerations = (pod.get("spec") or {}).get("tolerations") or ()
    lasting = [t for t in tolerations if t.get("tolerationSeconds") is None]
    taints = (node.get("spec") or {}).get("taints") or ()
    return [
        f"{taint['key']}{'=' + taint['value'] if taint.get('value') else ''}:NoExecute"
        for taint in taints
        if taint.get("effect") == "NoExecute" and not any(_tolerates(t, taint) for t in lasting)
    ]


def _tolerates(toleration: _Object, taint: _Object) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("key") and toleration["key"] != taint.get("key"):
        return False
    if toleration.get("operator") == "Exists":
        return True
    return bool(toleration.get("key")) and toleration.get("value", "") == taint.get("value", "")


def _by_kubelet(pod: _Object) -> Finding | None:
    """Read status.reason of a failed pod: what the kubelet evicted or did not admit."""
    status = pod.get("status") or {}
    reason, message = str(status.get("reason") or ""), str(status.get("message") or "")
    if status.get("phase") != "Failed" or not reason:
        return None
    if KUBELET_REJECTIONS.fullmatch(reason) or _REJECTION_WORDS.match(message):
        cause = "kubelet_rejection"
    elif reason in KUBELET_EVICTIONS:
        cause = "kubelet_eviction"
    else:
        return None
    words = f"{reason}: {message}" if message else reason
    evidence = {"status_reason": reason}
    return Finding(
        cause=cause, detail=words, certainty="observed", actor="kubelet", evidence=evidence
    )


def judge_end(pod: _Object, view: ClusterView) -> Finding:
    """Judge a pod that reached Succeeded or Failed before any deletionTimestamp.

    Args:
        pod: State of the revision that ended it.
        view: State of the cluster before that revision.

    Source: contract.md, moves.
    """
    failed = stages.phase(pod) == "Failed"
    told = (_by_disruption(pod, view) or _by_kubelet(pod)) if failed else None
    if told is not None:
        return told
    owner = controller_of(pod)
    if owner is not None and owner.kind == "Job":
        detail = f"{owner.kind}/{owner.name}: the pod {str(stages.phase(pod)).lower()}"
        evidence = {"owner_uid": owner.uid, "phase": stages.phase(pod)}
        return Finding(cause="job_finished", detail=detail, certainty="observed", evidence=evidence)
    status = pod.get("status") or {}
    words = [str(status[name]) for name in ("phase", "reason", "message") if status.get(name)]
    return Finding(
        cause="unknown",
        detail=f"ended by itself: {', '.join(words)}",
        certainty="unknown",
        evidence={"phase": status.get("phase")},
    )


def _owner_evidence(ref: ControllerRef, owner: Owner) -> dict[str, Any]:
    facts = {
        "owner": f"{ref.kind}/{ref.name}",
        "owner_uid": ref.uid,
        "owner_wants": owner.wanted,
        "owner_gone_revision": owner.gone_revision,
        "replicas_fell_revision": owner.fell_revision,
        "template_revision": owner.template_revision,
    }
    return {name: value for name, value in facts.items() if value is not None}


def _topmost_gone(ref: ControllerRef, owner: Owner, view: ClusterView) -> tuple[str, int]:
    """Climb to the highest owner that is gone; its end took the others along."""
    name, revision = f"{ref.kind}/{ref.name}", owner.gone_revision or 0
    seen = {ref.uid}
    above = controller_of(owner.document)
    while above is not None and above.uid not in seen:
        seen.add(above.uid)
        higher = view.owner(above.uid)
        if higher is None or higher.gone_revision is None:
            break
        name, revision = f"{above.kind}/{above.name}", higher.gone_revision
        above = controller_of(higher.document)
    return name, revision


def _by_owners_end(ref: ControllerRef, owner: Owner, view: ClusterView) -> Finding | None:
    if owner.gone_revision is None:
        return None
    name, revision = _topmost_gone(ref, owner, view)
    evidence = {**_owner_evidence(ref, owner), "gone": name, "gone_revision": revision}
    return Finding(
        cause="owner_deleted",
        detail=f"{name} was deleted",
        actor="generic-garbage-collector",
        evidence=evidence,
    )


def _shrunk(ref: ControllerRef, owner: Owner, view: ClusterView) -> Finding | None:
    """Judge by count: a controller deletes pods only while it has more than it wants."""
    active = view.active_pods(ref.uid)
    if owner.wanted is None or active <= owner.wanted:
        return None
    return Finding(
        cause="scale_down",
        detail=f"{ref.kind}/{ref.name} wanted {owner.wanted} of its {active} pods",
        evidence={**_owner_evidence(ref, owner), "active_pods": active},
    )


def _plain_template(owner: Owner) -> Any:
    """Give the pod template without the hash label that its ReplicaSet adds."""
    template = owner.spec.get("template") or {}
    metadata = template.get("metadata") or {}
    labels = dict(metadata.get("labels") or {})
    labels.pop("pod-template-hash", None)
    return {**template, "metadata": {**metadata, "labels": labels}}


def _by_replica_set(ref: ControllerRef, owner: Owner, view: ClusterView) -> Finding | None:
    """Tell a roll-out from a scale-down: an old ReplicaSet has another template than now.

    Source: deployment controller sync.go getNewReplicaSet, EqualIgnoreHash.
    """
    shrunk = _shrunk(ref, owner, view)
    above = controller_of(owner.document)
    top = view.owner(above.uid) if above is not None else None
    if shrunk is None:
        return None
    shrunk = replace(shrunk, actor="replicaset-controller")
    if above is None or top is None or _plain_template(top) == _plain_template(owner):
        return shrunk
    changed = {
        "rollout_of": f"{above.kind}/{above.name}",
        "rollout_revision": top.template_revision,
    }
    return replace(
        shrunk,
        cause="rollout",
        detail=f"{above.kind}/{above.name} has another template than {ref.name}",
        evidence={**shrunk.evidence, **changed},
    )


def _template_changed(pod: _Object, ref: ControllerRef, owner: Owner, view: ClusterView) -> bool:
    if (owner.spec.get("updateStrategy") or {}).get("type") == "OnDelete":
        return False
    newest = view.template(ref.uid)
    return newest is not None and not newest.made(pod)


def _by_stateful_set(
    pod: _Object, ref: ControllerRef, owner: Owner, view: ClusterView
) -> Finding | None:
    """Judge by ordinal and template.

    Source: statefulset controller: ordinals from spec.ordinals.start, condemned above.
    """
    name = str((pod.get("metadata") or {}).get("name", ""))
    ordinal = name.rpartition("-")[2]
    start = (owner.spec.get("ordinals") or {}).get("start") or 0
    evidence = _owner_evidence(ref, owner)
    if owner.wanted is not None and ordinal.isdecimal() and int(ordinal) >= start + owner.wanted:
        cause, detail = "scale_down", f"{ref.kind}/{ref.name} wants {owner.wanted} pods"
    elif _template_changed(pod, ref, owner, view):
        cause, detail = "rollout", f"the template of {ref.kind}/{ref.name} changed"
    else:
        return None
    return Finding(cause=cause, detail=detail, actor="statefulset-controller", evidence=evidence)


def _selects(owner: Owner, node: _Object | None) -> bool:
    """Tell whether the DaemonSet's nodeSelector still matches the node."""
    template = (owner.spec.get("template") or {}).get("spec") or {}
    labels = ((node or {}).get("metadata") or {}).get("labels") or {}
    wanted = template.get("nodeSelector") or {}
    return node is None or all(labels.get(name) == value for name, value in wanted.items())


def _by_daemon_set(
    pod: _Object, ref: ControllerRef, owner: Owner, view: ClusterView
) -> Finding | None:
    """Judge by template and node; both are the DaemonSet controller's own removal."""
    node = stages.node_name(pod) or ""
    if _template_changed(pod, ref, owner, view):
        detail = f"the template of {ref.kind}/{ref.name} changed"
    elif not _selects(owner, view.node(node)):
        detail = f"{ref.kind}/{ref.name} no longer selects {node}"
    else:
        return None
    return Finding(
        cause="daemonset_removal",
        detail=detail,
        actor="daemon-set-controller",
        evidence=_owner_evidence(ref, owner),
    )


def _by_job(ref: ControllerRef, owner: Owner, view: ClusterView) -> Finding | None:
    """Judge by the Job's end, suspension and parallelism.

    Source: job controller: active pods are deleted when the Job ends, is suspended, or
    has more of them than its parallelism.
    """
    ends = {"Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"}
    evidence = _owner_evidence(ref, owner)
    for condition in (owner.document.get("status") or {}).get("conditions") or ():
        if condition.get("type") in ends and condition.get("status") == "True":
            detail = f"{ref.kind}/{ref.name} ended: {condition.get('type')}"
            return Finding(
                cause="job_finished", detail=detail, actor="job-controller", evidence=evidence
            )
    if owner.spec.get("suspend"):
        detail = f"{ref.kind}/{ref.name} was suspended"
        return Finding(cause="scale_down", detail=detail, actor="job-controller", evidence=evidence)
    return _shrunk(ref, owner, view)


def _by_controller(pod: _Object, ref: ControllerRef, view: ClusterView) -> Finding | None:
    owner = view.owner(ref.uid)
    if owner is None:
        return None
    ended = _by_owners_end(ref, owner, view)
    if ended is not None:
        return ended
    match ref.kind:
        case "ReplicaSet" | "ReplicationController":
            return _by_replica_set(ref, owner, view)
        case "StatefulSet":
            return _by_stateful_set(pod, ref, owner, view)
        case "DaemonSet":
            return _by_daemon_set(pod, ref, owner, view)
        case "Job":
            return _by_job(ref, owner, view)
        case _:
            return _shrunk(ref, owner, view)


_JUDGED_KINDS = frozenset(
    {"ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet", "Job"}
)


def _left_over(ref: ControllerRef | None, view: ClusterView) -> Finding:
    """Judge a deletion that neither the pod's record nor its owner's explains."""
    if ref is None:
        detail = "no controller owns it and nothing else explains the delete"
        return Finding(cause="deleted_by_user", detail=detail)
    owner = view.owner(ref.uid)
    if owner is None or ref.kind not in _JUDGED_KINDS:
        detail = f"nothing in the record explains the delete; owned by {ref.kind}/{ref.name}"
        return Finding(cause="unknown", detail=detail, certainty="unknown")
    return Finding(
        cause="deleted_by_user",
        detail=f"{ref.kind}/{ref.name} had no reason to delete it",
        evidence=_owner_evidence(ref, owner),
    )


def judge_deletion(pod: _Object, view: ClusterView) -> Finding:
    """Judge a pod that got a deletionTimestamp, or was deleted without one.

    Args:
        pod: State of the revision that decided it; for a delete the state before.
        view: State of the cluster before that revision.

    Source: contract.md, moves and cause.
    """
    told = _by_disruption(pod, view)
    if told is not None:
        return told
    ref = controller_of(pod)
    found = _by_controller(pod, ref, view) if ref is not None else None
    if found is not None:
        return found
    node = stages.node_name(pod) or ""
    gone = view.node_gone(node)
    if gone is not None:
        evidence = {"node_deleted_revision": gone}
        return Finding(cause="node_deleted", detail=f"{node} no longer exists", evidence=evidence)
    ending = view.namespace_gone((pod.get("metadata") or {}).get("namespace", ""))
    if ending is not None:
        evidence = {"namespace_gone_revision": ending}
        detail = "its namespace was deleted"
        return Finding(cause="owner_deleted", detail=detail, evidence=evidence)
    return _left_over(ref, view)
