"""Times inside objects that bound the moment their revision was committed.

An etcd stream has no wall time, but its objects do. Every such time is an ``Anchor``: a
claim, by one clock, about the commit of one revision. ``tracekit.replay.clock`` weighs
them against each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Literal

from tracekit.model.objects import JSON, ObjectRevision

__all__ = [
    "API_SERVER",
    "BOUND",
    "SECOND_US",
    "SEEN",
    "Anchor",
    "Claim",
    "anchors_of",
    "epoch_us",
    "is_revision",
]

API_SERVER = ""
BOUND, SEEN = "bound", "seen"
SECOND_US = 1_000_000

Claim = Literal["after", "before", "within", "names"]

# Events are cut at 1024 bytes and end in " ..." there, pod conditions are not.
# Source: k8s.io/kubernetes/pkg/scheduler, truncateMessage.
_MESSAGE_CHARS = 1000
_MOST_DIGITS = 18
_LONGEST_GRACE_SECONDS = 10**9


@dataclass(frozen=True, slots=True)
class Anchor:
    """One claim about the commit time of one revision.

    Attributes:
        revision: Revision the claim is about. With ``uid`` set and a claim other than
            ``names`` it is the revision of the object that the writer had seen.
        at_us: The time, microseconds since the epoch, in the clock's own reckoning.
        claim: ``after``: committed at or after it; ``before``: at or before it;
            ``within``: stamped in the whole second that starts there, while the request
            was handled; ``names``: no time, ``revision`` is a state of ``uid``.
        clock: Whose clock it is: ``API_SERVER``, ``node/NAME`` or ``writer/NAME``.
        prompt: The commit normally lies within milliseconds of the time.
        uid: Object that an event is about; the revision meant is found through it.
        word: What happened to ``uid``: ``BOUND``, ``SEEN``, a verdict's message, or
            nothing that a clock needs.
    """

    revision: int
    at_us: int
    claim: Claim
    clock: str = API_SERVER
    prompt: bool = False
    uid: str = ""
    word: str = ""


def anchors_of(change: ObjectRevision) -> list[Anchor]:
    """List the anchors in one change.

    A DELETE has none: its ``object`` is the state before, whose times are all older.

    Args:
        change: The change; ``previous`` tells which of its times are new.

    Returns:
        The anchors, in no particular order; times in microseconds since the epoch.

    Source: field meanings of meta/v1 ObjectMeta, core/v1 Pod, Event and Node,
    coordination/v1 Lease.
    """
    if change.operation != "PUT" or change.object is None:
        return []
    found = _stamps(change)
    special = _BY_KIND.get(change.kind)
    if special is not None:
        found.extend(special(change, change.object))
    return found


@lru_cache(maxsize=65536)
def _parse(text: str) -> int | None:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return None
    if at.tzinfo is None:
        at = at.replace(tzinfo=UTC)
    # A zero time (year 1) is how Go says "not set".
    seconds = int(at.replace(microsecond=0).timestamp())
    return seconds * SECOND_US + at.microsecond if seconds > 0 else None


def epoch_us(text: JSON) -> int | None:
    """Read an RFC 3339 time.

    Args:
        text: The value of a Time or MicroTime field.

    Returns:
        Microseconds since the epoch; None for a time that is absent, zero or unreadable.
    """
    return _parse(text) if isinstance(text, str) and text else None


def is_revision(text: str) -> bool:
    """Tell whether a resourceVersion is a number that etcd could count to."""
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS


def _dict(value: JSON) -> Mapping[str, JSON]:
    return value if isinstance(value, Mapping) else {}


def _maps(value: JSON) -> list[Mapping[str, JSON]]:
    return [v for v in value if isinstance(v, Mapping)] if isinstance(value, list) else []


def _text(value: JSON) -> str:
    return value if isinstance(value, str) else ""


# --- the API server's own stamps, whole seconds -------------------------------------------


def _newest_stamp(state: Mapping[str, JSON]) -> int | None:
    meta = _dict(state.get("metadata"))
    times = [epoch_us(meta.get("creationTimestamp"))]
    times.extend(epoch_us(entry.get("time")) for entry in _maps(meta.get("managedFields")))
    deleted = epoch_us(meta.get("deletionTimestamp"))
    if deleted is not None:
        # The field holds the request's time plus the grace it granted.
        grace = meta.get("deletionGracePeriodSeconds")
        if not isinstance(grace, int) or not 0 <= grace <= _LONGEST_GRACE_SECONDS:
            grace = 0
        times.append(deleted - grace * SECOND_US)
    return max((t for t in times if t is not None), default=None)


def _stamps(change: ObjectRevision) -> list[Anchor]:
    newest = _newest_stamp(change.object or {})
    if newest is None:
        return []
    return [Anchor(change.revision, newest, "within" if _is_fresh(change, newest) else "after")]


def _is_fresh(change: ObjectRevision, newest: int) -> bool:
    """Tell whether this very request set the newest stamp.

    Bindings, delete confirmations and patches that only remove fields leave all stamps
    as they were, minutes old: such a stamp bounds from below only.
    """
    if change.version == 1:
        return True
    before = _newest_stamp(change.previous) if change.previous is not None else None
    return before is not None and newest > before


# --- what single kinds add ----------------------------------------------------------------


def _lease(change: ObjectRevision, lease: Mapping[str, JSON]) -> Iterator[Anchor]:
    """Yield the holder's time, read just before it sent the renewal."""
    spec = _dict(lease.get("spec"))
    at = epoch_us(spec.get("renewTime"))
    if at is None:
        return
    holder = _text(spec.get("holderIdentity"))
    on_node = change.namespace == "kube-node-lease"
    clock = f"node/{change.name}" if on_node else f"writer/{holder}"
    old = _dict((change.previous or {}).get("spec")).get("renewTime")
    renewed = change.version == 1 or (change.previous is not None and old != spec["renewTime"])
    yield Anchor(change.revision, at, "after", clock, renewed)


