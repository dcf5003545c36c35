"""What texts tell without a revision: event tables, pasted messages, torn-out conditions.

Their words are as good as the stream's; their times are ages, or none. An event that has a
time is joined with the other witnesses, one that has none stands for itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tracekit.replay.attempts import TextVerdict
from tracekit.replay.events import autoscaler_reasons
from tracekit.replay.evidence import EventTime
from tracekit.replay.messages import UNKNOWN, parse_verdict

__all__ = ["Texts", "age_seconds", "assigned_node", "read_texts", "unfolded"]

Row = dict[str, Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_AGE = re.compile(r"(\d+)([ywdhms])")
_SECONDS = {"y": 365 * 86400, "w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1}
_CONDITIONS = {
    "Unschedulable": "unschedulable",
    "SchedulerError": "error",
    "SchedulingGated": "gated",
}
_ASSIGNED = re.compile(r"Successfully assigned \S+ to (\S+)")
# A taint is written {KEY: VALUE}; neither has a blank.
_ODD_TAINT = re.compile(
    r"\{[^{}:]* [^{}:]*:|\{[^{} ]*: [^{}]* [^{}]*\}|\{[^{} ]*:[^ {}][^{}]*\}|:\}"
)
_MOST_JOINTS = 40
_TEXTS = ("namespace", "kind", "name", "uid", "reason", "type")
_AUTOSCALER = frozenset({"NotTriggerScaleUp", "TriggeredScaleUp"})


@dataclass(slots=True)
class Texts:
    """What the texts of a cluster tell.

    Attributes:
        rows: All rows of ``event_texts``, their words unfolded.
        occurrences: Rows of ``event_occurrences``, numbered by ``sub``.
        events: Verdicts that have a time and a pod.
        verdicts: Verdicts that lack one of them.
    """

    rows: list[Row] = field(default_factory=list)
    occurrences: list[Row] = field(default_factory=list)
    events: list[EventTime] = field(default_factory=list)
    verdicts: list[TextVerdict] = field(default_factory=list)


def read_texts(rows: Iterable[Mapping[str, Any]]) -> Texts:
    """Read rows of ``event_texts``.

    Args:
        rows: In their total order.
    """
    texts = Texts()
    for given in rows:
        row = {**given, "message": unfolded(given["message"] or "")}
        texts.rows.append(row)
        if row["form"] == "event" or row["reason"] in _AUTOSCALER:
            texts.occurrences.append(_occurrence(row, len(texts.occurrences)))
        verdict = _verdict(row)
        if verdict is None:
            continue
        if row["form"] == "event" and row["at"] is not None and row["name"]:
            texts.events.append(_event(row, verdict))
        else:
            texts.verdicts.append(_text(row, verdict))
    return texts


def unfolded(message: str) -> str:
    """Return a message without the line breaks that a paste put into it.

    A terminal breaks inside words, an editor between them: the reading with fewer unknown
    reasons is the right one. The old messages of a line for each node keep theirs.
    """
    if "\n" not in message or "fit failure on node" in message:
        return message
    parts = message.split("\n")
    words = [part.strip() for part in parts]
    spaced, glued = " ".join(words), "".join(parts).strip()
    if len(parts) > _MOST_JOINTS or not any(_unknown(spaced)):
        return spaced
    return _joined(words) if any(_unknown(glued)) else glued


def _joined(parts: Sequence[str]) -> str:
    """Join parts, each as it reads better: some breaks stand inside words, some between."""
    text, rest = parts[0], parts[1:]
    for place, part in enumerate(rest, 1):
        behind = "".join(f" {later}" for later in rest[place:])
        spaced, glued = f"{text} {part}", f"{text}{part}"
        text = glued if _unknown(glued + behind) < _unknown(spaced + behind) else spaced
    return text


def _unknown(message: str) -> tuple[int, int, int]:
    """Count what speaks against a reading: no frame, unknown reasons, taints of a wrong form."""
    parsed = parse_verdict(message)
    reasons = (*parsed.reasons, *parsed.preemption_reasons)
    framed = parsed.nodes_total is not None
    odd = len(_ODD_TAINT.findall(message))
    return int(not framed), sum(r.plugin == UNKNOWN for r in reasons), odd


def age_seconds(age: str | None) -> float | None:
    """Read an age as kubectl prints it (``2m58s``, ``3d4h``); None where it is none."""
    if not age or not (parts := _AGE.findall(age)):
        return None
    return float(sum(int(number) * _SECONDS[unit] for number, unit in parts))


def _verdict(row: Row) -> str | None:
    """Name the verdict of a row; None when it tells none.

    Source: scheduler ``schedule_one.go``; contract.md, attempts.
    """
    if row["form"] == "condition":
        failed = row["type"] == "PodScheduled=False"
        return _CONDITIONS.get(row["reason"]) if failed else None
    if row["form"] not in ("event", "message") or row["message"].startswith("skip schedule"):
        return None
    if row["reason"] == "Scheduled":
        return "bound"
    if row["reason"] != "FailedScheduling":
        return None
    return "error" if parse_verdict(row["message"]).shape == "plugin-error" else "unschedulable"


def _event(row: Row, verdict: str) -> EventTime:
    message = "" if verdict == "bound" else row["message"]
    return EventTime(
        row["namespace"],
        row["name"],
        row["uid"] or "",
        (row["at"] - _EPOCH) // _MICROSECOND,
        int((row["at_error_seconds"] or 0) * 1_000_000),
        verdict,
        message,
        assigned_node(row["message"]) if verdict == "bound" else None,
    )


def assigned_node(message: str) -> str | None:
    """Return the node in the words of a Scheduled event.

    Source: scheduler ``schedule_one.go`` finishBinding.
    """
    found = _ASSIGNED.match(message)
    return found[1] if found else None


def _text(row: Row, verdict: str) -> TextVerdict:
    return TextVerdict(
        row["namespace"] or "",
        row["name"] or "",
        row["uid"] or "",
        verdict,
        "" if verdict == "bound" else row["message"],
        row["node"] if verdict == "bound" else None,
        row["form"],
        f"{row['source_id']}/{row['record_no']}/{row['ordinal']}",
    )


def _occurrence(row: Row, number: int) -> Row:
    return {
        "sub": number,
        **{name: row[name] or "" for name in _TEXTS},
        "message": row["message"],
        "at": row["at"],
        "at_error_seconds": row["at_error_seconds"],
        "count": row["count"] or 1,
        "source": row["source"],
        "related": row["related"],
        "event_name": row["event_name"] or "",
        "event_uid": "",
        "first_at": row["first_at"],
        "age_seconds": age_seconds(row["last_seen"]),
        "first_age_seconds": age_seconds(row["first_seen"]),
        "reasons": autoscaler_reasons(row["reason"], row["message"]),
    }
