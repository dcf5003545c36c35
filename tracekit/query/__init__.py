"""Runs ``queries/*.sql`` and own SQL over the store's tables with DuckDB."""

from tracekit.query.catalog import Catalog, ShippedQuery
from tracekit.query.results import result_of
from tracekit.query.runner import QueryRunner

__all__ = ["Catalog", "QueryRunner", "ShippedQuery", "result_of"]
