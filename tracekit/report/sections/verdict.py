"""Verdict: one sentence with the two numbers that matter, and the facts under it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tracekit.report import numbers
from tracekit.report.causes import cause_of, has_no_node
from tracekit.report.context import Context, pod_key
from tracekit.report.fields import Row, flag, number, text
from tracekit.report.page import Block, Verdict

__all__ = ["build_verdict"]

_QUERIES = ("bindings", "attempts", "pending", "pod_revisions", "diagnostics", "gaps")


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Who waited: by pod the seconds in all, the last row, and the pods that still wait."""

    seconds: dict[str, float]
    last: dict[str, Row]
    open: dict[str, Row]


def build_verdict(context: Context) -> tuple[tuple[Block, ...], str]:
    """Build the head of the page; it has no badge."""
    waiting = _waiting(context)
    verdict = Verdict(
        sentence=_sentence(context, waiting),
        support=_support(waiting),
        facts=_facts(context, waiting),
        banners=_banners(context),
        queries=context.queries(*_QUERIES),
    )
    return (verdict,), ""


def _waiting(context: Context) -> _Waiting:
    out = _Waiting({}, {}, {})
    for row in filter(has_no_node, context.rows("pending")):
        key = pod_key(row)
        out.seconds[key] = out.seconds.get(key, 0.0) + (number(row, "seconds") or 0.0)
        out.last[key] = row
        if flag(row, "open"):
            out.open[key] = row
    return out


def _live(context: Context) -> int:
    last: dict[str, Row] = {}
    for row in context.rows("pod_revisions"):
        last[pod_key(row)] = row
    return sum(
        text(r, "operation") != "DELETE" and text(r, "phase") not in ("Succeeded", "Failed")
        for r in last.values()
    )


def _sentence(context: Context, waiting: _Waiting) -> str:
    live, stuck = _live(context), len(waiting.open)
    if stuck:
        of_live = f" of {numbers.count(live)} live" if live >= stuck else ""
        verb = "has" if stuck == 1 and not of_live else "have"
        noun = "pod" if stuck == 1 and not of_live else "pods"
        return f"{numbers.count(stuck)}{of_live} {noun} {verb} no node when the record ends."
    if not context.rows("pod_revisions") and not context.rows("attempts"):
        return "Nothing about pods is recorded yet."
    if any(waiting.seconds.values()):
        longest = max(waiting.seconds.values())
        return (
            "No pod waits for a node when the record ends; "
            f"the longest wait was {numbers.seconds(longest)}."
        )
    return "No pod had to wait for a node."


def _support(waiting: _Waiting) -> str:
    if not waiting.seconds:
        return ""
    out = []
    if waiting.open:
        causes = Counter(cause_of(text(r, "cause")).label for r in waiting.open.values())
        ranked = sorted(causes.items(), key=lambda item: (-item[1], item[0]))[:3]
        named = ", ".join(f"{label.lower()} {numbers.count(n)}" for label, n in ranked)
        out.append(f"What stops most nodes for them now: {named}.")
    key = min(waiting.seconds, key=lambda k: (-waiting.seconds[k], k))
    row = waiting.last[key]
    out.append(
        f"{text(row, 'namespace')}/{text(row, 'pod')} waited longest, "
        f"{numbers.seconds(waiting.seconds[key])} in all."
    )
    return " ".join(out)


def _facts(context: Context, waiting: _Waiting) -> tuple[tuple[str, str], ...]:
    pods = {pod_key(r) for r in context.rows("pod_revisions")}
    paths = Counter(text(r, "path") or "unknown" for r in context.rows("bindings"))
    verdicts = Counter(text(r, "verdict") for r in context.rows("attempts"))
    nodes = {text(r, "node"): text(r, "zone") for r in context.rows("node_balance")}
    zones = len({z for z in nodes.values() if z})
    others = ", ".join(
        f"{numbers.count(n)} {p}" for p, n in sorted(paths.items()) if p != "scheduler"
    )
    own = [
        (numbers.count(len(nodes)), f"nodes seen in {numbers.plural(zones, 'zone')}"),
        (numbers.count(len(pods)), "pods seen"),
        (numbers.count(paths["scheduler"]), "bindings" + (f" (and {others})" if others else "")),
        (numbers.count(verdicts["unschedulable"]), "unschedulable attempts"),
        (numbers.count(sum(waiting.seconds.values())), "pod-seconds without a node"),
    ]
    held = [(numbers.count(n), words) for words, n in context.facts.counts.items()]
    return tuple(own + held)


def _banners(context: Context) -> tuple[str, ...]:
    out = []
    diagnostics = context.rows("diagnostics")
    for severity, words in (("DATA_LOSS", "Data was lost"), ("ERROR", "Something is wrong")):
        rows = [r for r in diagnostics if text(r, "severity") == severity]
        if rows:
            codes = ", ".join(sorted({text(r, "code") for r in rows}))
            times = int(sum(number(r, "count") or 0 for r in rows))
            sources = len({text(r, "source") for r in rows})
            out.append(
                f"{words} while reading: {codes}, {numbers.plural(times, 'time')} "
                f"in {numbers.plural(sources, 'source')}."
            )
    gaps = len(context.rows("gaps"))
    if gaps:
        verb = "is" if gaps == 1 else "are"
        out.append(
            f"The record has {numbers.plural(gaps, 'hole')}. What happened inside {verb} "
            "not known: figures leave it blank, and sums over time may be off by it."
        )
    return tuple(out)
