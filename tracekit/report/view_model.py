"""Rows to page: every section of a report built from the results of its queries.

Nothing here reads a file, a clock or a store; the same rows give the same page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from itertools import count

from tracekit.errors import ReportError
from tracekit.model.results import QueryResult, ReportFacts
from tracekit.report import numbers
from tracekit.report.context import Context, make_context
from tracekit.report.instants import Window, format_clock, format_instant
from tracekit.report.page import Block, Figure, Page, Section
from tracekit.report.sections.balance import build_balance
from tracekit.report.sections.evidence import build_evidence
from tracekit.report.sections.latency import build_latency
from tracekit.report.sections.moves import build_moves
from tracekit.report.sections.nodes import build_nodes
from tracekit.report.sections.pending import build_pending
from tracekit.report.sections.pods import build_pods, choose_pods
from tracekit.report.sections.verdict import build_verdict
from tracekit.report.sections.zones import build_zones
from tracekit.report.spec import ReportSpec, SectionSpec, read_spec

__all__ = ["SECTIONS", "build_view", "page_data"]

Builder = Callable[[Context], tuple[tuple[Block, ...], str]]

SECTIONS: Mapping[str, Builder] = {
    "verdict": build_verdict,
    "balance": build_balance,
    "pending": build_pending,
    "zones": build_zones,
    "moves": build_moves,
    "pods": build_pods,
    "nodes": build_nodes,
    "latency": build_latency,
    "evidence": build_evidence,
}

# These two say something about an empty record too.
_ALWAYS = ("verdict", "evidence")


def build_view(
    results: Mapping[str, QueryResult], facts: ReportFacts, spec: ReportSpec | None = None
) -> Page:
    """Build the page of a report.

    Args:
        results: By query name; a query that is absent counts as empty.
        facts: What the record is as a whole.
        spec: The report; the scheduling report when None.

    Raises:
        ReportError: If the report names a section nobody builds.
    """
    spec = spec or read_spec()
    context = make_context(results, facts)
    context = replace(context, pods=frozenset(choose_pods(context)))
    numbering = count(1)
    sections = tuple(_section(context, s, numbering) for s in spec.sections)
    return Page(
        title=f"{facts.cluster} · {spec.title}",
        template=spec.template,
        cluster=facts.cluster,
        window=_window_words(context.window),
        revisions=_revision_words(facts),
        generated_by=facts.generated_by,
        sections=sections,
    )


def page_data(page: Page) -> dict[str, object]:
    """Return a page as plain values for JSON: what the templates print, and nothing else."""
    return asdict(page)


def _section(context: Context, spec: SectionSpec, numbering: count[int]) -> Section:
    builder = SECTIONS.get(spec.id)
    if builder is None:
        raise ReportError(
            f"no section is called {spec.id!r}",
            where="report.toml",
            todo=f"use one of {', '.join(SECTIONS)}",
        )
    is_empty = not any(context.rows(q) for q in spec.queries)
    if is_empty and spec.id not in _ALWAYS:
        return Section(
            id=spec.id,
            title=spec.title,
            lead=spec.lead,
            badge="",
            blocks=(),
            empty=spec.empty,
            queries=context.queries(*spec.queries),
        )
    blocks, badge = builder(context)
    return Section(
        id=spec.id,
        title=spec.title,
        lead=spec.lead,
        badge=badge,
        blocks=tuple(_numbered(b, numbering) for b in blocks),
        empty=spec.empty if is_empty else "",
    )


def _numbered(block: Block, numbering: count[int]) -> Block:
    return replace(block, number=next(numbering)) if isinstance(block, Figure) else block


def _window_words(window: Window | None) -> str:
    if window is None:
        return "no time is known"
    begin, end = format_instant(window.begin), format_instant(window.end)
    shown = format_clock(window.end, 0) if window.one_day else end
    return f"{begin} – {shown} UTC, {numbers.seconds(window.seconds)}"


def _revision_words(facts: ReportFacts) -> str:
    if facts.first_revision is None or facts.last_revision is None:
        return "no revisions"
    first, last = numbers.count(facts.first_revision), numbers.count(facts.last_revision)
    return f"revisions {first} – {last}"
