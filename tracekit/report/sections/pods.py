"""Pods: which of them get a page in the file, and the section that holds the pages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from tracekit.report import numbers
from tracekit.report.causes import cause_of, has_no_node, present_causes
from tracekit.report.context import Context, pod_key
from tracekit.report.fields import Row, number, text
from tracekit.report.legends import cause_legend
from tracekit.report.page import Block, PodSection
from tracekit.report.sections.pod_page import PodRows, build_pod_page

__all__ = ["MAX_PODS", "build_pods", "choose_pods"]

MAX_PODS = 200
_MOVED_SHARE = 4
# A pod that ended as it was meant to is the least likely one that somebody looks for.
_QUIET_CAUSES = ("job_finished", "scale_down", "owner_deleted")


def choose_pods(context: Context, limit: int = MAX_PODS) -> list[str]:
    """Choose the pods that get a page, the ones that waited longest first.

    Where not all fit, a quarter of the places is for pods that were moved against their
    will, by time, and the rest is for the longest waits.
    """
    waited: dict[str, float] = defaultdict(float)
    for row in context.rows("pending"):
        if has_no_node(row):
            waited[pod_key(row)] += number(row, "seconds") or 0.0
    names: dict[str, tuple[str, str]] = {}
    for row in context.rows("pod_revisions"):
        names.setdefault(pod_key(row), (text(row, "namespace"), text(row, "pod")))
    ranked = sorted(names, key=lambda k: (-waited.get(k, 0.0), names[k], k))
    if len(ranked) <= limit:
        return ranked
    moved = [
        key
        for row in context.rows("moves")
        if text(row, "cause") not in _QUIET_CAUSES and (key := pod_key(row)) in names
    ]
    kept = set(list(dict.fromkeys(moved))[: limit // _MOVED_SHARE])
    for key in ranked:
        if len(kept) >= limit:
            break
        kept.add(key)
    return [key for key in ranked if key in kept]


def build_pods(context: Context) -> tuple[tuple[Block, ...], str]:
    """Build the pod pages; the badge is the number of pods seen."""
    chosen = choose_pods(context)
    gathered = _gather(context, chosen)
    seen = len({pod_key(r) for r in context.rows("pod_revisions")})
    left = seen - len(chosen)
    section = PodSection(
        pods=tuple(build_pod_page(context, gathered[key]) for key in chosen),
        queries=context.queries("pod_revisions", "attempts", "attempt_reasons", "pending", "moves"),
        legend=cause_legend(
            present_causes(
                cause_of(text(r, "cause") or text(r, "kind")).id
                for rows in gathered.values()
                for r in rows.pending
                if has_no_node(r)
            )
        ),
        left_out=_left_out(len(chosen), left),
        empty="" if chosen else "No pod has a revision in the record.",
    )
    return (section,), numbers.count(seen) if seen else ""


def _left_out(shown: int, left: int) -> str:
    if left <= 0:
        return ""
    return (
        f"{numbers.plural(shown, 'pod')} of {numbers.count(shown + left)}: those that waited "
        f"longest or were moved. The other {numbers.count(left)} are not in this file; "
        "tracekit replay NAMESPACE/POD shows any of them."
    )


def _by_pod(rows: Iterable[Row], wanted: set[str]) -> dict[str, list[Row]]:
    out: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        key = pod_key(row)
        if key in wanted:
            out[key].append(row)
    return out


def _gather(context: Context, chosen: list[str]) -> Mapping[str, PodRows]:
    wanted = set(chosen)
    by_query = {q: _by_pod(context.rows(q), wanted) for q in ("pod_revisions", "pending", "moves")}
    attempts = _attempts(context, by_query["pod_revisions"])
    ids = {text(a, "attempt_id") for rows in attempts.values() for a in rows}
    reasons: dict[str, list[Row]] = defaultdict(list)
    for row in context.rows("attempt_reasons"):
        if text(row, "attempt_id") in ids:
            reasons[text(row, "attempt_id")].append(row)
    return {
        key: PodRows(
            key,
            by_query["pod_revisions"][key],
            attempts.get(key, []),
            reasons,
            by_query["pending"].get(key, []),
            by_query["moves"].get(key, []),
        )
        for key in chosen
    }


def _attempts(context: Context, revisions: Mapping[str, list[Row]]) -> dict[str, list[Row]]:
    """Return attempts by pod; one that only a log told goes to the only pod of its name."""
    uids: dict[str, set[str]] = defaultdict(set)
    for row in context.rows("pod_revisions"):
        uids[f"{text(row, 'namespace')}/{text(row, 'pod')}"].add(pod_key(row))
    out: dict[str, list[Row]] = defaultdict(list)
    for row in context.rows("attempts"):
        key = pod_key(row)
        if not text(row, "uid") and len(uids.get(key, ())) == 1:
            key = next(iter(uids[key]))
        if key in revisions:
            out[key].append(row)
    return out
