"""Bytes in: files, folders and standard input, decompressed by content."""

from tracekit.sources.files import SourceFile, expand, open_source

__all__ = ["SourceFile", "expand", "open_source"]
