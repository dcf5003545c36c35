"""One pod's page: a claim, its life as a bar, its revisions and the scheduler's verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from tracekit.report import numbers
from tracekit.report.anchors import pod_anchor
from tracekit.report.causes import cause_of, has_no_node
from tracekit.report.context import Context
from tracekit.report.fields import Row, flag, instant, number, text, whole, words
from tracekit.report.page import Cell, Header, Life, Overlay, PodPage, Table

__all__ = ["PodRows", "build_pod_page"]

_MAX_REVISIONS = 16
_MAX_VERDICTS = 8
# Runs of these say one thing over and over; what exactly changed is in the first of them.
_FOLDED_STAGES = ("unschedulable", "updated")
_MAX_POINTERS = 3
_FOLD_FROM = 3


@dataclass(frozen=True, slots=True)
class PodRows:
    """All rows about one pod; ``reasons`` is by attempt id."""

    key: str
    revisions: Sequence[Row]
    attempts: Sequence[Row]
    reasons: Mapping[str, Sequence[Row]]
    pending: Sequence[Row]
    moves: Sequence[Row]


@dataclass(frozen=True, slots=True)
class _Ends:
    """The moments of a pod's life in microseconds since the epoch; None when not seen."""

    created: int | None
    bound: int | None
    started: int | None
    leaving: int | None
    ended: int | None
    last: int | None


def build_pod_page(context: Context, rows: PodRows) -> PodPage:
    """Build one pod's page from its rows."""
    ends = _ends(rows.revisions)
    first = rows.revisions[0]
    failed = [a for a in rows.attempts if text(a, "verdict") == "unschedulable"]
    waited = sum(number(p, "seconds") or 0.0 for p in rows.pending if has_no_node(p))
    return PodPage(
        anchor=pod_anchor(rows.key),
        name=f"{text(first, 'namespace')}/{text(first, 'pod')}",
        facts=_facts(rows),
        claim=_claim(rows, ends, waited, len(failed)),
        life=_life(context, rows, ends),
        revisions=_revisions(context, rows.revisions),
        verdicts=_verdicts(context, rows) if rows.attempts else None,
        message=text(failed[-1], "message") if failed else "",
        summary=_summary(rows, waited, len(failed)),
    )


def _first(rows: Iterable[Row], test: Callable[[Row], bool]) -> int | None:
    return next((instant(r, "at") for r in rows if test(r)), None)


def _ends(rows: Sequence[Row]) -> _Ends:
    def stage(*names: str) -> int | None:
        return _first(rows, lambda r: text(r, "stage") in names)

    return _Ends(
        created=_first(rows, lambda r: text(r, "stage") == "created" or whole(r, "version") == 1),
        bound=_first(rows, lambda r: bool(text(r, "node"))),
        started=_first(
            rows,
            lambda r: text(r, "stage") in ("started", "ready") or text(r, "phase") == "Running",
        ),
        leaving=stage("terminating"),
        ended=stage("deleted", "succeeded", "failed"),
        last=next((at for r in reversed(rows) if (at := instant(r, "at")) is not None), None),
    )


def _workload(rows: PodRows) -> str:
    return next((w for r in (*rows.pending, *rows.moves) if (w := text(r, "workload"))), "")


def _facts(rows: PodRows) -> str:
    last = rows.revisions[-1]
    node = next((n for r in reversed(rows.revisions) if (n := text(r, "node"))), "")
    parts = (
        _workload(rows),
        f"uid {rows.key}",
        f"node {node}" if node else "no node",
        "deleted" if text(last, "operation") == "DELETE" else text(last, "phase"),
        numbers.plural(len(rows.revisions), "revision"),
    )
    return " · ".join(p for p in parts if p)


def _claim(rows: PodRows, ends: _Ends, waited: float, failed: int) -> str:
    node = next((n for r in reversed(rows.revisions) if (n := text(r, "node"))), "")
    tries = f" and {numbers.plural(failed, 'failed attempt')}" if failed else ""
    span = numbers.seconds(waited)
    if node and (waited or failed):
        out = f"Waited {span}{tries} for a node, then went to {node}."
    elif node:
        out = f"Went to {node} without waiting."
    elif any(flag(p, "open") and has_no_node(p) for p in rows.pending):
        out = f"Has waited {span}{tries}, and still has no node."
    elif rows.pending:
        out = f"Waited {span}{tries} and never got a node."
    else:
        out = "Never got a node."
    return " ".join((out, *(_left(m, ends) for m in rows.moves)))


