"""Why a pod waits: the scheduler's words sorted into a few causes of five families.

Family decides the hue, place in the list the stacking order. A text of no known cause
stays "other reason" with its raw words; it is never folded into a family.

Source: reason texts of the in-tree filter plugins, Kubernetes 1.13 to 1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

__all__ = ["CAUSES", "OTHER", "Cause", "cause_of", "cause_order", "has_no_node", "present_causes"]


@dataclass(frozen=True, slots=True)
class Cause:
    """One cause: ``id`` names its colour, ``family`` the heading it stands under."""

    id: str
    label: str
    family: str


CAUSES: tuple[Cause, ...] = (
    Cause("cordon", "Node cordoned", "Node closed"),
    Cause("taint", "Untolerated taint", "Node closed"),
    Cause("cpu", "Insufficient cpu", "No room"),
    Cause("memory", "Insufficient memory", "No room"),
    Cause("slots", "Too many pods", "No room"),
    Cause("device", "Insufficient other resource", "No room"),
    Cause("ports", "Host port taken", "No room"),
    Cause("affinity", "Node affinity or selector", "Placement rule"),
    Cause("podaff", "Pod (anti-)affinity", "Placement rule"),
    Cause("spread", "Topology spread", "Placement rule"),
    Cause("volume", "Volume or claim", "Storage"),
    Cause("gated", "Scheduling gate", "Not tried"),
    Cause("waiting", "Not tried yet", "Not tried"),
    Cause("other", "Other reason", "Other"),
)
_BY_ID = {c.id: c for c in CAUSES}
_ORDER = {c.id: i for i, c in enumerate(CAUSES)}
OTHER = _BY_ID["other"]

_EXACT = {
    "too many pods": "slots",
    "insufficient pods": "slots",
    "gated": "gated",
    "not_tried": "waiting",
    "not tried": "waiting",
    "nodeunschedulable": "cordon",
    "podtoleratesnodetaints": "taint",
    "matchnodeselector": "affinity",
    "hostname": "affinity",
    "podfitshostports": "ports",
    "insufficient cpu": "cpu",
    "insufficient memory": "memory",
}
_PARTS = (
    ("were unschedulable", "cordon"),
    ("that the pod didn't tolerate", "taint"),
    ("untolerated taint", "taint"),
    ("insufficient ", "device"),
    ("free ports", "ports"),
    ("scheduling gate", "gated"),
    ("topology spread", "spread"),
    ("pod affinity", "podaff"),
    ("anti-affinity", "podaff"),
    ("podaffinity", "podaff"),
    ("volume", "volume"),
    ("pvc", "volume"),
    ("enough free storage", "volume"),
    ("nodiskconflict", "volume"),
    ("no available disk", "volume"),
    ("node selector", "affinity"),
    ("node affinity", "affinity"),
    ("[nodeaffinity]", "affinity"),
    ("requested hostname", "affinity"),
    ("requested node name", "affinity"),
    ("requested labels", "affinity"),
)


def cause_of(reason: str) -> Cause:
    """Return the cause that a reason text, or a kind of waiting, belongs to."""
    words = reason.strip().lower()
    if words in _EXACT:
        return _BY_ID[_EXACT[words]]
    # "pod affinity terms conflict" is NodeAffinity's own text, not InterPodAffinity's.
    if words == "pod affinity terms conflict":
        return _BY_ID["affinity"]
    return next((_BY_ID[id_] for part, id_ in _PARTS if part in words), OTHER)


def has_no_node(row: Mapping[str, object]) -> bool:
    """Tell whether a stretch of ``pending``, or a sum of them, is one without a node.

    A bound pod that has not started is pending too, but nothing keeps it from its node.
    """
    return "starting" not in (row.get("kind"), row.get("cause"))


def cause_order(cause_id: str) -> int:
    """Return a cause's place in the stack, lowest first."""
    return _ORDER[cause_id]


def present_causes(cause_ids: Iterable[str]) -> tuple[Cause, ...]:
    """Return the named causes once each, in stacking order."""
    wanted = set(cause_ids)
    return tuple(c for c in CAUSES if c.id in wanted)
