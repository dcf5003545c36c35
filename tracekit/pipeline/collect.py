"""Collect: sources through decoders into the store, one commit a source."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, cast

from tracekit.decode import DECODERS, decoder_for, make_redactor
from tracekit.errors import FormatError
from tracekit.model.batches import Decoder, SourceContext
from tracekit.model.diagnostics import Diagnostic
from tracekit.model.options import CollectOptions, CollectSummary
from tracekit.pipeline.collection import Collection
from tracekit.replay.log_clock import parse_timezone
from tracekit.sources import (
    PiecedStream,
    Pieces,
    expand,
    open_source,
    unpack,
)
from tracekit.store import Store

__all__ = ["collect"]


def collect(
    store: Store,
    paths: Sequence[str],
    options: CollectOptions,
    progress: Callable[[str, int], None] = lambda _path, _records: None,
) -> Iterator[CollectSummary]:
    """Read sources into the store, one commit a source.

    Args:
        store: Where the rows go; held for writing meanwhile.
        paths: Files, folders or ``-``.
        options: How to read them.
        progress: Told the path and the records read so far.

    Yields:
        One summary a source, when its rows are committed.

    Raises:
        UsageError: If there is no such format or zone.
        SourceError, FormatError: If a named source cannot be read.
        ClusterMismatchError: If a source belongs to another cluster.
        StoreError: If the store refuses the rows.
    """
    if options.log_timezone is not None:
        parse_timezone(options.log_timezone)
    with store.lock():
        sources = unpack(expand(tuple(paths)))
        pieces = Pieces(sources)
        for place in range(len(sources)):
            yield _collect_one(store, pieces, place, options, progress)


def _collect_one(
    store: Store,
    pieces: Pieces,
    place: int,
    options: CollectOptions,
    progress: Callable[[str, int], None],
) -> CollectSummary:
    source, taken = pieces.source(place), pieces.taken(place)
    with open_source(source) as opened:
        if source.notes is not None:
            return Collection(store, source, options).finish("archive", source.notes)
        if taken:
            opened.drop(len(taken))
            if not opened.head:
                return Collection(store, source, options).finish("continued")
        try:
            decoder = decoder_for(
                pieces.head(place, opened), path=source.label, forced=options.format
            )
        except FormatError as error:
            if source.named:
                raise
            note = Diagnostic(code="UNKNOWN_FORMAT", position=0, detail=str(error))
            return Collection(store, source, options).finish("unknown", [note])
        key = store.redaction_key() if options.redact != "none" else None
        everything = options.redact == "all"
        redact = None if key is None else make_redactor(key, unreadable=everything)
        session = decoder.open(SourceContext(path=source.label, redact=redact))
        collection = Collection(store, source, options, session, taken.count(b"\n"))
        ending = pieces.after(place, _lead(decoder))
        opened.stream = cast(BinaryIO, PiecedStream(opened.stream, ending))
        try:
            collection.read(opened, lambda records: progress(source.label, records))
            damage = (
                []
                if not opened.cut
                else [Diagnostic(code="SOURCE_CUT", position=collection.records, detail=opened.cut)]
            )
            return collection.finish(decoder.name, damage, modified_ns=opened.modified_ns)
        except BaseException:
            collection.discard()
            raise


def _lead(decoder: Decoder) -> Callable[[bytes, bytes], int | None]:
    """Return ``decoder.lead``, which takes nothing from a source of another format.

    The decoder of last resort recognises the rest of anything, so it does not count.
    """
    others = [other for other in DECODERS[:-1] if other.name != decoder.name]

    def lead(tail: bytes, head: bytes) -> int | None:
        if not decoder.recognises(head) and any(other.recognises(head) for other in others):
            return 0
        return decoder.lead(tail, head)

    return lead
