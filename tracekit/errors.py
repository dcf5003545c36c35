"""The whole exception tree of tracekit.

::

    TracekitError              exit 1  root of everything tracekit raises on purpose
    ├── UsageError             exit 2  the request itself makes no sense
    ├── SourceError            exit 1  an input cannot be opened or read
    ├── FormatError            exit 1  an input is in no format (or not the forced one) we know
    ├── DecodeError            exit 1  the format is known, this value is unreadable
    ├── StoreError             exit 1  the store cannot be opened, written or trusted
    │   ├── SchemaVersionError exit 1  the store was written by another schema version
    │   ├── ClusterMismatchError exit 1  two clusters under one name
    │   └── StoreLockedError   exit 1  another process writes to the store
    ├── ReplayError            exit 1  the record contradicts itself
    ├── QueryError             exit 1  a query cannot run; names the .sql file or the text
    ├── NotFoundError          exit 1  a named pod, key or query does not exist
    └── ReportError            exit 1  a report cannot be rendered or written

A message has three parts: what happened, where, and what to do next.
Damage that leaves the rest readable is not an exception but a ``Diagnostic``.
"""

from __future__ import annotations

__all__ = [
    "ClusterMismatchError",
    "DecodeError",
    "FormatError",
    "NotFoundError",
    "QueryError",
    "ReplayError",
    "ReportError",
    "SchemaVersionError",
    "SourceError",
    "StoreError",
    "StoreLockedError",
    "TracekitError",
    "UsageError",
]


class TracekitError(Exception):
    """Root of the tree; carries what, where and what to do next.

    Args:
        what: What happened, without a final full stop.
        where: File, key, revision or table it happened at; empty when it has no place.
        todo: What the reader can do next; empty when nothing helps.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str = "", todo: str = "") -> None:
        self.what, self.where, self.todo = what, where, todo
        super().__init__(what)

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        advice = f"; {self.todo}" if self.todo else ""
        return f"{place}{self.what}{advice}"


class UsageError(TracekitError):
    """The request itself makes no sense."""

    exit_code = 2


class SourceError(TracekitError):
    """An input cannot be opened or read."""


class FormatError(TracekitError):
    """An input is in no format we know, or not in the forced one."""


class DecodeError(TracekitError):
    """The format is known but this value is unreadable."""


class StoreError(TracekitError):
    """The store cannot be opened, written or trusted."""


class SchemaVersionError(StoreError):
    """The store was written by another schema version."""


class ClusterMismatchError(StoreError):
    """The source belongs to another cluster than the store's rows of that name."""


class StoreLockedError(StoreError):
    """Another process writes to the store."""


class ReplayError(TracekitError):
    """The record contradicts itself."""


class QueryError(TracekitError):
    """A query cannot run."""


class NotFoundError(TracekitError):
    """A named pod, key or query does not exist."""


class ReportError(TracekitError):
    """A report cannot be rendered or written."""
