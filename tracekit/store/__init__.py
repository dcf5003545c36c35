"""The store: Delta tables in one folder, appended to atomically and never rewritten in place.

Why Delta: a commit is one file, so readers always see whole commits; the resume point
travels in the same commit as the rows (an application transaction); Spark and Trino read
it. What delta-rs lacks locally, an fsync, is done here.
"""

from tracekit.store.reader import StoreReader
from tracekit.store.store import Store
from tracekit.store.writer import SourceWriter

__all__ = ["SourceWriter", "Store", "StoreReader"]
