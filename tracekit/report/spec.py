"""Which sections a report has, and the queries each one is made from: ``report.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tracekit.assets import asset_folder
from tracekit.errors import ReportError, UsageError

__all__ = ["ReportSpec", "SectionSpec", "read_spec"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionSpec:
    """One section of a report.

    Attributes:
        empty: What to collect so that the section has something to say.
    """

    id: str
    title: str
    lead: str
    empty: str
    queries: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSpec:
    """One report: its sections in order and the template that prints them."""

    name: str
    title: str
    template: str
    sections: tuple[SectionSpec, ...]

    @property
    def queries(self) -> tuple[str, ...]:
        """Names of all queries, once each, in the order of their first use."""
        return tuple(dict.fromkeys(q for s in self.sections for q in s.queries))

    def only(self, ids: Sequence[str]) -> ReportSpec:
        """Return the report with the named sections alone, in its own order; all when none is.

        Raises:
            UsageError: If a name is no section of this report.
        """
        known = [s.id for s in self.sections]
        unknown = [i for i in ids if i not in known]
        if unknown:
            raise UsageError(
                f"no section is called {unknown[0]!r}", todo=f"use one of {', '.join(known)}"
            )
        kept = tuple(s for s in self.sections if not ids or s.id in ids)
        return replace(self, sections=kept)


def read_spec(name: str = "scheduling") -> ReportSpec:
    """Read a report's ``report.toml``.

    Raises:
        ReportError: If there is no such report, or its file lacks a field.
    """
    path = asset_folder("reports") / name / "report.toml"
    try:
        return _parse(name, path)
    except FileNotFoundError as error:
        raise ReportError(
            f"there is no report {name!r}", where=str(path), todo="name another one"
        ) from error
    except (KeyError, TypeError, tomllib.TOMLDecodeError) as error:
        raise ReportError(
            f"unusable report file: {error}", where=str(path), todo="compare it with the others"
        ) from error


def _parse(name: str, path: Path) -> ReportSpec:
    with path.open("rb") as stream:
        raw = tomllib.load(stream)
    sections = tuple(
        SectionSpec(
            id=s["id"],
            title=s["title"],
            lead=s["lead"],
            empty=s["empty"],
            queries=tuple(s["queries"]),
        )
        for s in raw["section"]
    )
    return ReportSpec(
        name=name, title=raw["title"], template=f"{name}/{raw['template']}", sections=sections
    )