def _node(change: ObjectRevision, node: Mapping[str, JSON]) -> Iterator[Anchor]:
    conditions = _maps(_dict(node.get("status")).get("conditions"))
    beats = [epoch_us(c.get("lastHeartbeatTime")) for c in conditions]
    newest = max((b for b in beats if b is not None), default=None)
    if newest is not None:
        yield Anchor(change.revision, newest, "after", f"node/{change.name}")


def _scheduled_condition(pod: Mapping[str, JSON]) -> Mapping[str, JSON]:
    for condition in _maps(_dict(pod.get("status")).get("conditions")):
        if condition.get("type") == "PodScheduled":
            return condition
    return {}


def _node_name(pod: Mapping[str, JSON]) -> str:
    return _text(_dict(pod.get("spec")).get("nodeName"))


def _pod(change: ObjectRevision, pod: Mapping[str, JSON]) -> Iterator[Anchor]:
    """Name the state, so that events about it can be placed, and read a binding's own time."""
    word, old = "", change.previous
    scheduled = _scheduled_condition(pod)
    if _node_name(pod):
        if old is not None and not _node_name(old):
            word = BOUND
            at = epoch_us(scheduled.get("lastTransitionTime"))
            if at is not None and scheduled.get("status") == "True":
                # The API server writes it in the binding request itself.
                # Source: pkg/registry/core/pod/storage, BindingREST.setPodHostAndAnnotations.
                yield Anchor(change.revision, at, "within")
    elif scheduled.get("status") == "False":
        message = _text(scheduled.get("message"))
        if change.version == 1 or (old and _scheduled_condition(old).get("message") != message):
            word = message[:_MESSAGE_CHARS]
    yield Anchor(change.revision, 0, "names", uid=change.uid, word=word)


def _event_clock(event: Mapping[str, JSON]) -> str:
    source = _dict(event.get("source") or event.get("deprecatedSource"))
    component = _text(event.get("reportingComponent") or event.get("reportingController"))
    component = component or _text(source.get("component"))
    host = _text(source.get("host"))
    if component == "kubelet":
        return f"node/{host or _text(event.get('reportingInstance'))}"
    return f"writer/{component}/{_text(event.get('reportingInstance')) or host}"


def _event(change: ObjectRevision, event: Mapping[str, JSON]) -> Iterator[Anchor]:
    """Yield when the event happened, at most its own commit, and what it says about a pod."""
    clock = _event_clock(event)
    times = [
        epoch_us(event.get("eventTime")),
        epoch_us(_dict(event.get("series")).get("lastObservedTime")),
        epoch_us(event.get("lastTimestamp") or event.get("deprecatedLastTimestamp")),
    ]
    newest = max((t for t in times if t is not None), default=None)
    if newest is not None:
        yield Anchor(change.revision, newest, "after", clock)
    if change.previous is None:
        yield from _about_pod(event, clock, times[0])


def _about_pod(event: Mapping[str, JSON], clock: str, at: int | None) -> Iterator[Anchor]:
    """Yield what an event tells of its pod's revisions.

    The scheduler records ``FailedScheduling`` before it patches the condition and
    ``Scheduled`` after the binding returned; an event's subject had been read by then.

    Source: pkg/scheduler/schedule_one.go, handleSchedulingFailure and finishBinding.
    """
    pod = _dict(event.get("involvedObject") or event.get("regarding"))
    uid, seen = _text(pod.get("uid")), _text(pod.get("resourceVersion"))
    if pod.get("kind") != "Pod" or not uid or not is_revision(seen):
        return
    revision, reason = int(seen), event.get("reason")
    if at is None:
        first = epoch_us(event.get("firstTimestamp") or event.get("deprecatedFirstTimestamp"))
        if first is not None and reason == "Scheduled":
            yield Anchor(revision, first + SECOND_US, "before", clock, False, uid, BOUND)
        return
    yield Anchor(revision, at, "before", clock, False, uid, SEEN)
    if reason == "Scheduled":
        yield Anchor(revision, at, "before", clock, True, uid, BOUND)
    elif reason == "FailedScheduling":
        message = _text(event.get("message") or event.get("note"))[:_MESSAGE_CHARS]
        yield Anchor(revision, at, "after", clock, True, uid, message)


_BY_KIND = {"Lease": _lease, "Node": _node, "Pod": _pod, "Event": _event}
