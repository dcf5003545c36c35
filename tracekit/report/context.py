"""What every section builder is given: the rows, the window, the holes, the zones, the pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tracekit.model.results import QueryResult, ReportFacts
from tracekit.report.anchors import link_to, pod_anchor
from tracekit.report.fields import Row, instant, number, text
from tracekit.report.instants import Window, parse_instant
from tracekit.report.marks import percent_of_plot
from tracekit.report.numbers import error_bound
from tracekit.report.page import Axis, Cell, ColumnHelp, Query

__all__ = ["Context", "Zone", "make_context", "pod_key"]

ZONE_COLOURS = 3


@dataclass(frozen=True, slots=True)
class Zone:
    """A zone: its colour class and the letter that says the same without colour."""

    name: str
    css: str
    letter: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Everything a section may read.

    Attributes:
        window: None when nothing in the record has a time.
        holes: Gaps of the record in plot units.
        zones: By zone label, in the page's fixed order; the empty label is last.
        pods: Keys of the pods that have a page in this file.
    """

    results: Mapping[str, QueryResult]
    facts: ReportFacts
    window: Window | None
    holes: tuple[tuple[int, int], ...] = ()
    zones: Mapping[str, Zone] = field(default_factory=dict)
    pods: frozenset[str] = frozenset()

    def rows(self, name: str) -> list[dict[str, object]]:
        """Return a query's rows; none when it was not run."""
        result = self.results.get(name)
        return result.rows if result else []

    def queries(self, *names: str) -> tuple[Query, ...]:
        """Return the queries a figure rests on."""
        return tuple(self._query(n) for n in names)

    def _query(self, name: str) -> Query:
        result = self.results.get(name)
        if result is None:
            return Query(name, "", 0)
        columns = tuple(ColumnHelp(c.name, c.unit, c.meaning) for c in result.columns)
        return Query(name, result.sql.strip(), len(result.rows), columns)

    def axis(self) -> Axis:
        """Return the shared time axis."""
        ticks = self.window.ticks() if self.window else ()
        return Axis(ticks, tuple(percent_of_plot(a, b) for a, b in self.holes))

    def pod_cell(self, row: Row) -> Cell:
        """Return a pod's name, linked when the file has its page."""
        key = pod_key(row)
        name = f"{text(row, 'namespace')}/{text(row, 'pod')}"
        return Cell(text=name, tone="m pn", href=self.pod_href(key))

    def pod_href(self, key: str) -> str:
        """Return the link to a pod's page, empty when the file has none."""
        return link_to(pod_anchor(key)) if key in self.pods else ""

    def zone(self, name: str) -> Zone:
        """Return a zone by its label; an unknown one counts as unlabelled."""
        return self.zones.get(name) or Zone(name, "zn", "–")

    def zone_note(self) -> str:
        """Return what to know about zone colours when they are used more than once."""
        many = len(self.zones) - 1 > ZONE_COLOURS
        return " Zone colours repeat; the names and letters tell zones apart." if many else ""

    def time(self, row: Row, name: str = "at", digits: int = 3) -> Cell:
        """Return an instant with its bound; a time that nobody observed looks so."""
        at = instant(row, name)
        if at is None or self.window is None:
            return Cell(text="–", tone="mut")
        bound = _bound(row)
        return Cell(text=self.window.label(at, digits), bound=bound, tone="e" if bound else "t")


def _bound(row: Row) -> str:
    certainty = text(row, "at_certainty")
    if certainty in ("", "observed"):
        return ""
    return error_bound(number(row, "at_error_seconds"))


def pod_key(row: Row) -> str:
    """Return what tells one pod from another: its uid, else its name."""
    return text(row, "uid") or f"{text(row, 'namespace')}/{text(row, 'pod')}"


def make_context(results: Mapping[str, QueryResult], facts: ReportFacts) -> Context:
    """Find the window, the holes and the zones in the rows."""
    window = _window(results, facts)
    return Context(
        results=results,
        facts=facts,
        window=window,
        holes=_holes(results, window),
        zones=_zones(results),
    )


def _window(results: Mapping[str, QueryResult], facts: ReportFacts) -> Window | None:
    begin = parse_instant(facts.window_from) if facts.window_from else None
    end = parse_instant(facts.window_to) if facts.window_to else None
    if begin is None or end is None:
        seen = [t for r in results.values() for row in r.rows for t in _instants(row)]
        begin = min(seen, default=None) if begin is None else begin
        end = max(seen, default=None) if end is None else end
    if begin is None or end is None:
        return None
    return Window(begin, max(end, begin + 1_000_000))


def _instants(row: Row) -> Iterable[int]:
    for name in ("at", "from_at", "to_at"):
        at = instant(row, name)
        if at is not None:
            yield at


def _holes(
    results: Mapping[str, QueryResult], window: Window | None
) -> tuple[tuple[int, int], ...]:
    gaps = results.get("gaps")
    if gaps is None or window is None:
        return ()
    out = []
    for row in gaps.rows:
        begin, end = instant(row, "from_at"), instant(row, "to_at")
        if begin is not None and end is not None:
            low = window.x(begin)
            out.append((low, max(window.x(end), low + 1)))
    return tuple(sorted(set(out)))


def _zones(results: Mapping[str, QueryResult]) -> dict[str, Zone]:
    names = {
        text(row, "zone")
        for query in ("node_balance", "node_changes", "zone_spread")
        for row in (results[query].rows if query in results else ())
    }
    labelled = sorted(names - {""})
    letters = _letters(labelled)
    zones = {n: Zone(n, f"z{i % ZONE_COLOURS}", letters[n]) for i, n in enumerate(labelled)}
    zones[""] = Zone("", "zn", "–")
    return zones


def _letters(names: list[str]) -> dict[str, str]:
    tails = {n: n.rsplit("-", 1)[-1] for n in names}
    short = {n: t[-1:] for n, t in tails.items()}
    for candidate in (short, tails):
        if len(set(candidate.values())) == len(names) and all(candidate.values()):
            return candidate
    return {n: n for n in names}
