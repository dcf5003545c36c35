"""Rows out of the store."""

from __future__ import annotations

import polars as pl

from tracekit.errors import StoreError
from tracekit.model.tables import TABLES
from tracekit.store.schema import polars_schema
from tracekit.store.store import Store

__all__ = ["StoreReader"]


class StoreReader:
    """Reads committed rows; what a writer stages meanwhile is not seen."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def scan(self, table: str) -> pl.LazyFrame:
        """Return a table as a lazy frame, empty with its schema when nothing was written."""
        files = self._store.table(table).files()
        if not files:
            return pl.LazyFrame(schema=polars_schema(TABLES[table]))
        return pl.scan_parquet(files, glob=False)

    def collect(self, lazy: pl.LazyFrame) -> pl.DataFrame:
        """Read what a lazy frame of ``scan`` asks for.

        Raises:
            StoreError: If a committed file is missing or damaged.
        """
        try:
            return lazy.collect()
        except (OSError, pl.exceptions.PolarsError) as error:
            words = str(error).strip().splitlines()
            raise StoreError(
                f"a committed file cannot be read ({words[0] if words else error})",
                where=str(self._store.folder),
                todo="see which with tracekit verify",
            ) from error

    def rows(self, table: str, cluster: str | None = None) -> pl.DataFrame:
        """Return a table's rows in its total order, of one cluster or of all."""
        lazy = self.scan(table)
        if cluster is not None:
            lazy = lazy.filter(pl.col("cluster") == cluster)
        return self.collect(lazy.sort(list(TABLES[table].order_by), nulls_last=True))

    def clusters(self) -> list[str]:
        """Return the names of all clusters that have a source, sorted."""
        names = self.collect(self.scan("sources").select(pl.col("cluster").unique()))
        return sorted(names["cluster"].to_list())

    def files(self, table: str) -> list[str]:
        """Return the committed parquet files of a table."""
        return self._store.table(table).files()
