"""What kubectl prints for people, line by line: event tables, pod tables, descriptions.

Pastes mix them with prompts, comments and bare messages, cut them and wrap them. A line
that is none of these goes on with the message before it, or is kept as unknown.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tracekit.decode.event_text_rows import EventText
from tracekit.decode.kubectl_tables import (
    Columns,
    event_row,
    is_event_header,
    pod_row,
    read_header,
)
from tracekit.decode.message_text import is_open, message_text, pod_in_words

__all__ = ["Heard", "KubectlText"]

_LONGEST: Final = 1 << 15  # characters of a line that may be a row or a message
_PROMPT: Final = re.compile(r"\s*(?:\S*[$#>%]\s+)?(?P<command>(?:kubectl|oc|k)\s.*)")
_FIELD: Final = re.compile(
    r"(?P<name>[A-Z][A-Za-z-]*(?: [A-Z][A-Za-z-]*){0,3}):(?:\s+(?P<value>\S.*))?"
)
# What quoting and terminals put around a line; fences of Markdown.
_BORDER: Final = re.compile(r"^(?:> ?|[│|] ?)|\s*[│|]\s*$")
_FENCE: Final = re.compile(r"\s*(?:`{3,}|~{3,})\w*\s*")
_FRAME: Final = re.compile(r"0/\d+ nodes are available")
_POD_WORDS: Final = frozenset({"po", "pod", "pods"})
_FLAGS_WITH_VALUE: Final = frozenset({"-n", "--namespace", "-o", "--output", "-l", "--selector",
                                      "--context", "--kubeconfig", "--field-selector"})  # fmt: skip
_PHASES: Final = {
    **{phase: phase for phase in ("Pending", "Running", "Succeeded", "Failed", "Unknown")},
    "Completed": "Succeeded",
    "ContainerCreating": "Pending",
    "PodInitializing": "Pending",
    "SchedulingGated": "Pending",
    "Evicted": "Failed",
}
_FAILED: Final = re.compile(
    r"OutOf\S+|Evicted|NodeAffinity|NodePorts|PodFitsHostPorts|UnexpectedAdmissionError|NodeLost"
    r"|Preempting|NodeShutdown|Shutdown|Terminated"
)


@dataclass(slots=True)
class Heard:
    """What lines have told so far.

    Attributes:
        texts: Events, messages, rows and states of pods.
        pods: Partial pods that tables and descriptions show, as Kubernetes JSON, by line.
        unknown: First line and words of each stretch that is none of these.
    """

    texts: list[EventText] = field(default_factory=list)
    pods: list[tuple[int, dict[str, Any]]] = field(default_factory=list)
    unknown: list[tuple[int, str]] = field(default_factory=list)


@dataclass(slots=True)
class _Described:
    """The object that a description is about, as far as it has been read."""

    line_no: int
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """Tell pods and nodes apart, which no field names."""
        if "Roles" in self.fields or "Taints" in self.fields:
            return "Node"
        podlike = {"Node", "Containers", "IP", "QoS Class", "Status"} & set(self.fields)
        return "Pod" if podlike else ""


class KubectlText:
    """Takes lines, tells what they said; ``flush`` ends it."""

    def __init__(self) -> None:
        self.heard = Heard()
        self._columns: Columns | None = None
        self._described: _Described | None = None
        self._rows: list[EventText] = []
        self._in_table = False
        self._in_unknown = False
        self.namespace, self.pod = "default", ""
        self._of_rows = ""
        self._goes_on_next = False

    @property
    def context(self) -> tuple[str, str]:
        """Namespace and name of the pod that the last command asked for."""
        return (self.namespace, self.pod) if self.pod else ("", "")

    def take(self) -> Heard:
        """Return what was told since the last call."""
        heard, self.heard = self.heard, Heard()
        return heard

    def feed(self, line: str, line_no: int) -> None:
        """Take one line, without its end."""
        line = _without_border(line)
        if len(line) > _LONGEST:
            self._unknown(line, line_no)
        elif not line.strip() or _FENCE.fullmatch(line):
            self._in_unknown, self._goes_on_next = False, False
        elif not self._structure(line, line_no):
            self._words(line, line_no)

    def flush(self) -> None:
        """End whatever is still open."""
        self._end_rows()
        self._end_description()

    def interrupt(self) -> None:
        """End a table, because something else than text follows."""
        self._end_rows()
        self._columns = None

    def _structure(self, line: str, line_no: int) -> bool:
        """Take in a line that says what the next ones are."""
        if match := _PROMPT.fullmatch(line):
            self.flush()
            self._columns = None
            self._command(match["command"])
        elif (columns := read_header(line)) is not None:
            self.flush()
            self._columns = columns
        elif is_event_header(line):
            self._in_table = True
        elif line.strip() in ("---", "..."):
            self.flush()
            self._columns = None
        else:
            return self._field(line, line_no)
        self._in_unknown = False
        return True

    def _command(self, command: str) -> None:
        """Remember what the next lines are about.

        Source: kubectl reference: without -n a context's namespace, ``default`` by default.
        """
        self.namespace, self.pod = "default", ""
        self._of_rows = ""
        try:
            words = shlex.split(command.split("|")[0])
        except ValueError:
            words = command.split("|")[0].split()
        plain: list[str] = []
        rest = iter(words)
        for word in rest:
            name, _, value = word.partition("=")
            if name in _FLAGS_WITH_VALUE:
                value = value or next(rest, "")
                self.namespace = value if name in ("-n", "--namespace") else self.namespace
            elif not word.startswith("-"):
                plain.append(word)
        everywhere = {"-A", "--all-namespaces"} & set(words)
        self._of_rows = "" if everywhere else self.namespace
        asked = [part for word in plain[2:] for part in word.split("/", 1)]
        if len(asked) > 1 and asked[0] in _POD_WORDS:
            self.pod = asked[1]

    def _field(self, line: str, line_no: int) -> bool:
        """Take in a field of a description, which stands in the first column."""
        match = _FIELD.fullmatch(line.rstrip())
        if match is None:
            # Below a field stand its details: containers, volumes, conditions.
            return self._described is not None and line[0] in " \t" and not self._in_table
        name, value = match["name"], match["value"] or ""
        if self._rows and self._described is None and name not in ("Name", "Status", "Reason"):
            return False
        if name == "Name":
            self.flush()
        if name == "Events":
            self._in_table = value != "<none>"
            return True
        self._end_rows()
        if self._described is None:
            self._described = _Described(line_no)
        self._described.fields.setdefault(name, value)
        self._in_unknown = False
        return True

    def _words(self, line: str, line_no: int) -> None:
        """Take in a row, a message, or what goes on with one."""
        if self._columns is not None:
            row = pod_row(line, line_no, self._columns, self.namespace)
            if row is not None:
                self._pod_row(row)
                return
        if self._goes_on(line):
            self._append(line)
            return
        text = event_row(line, line_no, self._columns) or message_text(line, line_no)
        if text is not None:
            self._rows.append(text)
            self._in_unknown, self._goes_on_next = False, True
        elif self._goes_on_next and self._rows and _may_go_on(self._rows[-1]):
            self._append(line)
        else:
            self._unknown(line, line_no)

    def _goes_on(self, line: str) -> bool:
        """Tell whether a line that looks like a message is the rest of the one before."""
        if not self._rows:
            return False
        before = self._rows[-1].message.rstrip()
        failures = "failed to fit in any node" in before or "fit failure on node" in before
        if failures and line.lstrip().startswith("fit failure"):
            return True
        if before.endswith("preemption:") and line.lstrip().startswith("0/"):
            return True
        frame = _FRAME.search(line)
        nested = frame is not None and line[: frame.start()].rstrip().endswith("preemption:")
        return nested and is_open(before) and event_row(line, 1) is None

    def _append(self, line: str) -> None:
        last = self._rows[-1]
        if len(last.message) + len(line) <= _LONGEST:
            # One blank may be the one a terminal broke at; more are an indent.
            rest = line.strip() if line.startswith("  ") or "\t" in line else line.rstrip("\r")
            self._rows[-1] = replace(last, message=f"{last.message}\n{rest}")

    def _pod_row(self, row: EventText) -> None:
        self._end_rows()
        self.heard.texts.append(row)
        status: dict[str, Any] = {"phase": _PHASES.get(row.reason)}
        if _FAILED.fullmatch(row.reason):
            status |= {"phase": "Failed", "reason": row.reason}
        status["nominatedNodeName"] = row.related
        self.heard.pods.append((row.record_no, _partial_pod(row, row.node, status)))

    def _end_rows(self) -> None:
        """Name the pod that a table of one object is about, where only one row tells it."""
        rows, self._rows = self._rows, []
        self._in_table = False
        if not rows:
            return
        namespace, kind, name = self._about()
        told = {pod_in_words(r.message)[:2] for r in rows if r.reason == "Scheduled"} - {("", "")}
        if not name and len(told) == 1:
            (namespace, name), kind = told.pop(), "Pod"
        for row in rows:
            if row.name and not row.namespace and row.form == "event":
                of_name = {one for one, pod in told if pod == row.name}
                known = of_name.pop() if len(of_name) == 1 else self._of_rows
                row = replace(row, namespace=known if row.kind != "Node" else "")
            self.heard.texts.append(_about_pod(row, namespace, kind, name))

    def _about(self) -> tuple[str, str, str]:
        if self._described is None or "Name" not in self._described.fields:
            return (self.namespace, "Pod", self.pod) if self.pod else ("", "", "")
        fields = self._described.fields
        return fields.get("Namespace", ""), self._described.kind, fields["Name"]

    def _end_description(self) -> None:
        described, self._described = self._described, None
        if described is None:
            return
        fields = described.fields
        namespace, name = fields.get("Namespace", ""), fields.get("Name", "")
        node = fields.get("Node", "").partition("/")[0]
        node = "" if node == "<none>" else node
        about = EventText(
            record_no=described.line_no, form="status", namespace=namespace, kind="Pod", name=name,
            reason=fields.get("Reason", ""), type=fields.get("Status", "").split(" ")[0],
            message=fields.get("Message", ""), source="kubectl describe", node=node or None,
        )  # fmt: skip
        if about.reason or about.message:
            self.heard.texts.append(about)
        if described.kind == "Pod" and name and "Namespace" in fields:
            self.heard.pods.append((described.line_no, _described_pod(about, fields)))

    def _unknown(self, line: str, line_no: int) -> None:
        if not self._in_unknown:
            self.heard.unknown.append((line_no, line.strip()[:200]))
        self._in_unknown = True


def _without_border(line: str) -> str:
    """Take off what a quotation or a terminal puts around a line."""
    shown = line.rstrip()
    if shown.endswith(("│", "|")):
        line = shown[:-1].rstrip()
    if line.startswith((">", "│", "|")):
        line = line[1:].removeprefix(" ")
    return line


def _may_go_on(row: EventText) -> bool:
    return row.form == "event" or is_open(row.message)


def _about_pod(row: EventText, namespace: str, kind: str, name: str) -> EventText:
    """Fill in what the surroundings or the words of a row tell of its object."""
    if row.name:
        return row
    told_namespace, told_name, node = pod_in_words(row.message)
    if name:
        return replace(row, namespace=namespace, kind=kind or row.kind, name=name, node=node)
    return replace(row, namespace=told_namespace, name=told_name, node=node)


def _described_pod(about: EventText, fields: dict[str, str]) -> dict[str, Any]:
    status: dict[str, Any] = {
        "phase": _PHASES.get(about.type),
        "reason": about.reason,
        "message": about.message,
        "nominatedNodeName": fields.get("NominatedNodeName"),
    }
    pod = _partial_pod(about, about.node, status)
    if fields.get("Priority", "").lstrip("-").isdecimal():
        pod.setdefault("spec", {})["priority"] = int(fields["Priority"][:12])
    return pod


def _partial_pod(about: EventText, node: str | None, status: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": about.name, "namespace": about.namespace},
    }
    if node:
        pod["spec"] = {"nodeName": node}
    pod["status"] = {name: value for name, value in status.items() if value}
    return pod
