"""What a decoder hands on: chunks of bytes cut at record boundaries, and typed batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, BinaryIO, Protocol

from tracekit.model.diagnostics import Diagnostic

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Batch", "Chunk", "Decoder", "Gap", "Session", "SourceContext"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceContext:
    """What is known about a source before it is read.

    Attributes:
        path: Path as given, ``-`` for standard input.
        redact: ``redact(kind, value, encoding)`` gives the value with payloads replaced
            by keyed hashes and whether it changed anything; None keeps everything.
    """

    path: str
    redact: Callable[[str, bytes, str], tuple[bytes, bool]] | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole records, as bytes.

    Attributes:
        data: The bytes; starts at a record's first byte.
        record_no: 1-based line on which ``data`` starts.
        last: This is the last chunk of the source.
    """

    data: bytes
    record_no: int
    last: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """A hole in the record: first and last revision that may be missing."""

    from_revision: int
    to_revision: int | None
    cause: str


@dataclass(slots=True, kw_only=True)
class Batch:
    """Typed rows of one table, with what was wrong on the way.

    ``frame`` has the columns of ``model.tables`` without ``cluster`` and ``source_id``,
    which the pipeline knows.

    Attributes:
        also: Rows of other tables that the same records gave; their ``records`` is 0.
    """

    table: str
    frame: pl.DataFrame
    records: int
    diagnostics: list[Diagnostic] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    also: list[Batch] = field(default_factory=list)


class Session(Protocol):
    """One source being decoded.

    ``split`` runs in one thread and cuts at record boundaries; ``parse`` runs in worker
    threads when ``parallel`` is true, else in order in one thread.
    """

    parallel: bool

    def split(self, stream: BinaryIO) -> Iterator[Chunk]:
        """Cut the stream into chunks of whole records."""

    def parse(self, chunk: Chunk) -> Batch:
        """Turn one chunk into typed rows."""

    def facts(self) -> dict[str, str | int | None]:
        """Return what the source told about itself: columns of ``sources``."""


class Decoder(Protocol):
    """One input format."""

    name: str

    def recognises(self, head: bytes) -> bool:
        """Tell from the first bytes (up to 64 KiB) whether the source is in this format."""

    def open(self, context: SourceContext) -> Session:
        """Begin a source."""

    def lead(self, tail: bytes, head: bytes) -> int | None:
        """Tell how much of a source belongs to a record that another one left open.

        Args:
            tail: Last bytes of the source before; its record may be cut.
            head: First bytes of the source behind.

        Returns:
            Bytes of ``head`` that end the open record; 0 when ``head`` begins with a record
            of its own or nothing is open; None when all of ``head`` belongs to it so far.
        """
