"""Rows of the tables that kubectl prints for people: events and pods.

Widths vary and pastes mangle them, so a row is known by what stands in it: a type beside a
reason, ages, counts. Where a header is at hand, its columns tell the rest.

Source: kubectl ``describe`` DescribeEvents of 1.2 to 1.36, ``get events`` and ``events``
printers (``printers/internalversion``), cli-runtime ``tableprinter.go``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tracekit.decode.event_text_rows import EventText

__all__ = ["Columns", "event_row", "is_event_header", "pod_row", "read_header"]

_AGE: Final = r"(?:<unknown>|<invalid>|(?:\d+[ywdhms]){1,5})"
_AGES: Final = rf"{_AGE}(?: \(x\d+ over {_AGE}\))?"
# Type Reason Age From Message; pastes lose Age and From.
_DESCRIBED: Final = re.compile(
    rf"[ \t]*(?P<type>Normal|Warning)(?P<gap>[ \t]++)(?P<reason>[A-Za-z][\w.-]*)[ \t]++"
    rf"(?:(?P<age>{_AGES})[ \t]++)?(?P<rest>\S.*)"
)
# FirstSeen LastSeen Count From SubobjectPath Type Reason Message, to 1.7; no Type before 1.3.
_DESCRIBED_BEFORE: Final = re.compile(
    rf"[ \t]*(?P<first>{_AGE})[ \t]++(?P<last>{_AGE})[ \t]++(?P<count>\d+)[ \t]++"
    r"(?:(?P<source>\{[^}]*\}|(?!Normal\b|Warning\b)\S+(?:, \S+)?)[ \t]++)?"
    r"(?:(?P<part>[\w.]+\{[^}]*\})[ \t]++)?"
    r"(?:(?P<type>Normal|Warning)[ \t]++)?(?P<reason>[A-Za-z]\w*)[ \t]++(?P<message>\S.*)"
)
# LASTSEEN FIRSTSEEN COUNT NAME KIND SUBOBJECT TYPE REASON SOURCE MESSAGE, to 1.13.
_LISTED_BEFORE: Final = re.compile(
    rf"(?:(?P<namespace>[a-z0-9][a-z0-9-]*)[ \t]++)?(?P<last>{_AGE})[ \t]++(?P<first>{_AGE})[ \t]++"
    r"(?P<count>\d+)[ \t]++(?P<name>[a-z0-9][\w.:-]*)[ \t]++(?P<kind>[A-Z][A-Za-z]+)[ \t]++"
    r"(?:(?P<part>[\w.]+\{[^}]*\})[ \t]++)?(?P<type>Normal|Warning)[ \t]++(?P<reason>\w+)[ \t]++"
    r"(?P<source>\{[^}]*\}|\S+(?:, \S+)?)(?:[ \t]{2,}+|\t)(?P<message>\S.*)"
)
# [NAMESPACE] LAST SEEN, TYPE, REASON, OBJECT, MESSAGE, from 1.14.
_LISTED: Final = re.compile(
    rf"(?:(?P<namespace>[a-z0-9][a-z0-9-]*)[ \t]++)?(?P<age>{_AGES})[ \t]++(?P<type>Normal|Warning)"
    r"[ \t]++(?P<reason>\w+)[ \t]++(?P<kind>[A-Za-z][A-Za-z.]*)/(?P<name>[\w.:-]+)[ \t]++"
    r"(?P<message>\S.*)"
)
_COUNTED: Final = re.compile(rf"(?P<last>{_AGE})(?: \(x(?P<count>\d+) over (?P<first>{_AGE})\))?")
_SOURCE: Final = re.compile(
    r"(?P<source>[a-z0-9][\w./-]*(?:, [\w.-]+)?)(?:[ \t]{2,}+|\t)(?P<message>\S.*)"
)
# A paste with single spaces keeps the source apart only where it looks like a component.
_KNOWN_SOURCE: Final = re.compile(
    r"(?P<source>[a-z0-9.-]*(?:scheduler|kubelet|controller|autoscaler|karpenter)[a-z0-9.-]*) "
    r"(?P<message>\S.*)"
)
_ABOUT_PODS: Final = re.compile(
    r"FailedScheduling|Scheduled|NotTriggerScaleUp|TriggeredScaleUp|Preempted|Nominated|Pull\w+"
    r"|Created|Started|Killing|BackOff|Failed\w*Mount|Evicted|TaintManagerEviction|OutOf\S+"
    r"|FilteringFailed|UnexpectedAdmissionError|NodeAffinity|NodePorts|PodFitsHostPorts"
)
_EVENT_NAME: Final = re.compile(r"(\S+)\.[0-9a-f]{14,16}")
_CELL: Final = re.compile(r"[ \t]{2,}|\t")
_KINDS: Final = {"po": "Pod", "pod": "Pod", "pods": "Pod", "no": "Node", "node": "Node"}


@dataclass(frozen=True, slots=True)
class Columns:
    """The header of a table: the names of its columns and where each begins."""

    names: tuple[str, ...]
    starts: tuple[int, ...]

    def cells(self, line: str) -> dict[str, str] | None:
        """Cut a row; None when it does not fit the header."""
        texts = self._at_starts(line)
        if texts is None:
            texts = _CELL.split(line.strip())
            if len(texts) == len(self.names) - 1 and "SUBOBJECT" in self.names:
                texts.insert(self.names.index("SUBOBJECT"), "")
            if len(texts) != len(self.names):
                return None
        return dict(zip(self.names, texts, strict=True))

    def _at_starts(self, line: str) -> list[str] | None:
        if "\t" in line or any(s and line[s - 1 : s].strip() for s in self.starts):
            return None
        ends = [*self.starts[1:], len(line)]
        return [line[a:b].strip() for a, b in zip(self.starts, ends, strict=True)]


def read_header(line: str) -> Columns | None:
    """Read the header of a table of pods or events; None when the line is none."""
    words = line.strip()
    if not (words.startswith(("NAME", "LAST")) and words.isupper()):
        return None
    names = tuple(_CELL.split(words))
    if not {"NAME", "READY", "STATUS"} <= set(names) and not {"REASON", "MESSAGE"} <= set(names):
        return None
    starts, at = [], 0
    for name in names:
        at = line.index(name, at)
        starts.append(at)
        at += len(name)
    # A row may hang over to the left of an indented header.
    starts[0] = 0
    return Columns(names, tuple(starts))


def is_event_header(line: str) -> bool:
    """Tell whether a line is the header or the rule of an event table of ``describe``."""
    words = line.split()
    if words[-1:] == ["Message"]:
        return not {"Type", "Reason", "From", "FirstSeen"}.isdisjoint(words)
    return len(words) > 3 and not line.strip(" \t-")


def event_row(line: str, line_no: int, columns: Columns | None = None) -> EventText | None:
    """Read a row of an event table; None when the line is none.

    Args:
        line: The line without its end.
        line_no: Its 1-based number.
        columns: Header of the table of ``get events`` that it may stand in.
    """
    if columns is not None and "REASON" in columns.names:
        cells = columns.cells(line)
        if cells is not None and cells["REASON"] and _is_age(cells):
            return _listed_cells(cells, line_no)
    for pattern in (_LISTED, _LISTED_BEFORE):
        if match := pattern.fullmatch(line.rstrip()):
            return _listed(match.groupdict(), line_no)
    if match := _DESCRIBED_BEFORE.fullmatch(line.rstrip()):
        return _text(match.groupdict(), line_no)
    match = _DESCRIBED.fullmatch(line.rstrip())
    if match is None or (match["gap"] == " " and match["age"] is None):
        return None
    rest = _SOURCE.fullmatch(match["rest"]) or _KNOWN_SOURCE.fullmatch(match["rest"])
    told = rest.groupdict() if rest else {"source": None, "message": match["rest"]}
    return _text(match.groupdict() | told | _ages(match["age"] or ""), line_no)


def _is_age(cells: dict[str, str]) -> bool:
    age = cells.get("LAST SEEN") or cells.get("LASTSEEN") or ""
    return re.fullmatch(_AGES, age) is not None


def _listed_cells(cells: dict[str, str], line_no: int) -> EventText:
    kind, _, name = cells.get("OBJECT", "").rpartition("/")
    event_name = cells.get("NAME", "")
    told: dict[str, str | None] = {
        "namespace": cells.get("NAMESPACE"),
        "kind": cells.get("KIND") or kind,
        "name": name or event_name,
        "type": cells.get("TYPE"),
        "reason": cells["REASON"],
        "message": cells["MESSAGE"],
        "source": cells.get("SOURCE"),
        "count": cells.get("COUNT"),
        "first": cells.get("FIRST SEEN") or cells.get("FIRSTSEEN"),
        "last": cells.get("LASTSEEN"),
        "event_name": event_name,
    }
    if "LAST SEEN" in cells:
        ages = _ages(cells["LAST SEEN"])
        told = ages | {k: v for k, v in told.items() if v or k not in ages}
    return _listed(told, line_no)


def _listed(told: dict[str, str | None], line_no: int) -> EventText:
    if "age" in told:
        told = told | _ages(told["age"] or "")
    kind, name = told.get("kind") or "", told.get("name") or ""
    if match := _EVENT_NAME.fullmatch(name):
        # Up to 1.13 the table shows the Event's own name: its object's, and a time in hex.
        told = told | {"name": match[1], "event_name": name}
    return _text(told | {"kind": _KINDS.get(kind.lower(), kind)}, line_no)


def _ages(age: str) -> dict[str, str | None]:
    match = _COUNTED.fullmatch(age)
    if match is None:
        return {"last": None, "first": None, "count": None}
    return {"last": match["last"], "first": match["first"] or match["last"],
            "count": match["count"] or "1"}  # fmt: skip


def _text(told: dict[str, str | None], line_no: int) -> EventText:
    count, reason = told.get("count") or "", told.get("reason") or ""
    kind = told.get("kind") or ("Pod" if _ABOUT_PODS.fullmatch(reason) else "")
    return EventText(
        record_no=line_no,
        form="event",
        namespace=told.get("namespace") or "",
        kind=kind,
        name=told.get("name") or "",
        reason=reason,
        type=told.get("type") or "",
        message=(told.get("message") or "").strip(),
        count=int(count) if count.isdecimal() and len(count) < 10 else None,
        first_seen=told.get("first"),
        last_seen=told.get("last"),
        source=_component(told.get("source") or ""),
        event_name=told.get("event_name") or "",
    )


def _component(source: str) -> str | None:
    """Return the component of ``{component host}`` or ``component, host``."""
    words = source.strip("{}").replace(",", " ").split()
    return words[0] if words else None


def pod_row(line: str, line_no: int, columns: Columns, namespace: str) -> EventText | None:
    """Read a row of ``kubectl get pods``; None when the line is none.

    Args:
        line: The line without its end.
        line_no: Its 1-based number.
        columns: Header of the table.
        namespace: Namespace where the table shows none.
    """
    if "READY" not in columns.names:
        return None
    cells = columns.cells(line)
    if cells is None or not re.fullmatch(r"\d+/\d+", cells["READY"]):
        return None
    shown = {name: "" if text == "<none>" else text for name, text in cells.items()}
    return EventText(
        record_no=line_no,
        form="row",
        namespace=shown.get("NAMESPACE") or namespace,
        kind="Pod",
        name=shown["NAME"].removeprefix("pod/"),
        reason=shown["STATUS"],
        last_seen=shown.get("AGE") or None,
        source="kubectl get",
        node=shown.get("NODE") or None,
        related=shown.get("NOMINATED NODE") or None,
    )
