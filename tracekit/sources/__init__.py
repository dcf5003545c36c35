"""Bytes in: files, folders and standard input, decompressed by content."""

from tracekit.sources.archives import unpack
from tracekit.sources.files import OpenedSource, SourceFile, expand, open_source
from tracekit.sources.pieces import PiecedStream, Pieces

__all__ = [
    "OpenedSource",
    "PiecedStream",
    "Pieces",
    "SourceFile",
    "expand",
    "open_source",
    "unpack",
]
