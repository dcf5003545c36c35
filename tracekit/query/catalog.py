"""The shipped queries and the order in which one builds on another."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tracekit.assets import asset_folder
from tracekit.errors import NotFoundError
from tracekit.query.header import QueryHeader, read_header

__all__ = ["Catalog", "ShippedQuery"]


@dataclass(frozen=True, slots=True)
class ShippedQuery:
    """One file of ``queries/``; its name is the file's stem."""

    name: str
    path: Path
    sql: str
    header: QueryHeader

    @property
    def private(self) -> bool:
        """Tell whether it only serves other queries."""
        return self.name.startswith("_")


class Catalog:
    """All shipped queries, read once."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or asset_folder("queries")

    @cached_property
    def queries(self) -> dict[str, ShippedQuery]:
        """Queries by name, sorted."""
        found = sorted(self._folder.rglob("*.sql"), key=lambda p: p.stem)
        return {path.stem: _read(path) for path in found}

    def get(self, name: str) -> ShippedQuery:
        """Return a query.

        Raises:
            NotFoundError: If there is none of that name; names the nearest.
        """
        query = self.queries.get(name)
        if query is None:
            near = difflib.get_close_matches(name, self.queries, n=3)
            hint = f"did you mean {', '.join(near)}? " if near else ""
            raise NotFoundError(
                f"no query {name!r}", todo=f"{hint}see them with tracekit query --list"
            )
        return query

    def build_order(self, names: list[str]) -> list[ShippedQuery]:
        """Return the queries needed for ``names``, each after what it builds on."""
        done: dict[str, ShippedQuery] = {}

        def visit(name: str) -> None:
            if name in done or name not in self.queries:
                return
            for source in self.queries[name].header.sources:
                visit(source)
            done[name] = self.queries[name]

        for name in names:
            visit(name)
        return list(done.values())


def _read(path: Path) -> ShippedQuery:
    sql = path.read_text(encoding="utf-8")
    return ShippedQuery(path.stem, path, sql, read_header(sql, where=path.name))
