"""Bytes of a log read block by block, and made valid UTF-8 with a note where they were not."""

from __future__ import annotations

from typing import BinaryIO, Final

from tracekit.model.diagnostics import Diagnostic

__all__ = ["as_utf8", "read_block", "shown"]

_DETAIL_CHARS: Final = 120


def read_block(stream: BinaryIO, size: int) -> bytes:
    """Read ``size`` bytes, or what is left; a pipe may give them in smaller pieces."""
    block = stream.read(size)
    if len(block) == size or not block:
        return block
    parts = [block]
    missing = size - len(block)
    while missing and (more := stream.read(missing)):
        parts.append(more)
        missing -= len(more)
    return b"".join(parts)


def as_utf8(data: bytes, first_line: int) -> tuple[bytes, list[Diagnostic]]:
    """Return the data as valid UTF-8, with a diagnostic for each line that was not."""
    if data.isascii() or _is_utf8(data):
        return data, []
    damage = [
        Diagnostic(code="LOG_NOT_UTF8", position=first_line + number, detail=shown(line))
        for number, line in enumerate(data.split(b"\n"))
        if not _is_utf8(line)
    ]
    return data.decode("utf-8", "replace").encode(), damage


def shown(line: bytes) -> str:
    """Return the beginning of a line as a diagnostic shows it."""
    return line[: _DETAIL_CHARS + 4].decode("utf-8", "backslashreplace")[:_DETAIL_CHARS]


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