def _left(move: Row, ends: _Ends) -> str:
    at = instant(move, "at")
    stay = (at - ends.bound) / 1e6 if at is not None and ends.bound is not None else None
    after = f" after {numbers.seconds(stay)}" if stay is not None and stay >= 0 else ""
    successor = text(move, "replacement_pod")
    where = text(move, "replacement_node") or "no node yet"
    then = f", replaced by {successor} ({where})" if successor else ""
    return f"Left it{after}: {text(move, 'cause').replace('_', ' ')}{then}."


def _summary(rows: PodRows, waited: float, failed: int) -> tuple[Cell, ...]:
    last = rows.revisions[-1]
    end = "deleted" if text(last, "operation") == "DELETE" else text(last, "phase").lower()
    move = text(rows.moves[-1], "cause").replace("_", " ") if rows.moves else ""
    still = any(flag(p, "open") and has_no_node(p) for p in rows.pending)
    return (
        Cell(text=numbers.seconds(waited), tone="r bad" if still else "r"),
        Cell(text=numbers.plural(failed, "attempt") if failed else "", tone="r mut"),
        Cell(text="no node" if still else move or end, tone="bad" if still else ""),
    )


def _life(context: Context, rows: PodRows, ends: _Ends) -> Life | None:
    begin, end = ends.created or ends.bound, ends.last
    if begin is None or end is None or context.window is None:
        return None
    gone = text(rows.revisions[-1], "operation") == "DELETE" or ends.ended is not None
    end = max(end if gone else max(end, context.window.end), begin + 1)
    stretches = [*_waiting(rows.pending, begin, ends.bound or end), *_stages(ends, end)]
    parts = tuple(
        Overlay(
            css,
            round((a - begin) * 100 / (end - begin), 2),
            round((b - a) * 100 / (end - begin), 2),
            f"{words_}, {numbers.seconds((b - a) / 1e6)}",
        )
        for css, words_, a, b in stretches
        if b > a
    )
    label = context.window.label
    last = f"gone {label(end)}" if gone else f"record ends {label(end)}"
    return Life(parts=parts, begin=f"created {label(begin)}", end=last)


_Stretch = tuple[str, str, int, int]


def _waiting(pending: Iterable[Row], begin: int, end: int) -> Iterable[_Stretch]:
    for row in pending:
        if not has_no_node(row):
            continue
        reason = text(row, "cause") or text(row, "kind")
        low, high = instant(row, "from_at"), instant(row, "to_at")
        if low is not None:
            high = end if high is None else high
            yield f"c-{cause_of(reason).id}", reason, max(low, begin), min(high, end)


def _stages(ends: _Ends, end: int) -> Iterable[_Stretch]:
    marks = (
        ("b-start", "bound, starting", ends.bound, (ends.started, ends.leaving, ends.ended)),
        ("b-run", "running", ends.started, (ends.leaving, ends.ended)),
        ("b-term", "terminating", ends.leaving, (ends.ended,)),
    )
    for css, words_, low, after in marks:
        if low is not None:
            high = min((t for t in after if t is not None and t >= low), default=end)
            yield css, words_, low, min(high, end)


def _revisions(context: Context, rows: Sequence[Row]) -> Table:
    heads = ("Time (UTC)", "Revision", "Stage", "Writer", "Changed")
    lines: list[tuple[Cell, ...]] = []
    for _, group in groupby(_with_node_changes(rows), key=lambda item: _same(item[0])):
        members = list(group)
        if len(members) < _FOLD_FROM:
            lines += [_revision_row(context, row, node, "") for row, node in members]
        else:
            row, node = members[0]
            until = _until(context, row, members[-1][0])
            lines.append(_revision_row(context, row, node, f"×{len(members)}{until}"))
    headers = tuple(Header(h, "r" if h == "Revision" else "") for h in heads)
    return Table(headers=headers, rows=_ends_of(lines, _MAX_REVISIONS), left_out="", tone="rev")


