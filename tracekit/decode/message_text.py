"""Bare messages as people paste them: a scheduler's or autoscaler's words without their event.

Source: facts/formats.md §1.5, §3 and §4; FitError.Error() of 1.4 to 1.36; kubelet
``lifecycle/predicate.go``; cluster-autoscaler ``eventing_scale_up_processor.go``.
"""

from __future__ import annotations

import re
from typing import Any, Final

from tracekit.decode.event_text_rows import EventText

__all__ = ["is_open", "message_text", "pod_in_words"]

_QUOTED_EVENT: Final = re.compile(
    r'Event\(v1\.ObjectReference\{Kind:"(?P<kind>[^"]*)", Namespace:"(?P<namespace>[^"]*)", '
    r'Name:"(?P<name>[^"]*)", UID:"(?P<uid>[^"]*)"[^}]*\}\): '
    r"type: '(?P<type>\w*)' reason: '(?P<reason>\w*)' (?P<message>.*)",
    re.DOTALL,
)
# What a message is known by, and the reason of the event that would carry it.
_KNOWN: Final = tuple(
    (re.compile(pattern), reason)
    for pattern, reason in (
        (r"\b0/\d+ nodes are available", "FailedScheduling"),
        (r"\b[Pp]od didn't trigger scale-up", "NotTriggerScaleUp"),
        (r"\b[Pp]od triggered scale-up", "TriggeredScaleUp"),
        (r"No nodes are available that match all", "FailedScheduling"),
        (r"^\s*pod \(\S+\) failed to fit in any node", "FailedScheduling"),
        (r"^\s*fit failure (?:on node \(|summary on nodes)", "FailedScheduling"),
        (r"^\s*no nodes available to schedule pods", "FailedScheduling"),
        (r"^\s*pod has unbound (?:immediate )?PersistentVolumeClaims", "FailedScheduling"),
        (r'^\s*persistentvolumeclaim "[^"]*" (?:not found|bound to)', "FailedScheduling"),
        (r'^\s*(?:error while )?running "?\w+"? (?:\w+ )?plugin', "FailedScheduling"),
        (r"^\s*(?:AssumePodVolumes failed|Binding rejected): ", "FailedScheduling"),
        (r"^\s*skip schedule deleting pod", "FailedScheduling"),
        (r"^\s*Successfully assigned \S+ to \S+", "Scheduled"),
        (r"^\s*(?:Preempted )?by (?:\S+/\S+|a pod|pod(?:group)? \S+) on node ", "Preempted"),
        (r"^\s*(?:Marking for|Cancelling) deletion (?:of )?Pod ", "TaintManagerEviction"),
        (r"Node didn't have enough resource: ", "OutOf"),
        (r"^\s*Pod (?:Predicate \w+ failed|was rejected: )", "Rejected"),
        (r"^\s*(?:Pod )?The node (?:was low on resource|had condition): ", "Evicted"),
    )
)
_RESOURCE: Final = re.compile(r"enough resource: (?P<resource>[\w./-]+)")
_OPEN_END: Final = re.compile(r"[.)}\"]\s*$|\.\.\.\s*$")
_PODS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"^\s*Successfully assigned (?:(?P<namespace>[a-z0-9-]+)/)?(?P<name>[a-z0-9][\w.-]*) to "
        r"(?P<node>\S+)",
        r"^\s*pod \((?:(?P<namespace>[a-z0-9-]+)_)?(?P<name>[a-z0-9][\w.-]*)\) failed to fit",
        r'plugin for pod "(?:(?P<namespace>[a-z0-9-]+)/)?(?P<name>[a-z0-9][\w.-]*)"',
        r"skip schedule deleting pod: (?P<namespace>[a-z0-9-]+)/(?P<name>[a-z0-9][\w.-]*)",
        r"deletion (?:of )?Pod (?P<namespace>[a-z0-9-]+)/(?P<name>[a-z0-9][\w.-]*)",
        r"reject the pod (?P<name>[a-z0-9][\w.-]*) is unschedulable",
    )
)


def message_text(line: str, line_no: int) -> EventText | None:
    """Read a line as a message; None when it is none that tracekit knows.

    Args:
        line: The line, or the lines of a message joined by newlines.
        line_no: 1-based number of the first.
    """
    if match := _QUOTED_EVENT.search(line):
        named = ("kind", "namespace", "name", "uid", "type", "reason", "message")
        told: dict[str, Any] = {name: match[name] for name in named}
        return EventText(record_no=line_no, form="event", **told)
    reason = next((reason for pattern, reason in _KNOWN if pattern.search(line)), None)
    if reason is None:
        return None
    if reason == "OutOf" and (resource := _RESOURCE.search(line)):
        reason = f"OutOf{resource['resource']}"
    return EventText(
        record_no=line_no, form="message", kind="Pod", reason=reason, message=line.strip()
    )


def is_open(message: str) -> bool:
    """Tell whether a message ends as if a line break had cut it."""
    return _OPEN_END.search(message) is None


def pod_in_words(message: str) -> tuple[str, str, str | None]:
    """Return namespace, name and node that a message names; empty where it does not."""
    for pattern in _PODS:
        if match := pattern.search(message):
            told = match.groupdict()
            return told.get("namespace") or "", told.get("name") or "", told.get("node")
    return "", "", None
