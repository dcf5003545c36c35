"""A decoder run over bytes: its rows by table, and what it found wrong."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tracekit.decode import make_redactor
from tracekit.model.batches import Chunk, Decoder, Gap, SourceContext

__all__ = ["KEY", "Decoded", "decoded"]

KEY = b"k" * 32


@dataclass(slots=True)
class Decoded:
    """What a source gave."""

    tables: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    notes: list[tuple[str, int]] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    records: int = 0

    def rows(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        return [tuple(row[c] for c in columns) for row in self.tables.get(table, [])]


def decoded(decoder: Decoder, data: bytes, *, redact: bool = True) -> Decoded:
    """Run the decoder as collect would."""
    hide: Callable[[str, bytes, str], tuple[bytes, bool]] | None = (
        make_redactor(KEY) if redact else None
    )
    session = decoder.open(SourceContext(path="source", redact=hide))
    found = Decoded()
    chunks: list[Chunk] = list(session.split(io.BytesIO(data)))
    for chunk in chunks:
        batch = session.parse(chunk)
        found.records += batch.records
        found.gaps += batch.gaps
        for one in (batch, *batch.also):
            found.tables.setdefault(one.table, []).extend(one.frame.to_dicts())
            found.notes += [(note.code, note.position) for note in one.diagnostics]
    return found