def _with_node_changes(rows: Sequence[Row]) -> list[tuple[Row, str]]:
    """Pair each revision with its node where it is the first that has it."""
    out, before = [], ""
    for row in rows:
        node = text(row, "node")
        out.append((row, node if node != before else ""))
        before = node
    return out


def _same(row: Row) -> tuple[str, str, tuple[str, ...]]:
    stage = text(row, "stage")
    pointers = () if stage in _FOLDED_STAGES else tuple(words(row, "changed"))
    return stage, text(row, "writer"), pointers


def _until(context: Context, first: Row, last: Row) -> str:
    begin, end = context.time(first).text, context.time(last).text
    return f", until {end}" if end != begin else ""


def _ends_of(lines: list[tuple[Cell, ...]], limit: int) -> tuple[tuple[Cell, ...], ...]:
    """Keep the first and the last lines, and say between them how many are left out."""
    if len(lines) <= limit:
        return tuple(lines)
    half = limit // 2
    left = len(lines) - 2 * half
    skip = (Cell(text=f"{left} more, see tracekit replay", tone="skip"),)
    return (*lines[:half], skip, *lines[-half:])


def _revision_row(context: Context, row: Row, node: str, folded: str) -> tuple[Cell, ...]:
    pointers = words(row, "changed")
    shown = ", ".join(pointers[:_MAX_POINTERS])
    left = len(pointers) - _MAX_POINTERS
    more = " ".join(p for p in (f"+{left}" if left > 0 else "", folded) if p)
    return (
        context.time(row),
        Cell(text=text(row, "revision"), tone="r"),
        Cell(text=text(row, "stage"), more=node),
        Cell(text=text(row, "writer") or numbers.UNKNOWN),
        Cell(text=shown, tone="p", more=more),
    )


def _verdicts(context: Context, rows: PodRows) -> Table:
    lines = []
    for _, group in groupby(rows.attempts, key=lambda a: _verdict_key(a, rows.reasons)):
        members = list(group)
        lines.append(_verdict_row(context, members, rows.reasons))
    return Table(
        headers=(
            Header("Time (UTC)"),
            Header("Verdict"),
            Header("Nodes", "r"),
            Header("Reasons, in nodes"),
            Header("Told by"),
        ),
        rows=_ends_of(lines, _MAX_VERDICTS),
        tone="rev",
    )


def _verdict_key(attempt: Row, reasons: Mapping[str, Sequence[Row]]) -> tuple[str, frozenset[str]]:
    found = reasons.get(text(attempt, "attempt_id"), ())
    return text(attempt, "verdict"), frozenset(text(r, "reason") for r in found)


def _reason_words(attempts: Iterable[Row], reasons: Mapping[str, Sequence[Row]]) -> str:
    """Return the reasons of attempts that name the same ones, most nodes first.

    A count that is not the same in all of them is printed from least to most.
    """
    counts: dict[str, list[int]] = {}
    for attempt in attempts:
        for row in reasons.get(text(attempt, "attempt_id"), ()):
            nodes = whole(row, "nodes")
            counts.setdefault(text(row, "reason"), []).extend([] if nodes is None else [nodes])
    ranked = sorted(counts.items(), key=lambda item: (-max(item[1], default=0), item[0]))
    return " · ".join(f"{_range(nodes)}{reason}" for reason, nodes in ranked)


def _range(nodes: Sequence[int]) -> str:
    if not nodes:
        return ""
    low, high = min(nodes), max(nodes)
    return f"{low} " if low == high else f"{low}–{high} "


def _verdict_row(
    context: Context, members: Sequence[Row], reasons: Mapping[str, Sequence[Row]]
) -> tuple[Cell, ...]:
    first, last = members[0], members[-1]
    more = f"×{len(members)}{_until(context, first, last)}" if len(members) > 1 else ""
    verdict = text(first, "verdict")
    node = text(first, "node")
    return (
        context.time(first),
        Cell(
            text=verdict, tone="bad" if verdict in ("unschedulable", "error") else "good", more=node
        ),
        Cell(text=numbers.count(whole(last, "nodes_total")), tone="r"),
        Cell(text=_reason_words(members, reasons), more=more),
        Cell(text=_sources(first), tone="mut"),
    )


def _sources(row: Row) -> str:
    listed = words(row, "sources") or text(row, "sources").split(",")
    return ", ".join(part.strip() for part in listed)
