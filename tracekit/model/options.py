"""What a caller asks for, made once in ``cli/`` or by a library user."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["CollectOptions", "CollectSummary", "Oddity", "Redaction", "ReplaySummary"]

Redaction = Literal["default", "all", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectOptions:
    """How to read sources.

    Attributes:
        cluster: Name the rows are stored under.
        format: Decoder to force; None recognises by content.
        component, node: Component and node of logs; None infers them.
        log_year: Year of a log's first record; None infers it.
        log_timezone: IANA name or ±HH:MM of a log's clock; None infers it.
        redact: Which payloads become keyed hashes: Secret and ConfigMap ones (default),
            also those of unreadable values (all), or none.
        flush_seconds: How long a live collector may keep rows before it commits them.
    """

    cluster: str = "default"
    format: str | None = None
    component: str | None = None
    node: str | None = None
    log_year: int | None = None
    log_timezone: str | None = None
    redact: Redaction = "default"
    flush_seconds: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Oddity:
    """Damage of one kind in one source: its code, how often, where first and its raw words."""

    code: str
    count: int
    position: int
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectSummary:
    """What became of one source: what it was taken for, counts of records, what was odd."""

    source: str
    format: str
    records: int
    stored: int
    duplicates: int
    diagnostics: int
    gaps: int
    data_lost: bool
    component: str | None = None
    node: str | None = None
    odd: tuple[Oddity, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplaySummary:
    """What a replay built: row counts by table; ``fresh`` is false when nothing had changed."""

    fresh: bool
    rows: dict[str, int]
