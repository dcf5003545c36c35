"""A tiny bbolt writer, after the layout in bbolt's documents, so that tests break pages of it."""

from __future__ import annotations

import struct

__all__ = [
    "PAGE_BYTES",
    "branch",
    "bucket_entry",
    "file_of",
    "inline_bucket",
    "leaf",
    "meta",
    "page",
]

PAGE_BYTES = 4096


def page(number: int, flags: int, count: int, body: bytes, *, overflow: int = 0) -> bytes:
    head = struct.pack("<QHHI", number, flags, count, overflow)
    return (head + body).ljust((overflow + 1) * PAGE_BYTES, b"\0")


def leaf(number: int, entries: list[tuple[bytes, bytes]], *, flags: int = 0) -> bytes:
    """Write a leaf page with as many overflow pages as it needs."""
    body = _leaf_body(entries, flags)
    return page(number, 2, len(entries), body, overflow=(len(body) + 15) // PAGE_BYTES)


def _leaf_body(entries: list[tuple[bytes, bytes]], flags: int) -> bytes:
    table, data = b"", b""
    for place, (key, value) in enumerate(entries):
        pos = 16 * (len(entries) - place) + len(data)
        table += struct.pack("<IIII", flags, pos, len(key), len(value))
        data += key + value
    return table + data


def branch(number: int, children: list[tuple[bytes, int]]) -> bytes:
    table, data = b"", b""
    for place, (key, child) in enumerate(children):
        pos = 16 * (len(children) - place) + len(data)
        table += struct.pack("<IIQ", pos, len(key), child)
        data += key
    return page(number, 1, len(children), table + data)


def bucket_entry(root: int) -> bytes:
    return struct.pack("<QQ", root, 0)


def inline_bucket(entries: list[tuple[bytes, bytes]]) -> bytes:
    head = struct.pack("<QHHI", 0, 2, len(entries), 0)
    return bucket_entry(0) + head + _leaf_body(entries, 0)


def meta(number: int, root: int, pages: int, txid: int) -> bytes:
    fields = (0xED0CDAED, 2, PAGE_BYTES, 0, root, 0, 2**64 - 1, pages, txid)
    body = struct.pack("<IIIIQQQQQ", *fields)
    digest = 14695981039346656037  # FNV-1a, 64 bits
    for byte in body:
        digest = (digest ^ byte) * 1099511628211 % 2**64
    return page(number, 4, 0, body + struct.pack("<Q", digest))


def file_of(tree: list[bytes], *, root: int = 2, txids: tuple[int, int] = (4, 5)) -> bytes:
    """Put two metas before the tree's pages, the first of which is page 2."""
    whole = b"".join(tree)
    count = 2 + len(whole) // PAGE_BYTES
    return b"".join(meta(i, root, count, txid) for i, txid in enumerate(txids)) + whole
