"""Pods that left their node by what texts and Events alone tell, the pod itself unseen.

A condition tells more than an event, an event more than a row of ``kubectl get pods``; of
one pod the best witness counts. Where the stream has the pod, its own move stands.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson

from tracekit.replay.move_causes import DISRUPTIONS, KUBELET_EVICTIONS, KUBELET_REJECTIONS

__all__ = ["told_moves"]

Row = dict[str, Any]
_ON_NODE = re.compile(r"\bon node (\S+)")
_BY = re.compile(
    r"\bby (?:pod (?P<uid>[0-9a-f]{8}-[0-9a-f-]{27})\b|(?P<name>[a-z0-9.-]+/[a-z0-9.-]+))"
)
_FOR_POD = re.compile(r"higher priority pod: (\S+/\S+)")
_SHORT = re.compile(
    r"enough resource: (?P<resource>[\w./-]+), requested: (?P<requested>\d{1,18}), "
    r"used: (?P<used>\d{1,18}), capacity: (?P<capacity>\d{1,18})"
)
_PREDICATE = re.compile(r"Pod Predicate (\w+) failed")
_RANK = {"condition": 0, "event": 1, "message": 1, "status": 2, "row": 3}


def told_moves(texts: Sequence[Row], tables: Mapping[str, Sequence[Row]]) -> list[Row]:
    """List the moves that only texts, and Events of pods never seen, tell.

    Args:
        texts: Rows of ``event_texts``.
        tables: Rows of ``pods``, ``moves`` and ``event_occurrences`` of the stream.

    Returns:
        Rows of ``moves`` without a revision; one for each pod, where the text names it.
    """
    known = {row["uid"] for row in tables["moves"]} - {""}
    names = {(row["namespace"], row["pod"]) for row in tables["moves"]}
    seen = {row["uid"] for row in tables["pods"]}
    # The taint manager's Events name no uid.
    seen_names = {(row["namespace"], row["pod"]) for row in tables["pods"]}
    events = [
        {**row, "form": "event", "node": None, "source_id": "", "record_no": row["revision"]}
        for row in tables["event_occurrences"]
        if row["kind"] == "Pod" and row["uid"] not in seen
        and (row["uid"] or (row["namespace"], row["name"]) not in seen_names)
    ]  # fmt: skip
    found: dict[tuple[Any, ...], tuple[int, Row]] = {}
    for row in _candidates([*texts, *events]):
        told = _move(row, texts)
        if told is None or row["uid"] in known or (row["namespace"], row["name"]) in names:
            continue
        key = row["namespace"], row["name"], "" if row["name"] else told["detail"]
        rank = _RANK[row["form"]]
        if key not in found or rank < found[key][0]:
            found[key] = rank, {**told, "node": told["node"] or _node_of(found.get(key))}
    return [row for _, row in found.values()]


def _candidates(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row["kind"] in ("Pod", "")]


def _node_of(entry: tuple[int, Row] | None) -> str | None:
    return None if entry is None else entry[1]["node"]


def _move(row: Row, texts: Sequence[Row]) -> Row | None:
    judged = _by_condition(row) if row["form"] == "condition" else _by_reason(row, texts)
    if judged is None:
        return None
    cause, certainty, actor, preemptor = judged
    words = row["message"] or row["reason"]
    if row["form"] in ("row", "status") and row["message"]:
        words = f"{row['reason']}: {row['message']}" if row["reason"] else row["message"]
    node = _ON_NODE.search(row["message"])
    return {
        "namespace": row["namespace"],
        "pod": row["name"],
        "uid": row["uid"] or "",
        "node": row["node"] or (node[1].rstrip(".") if node else None),
        "cause": cause,
        "detail": words,
        "actor": actor,
        "preemptor": preemptor,
        "certainty": certainty,
        "evidence": orjson.dumps(_evidence(row), option=orjson.OPT_SORT_KEYS).decode(),
        "told_at": row.get("at"),
    }


_Judged = tuple[str, str, str | None, str | None]


def _by_condition(row: Row) -> _Judged | None:
    """Read condition DisruptionTarget; to 1.26.0 its words name the preemptor."""
    known = DISRUPTIONS.get(row["reason"])
    if row["type"] != "DisruptionTarget=True" or known is None:
        return None
    named = _FOR_POD.search(row["message"])
    return known[0], "observed", known[1], named[1] if named else None


def _by_reason(row: Row, texts: Sequence[Row]) -> _Judged | None:
    reason, words = row["reason"], row["message"]
    if row["form"] == "row" and reason == "Terminating":
        rival = _nominated(row, texts)
        cause, certainty = ("preemption", "estimated") if rival else ("unknown", "unknown")
        return cause, certainty, None, rival
    if reason == "Preempted":
        return "preemption", "observed", row.get("source"), _preemptor(row)
    if reason == "TaintManagerEviction" and "Marking for deletion" in words:
        return "taint_eviction", "observed", "taint-eviction-controller", None
    if reason in KUBELET_EVICTIONS:
        return "kubelet_eviction", "observed", "kubelet", None
    if KUBELET_REJECTIONS.fullmatch(reason) or _SHORT.search(words) or _PREDICATE.search(words):
        return "kubelet_rejection", "observed", "kubelet", None
    return None


def _preemptor(row: Row) -> str | None:
    related = orjson.loads(row["related"]) if (row["related"] or "").startswith("{") else {}
    if related.get("name"):
        return f"{related.get('namespace', '')}/{related['name']}"
    named = _BY.search(row["message"])
    return related.get("uid") or ((named["uid"] or named["name"]) if named else None)


def _nominated(victim: Row, texts: Sequence[Row]) -> str | None:
    """Return the one pod that waits for a terminating pod's node, by the same table."""
    waiting = {
        f"{row['namespace']}/{row['name']}"
        for row in texts
        if row["form"] == "row" and row["source_id"] == victim["source_id"]
        and row["related"] and row["related"] == victim["node"]
    }  # fmt: skip
    return waiting.pop() if len(waiting) == 1 else None


def _evidence(row: Row) -> Row:
    told: Row = {"told_by": row["form"], "reason": row["reason"]}
    if short := _SHORT.search(row["message"]):
        numbers = {name: int(short[name]) for name in ("requested", "used", "capacity")}
        told |= {"resource": short["resource"], **numbers}
    return told
