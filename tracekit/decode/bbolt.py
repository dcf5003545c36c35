"""bbolt files, read page by page: buckets and their entries, damage told and left behind.

Every offset, size and page number is checked before it is followed. A page is visited once,
and no more bytes are handed out than the file has, so that no page, however broken, makes the
reader hang or grow.

Source: go.etcd.io/bbolt ``internal/common`` (page.go, meta.go, inode.go, bucket.go) and
``db.go``; all numbers are little endian.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass
from struct import Struct
from typing import Final, NamedTuple

from tracekit.errors import DecodeError

__all__ = ["BboltFile", "Bucket", "Entry", "PageDamage", "is_bbolt"]

_MAGIC: Final = 0xED0CDAED
_VERSION: Final = 2
_BRANCH, _LEAF = 0x01, 0x02
_BUCKET_FLAG: Final = 0x01
_FIRST_TREE_PAGE: Final = 2  # pages 0 and 1 are the metas

_PAGE: Final = Struct("<QHHI")  # id, flags, count, overflow
_META_BODY: Final = Struct("<IIIIQQQQQQ")  # magic … root, sequence, freelist, pgid, txid, checksum
_LEAF_ELEMENT: Final = Struct("<IIII")  # flags, pos, ksize, vsize
_BRANCH_ELEMENT: Final = Struct("<IIQ")  # pos, ksize, pgid
_BUCKET: Final = Struct("<QQ")  # root, sequence
_ELEMENT_BYTES: Final = 16
_PAGE_SIZES: Final = tuple(1024 << i for i in range(15))
_FNV_START, _FNV_PRIME, _U64 = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1

Entry = tuple[int, bytes, bytes]  # flags, key, value
_Pages = bytes | mmap.mmap


class PageDamage(NamedTuple):
    """A page that is not what it should be, and how."""

    page: int
    words: str


@dataclass(frozen=True, slots=True)
class Bucket:
    """Where a bucket's tree begins.

    Attributes:
        root: Its root page; 0 for a small bucket that is kept inside its parent's entry.
        inline: That bucket's only page; empty when it has pages of its own.
    """

    root: int
    inline: bytes = b""


class _Meta(NamedTuple):
    page_size: int
    root: int
    page_count: int
    txid: int


def is_bbolt(head: bytes) -> bool:
    """Tell by the first bytes whether a file is bbolt; one of its two metas is enough."""
    return any(_looks_like_meta(head, at) for at in (0, *_PAGE_SIZES))


def _looks_like_meta(pages: _Pages, at: int) -> bool:
    if at + _PAGE.size + _META_BODY.size > len(pages):
        return False
    magic, version, size, *_ = _META_BODY.unpack_from(pages, at + _PAGE.size)
    return (magic, version) == (_MAGIC, _VERSION) and (at == 0 or at == size)


class BboltFile:
    """A bbolt file whose newest valid meta is trusted.

    Args:
        pages: The file.
        size: Bytes of it that are pages; what follows is not looked at.

    Attributes:
        damage: What was found broken so far, in the order of reading.
        bytes_read: Bytes of pages read so far.

    Raises:
        DecodeError: If no meta is valid.
    """

    def __init__(self, pages: _Pages, size: int) -> None:
        self._pages, self._size = pages, size
        meta = _newest_meta(pages)
        self._page_size, self._root = meta.page_size, meta.root
        self._page = 0  # the page being read, for what is noted about it
        self.damage: list[PageDamage] = []
        self.bytes_read = 0
        if meta.page_count * meta.page_size > size:
            words = f"the file ends here, it should have {meta.page_count} pages"
            self.damage.append(PageDamage(size // meta.page_size, words))

    def buckets(self) -> dict[bytes, Bucket]:
        """Return the top-level buckets by name."""
        found: dict[bytes, Bucket] = {}
        for entries in self.leaves(Bucket(self._root)):
            for flags, name, value in entries:
                if flags & _BUCKET_FLAG and len(value) >= _BUCKET.size:
                    root, _ = _BUCKET.unpack_from(value)
                    found[name] = Bucket(root, b"" if root else value[_BUCKET.size :])
        return found

    def leaves(self, bucket: Bucket) -> Iterator[list[Entry]]:
        """Walk a bucket in the order of its keys.

        Yields:
            The readable entries of one leaf page after the other.
        """
        last = b""
        for entries in self._leaves(bucket):
            if not entries:
                continue
            if entries[0][1] <= last:
                self._note("its keys are not behind those of the page before")
            last = entries[-1][1]
            yield entries

    def _leaves(self, bucket: Bucket) -> Iterator[list[Entry]]:
        if not bucket.root:
            self._page = 0
            if len(bucket.inline) >= _PAGE.size:
                yield self._entries(bucket.inline, 0, len(bucket.inline))
            return
        seen = bytearray(self._size // self._page_size + 1)
        stack, missing = [bucket.root], _Missing()
        # Broken pages may overlap; sound ones never hold more than the file.
        limit = self.bytes_read + self._size
        while stack and self.bytes_read <= limit:
            self._page = page = stack.pop()
            at = page * self._page_size
            if at + self._page_size > self._size:
                missing.add(page)
                continue
            flags = self._check(page, at, seen)
            if flags == _LEAF:
                yield self._entries(self._pages, at, self._end(at))
            elif flags == _BRANCH:
                stack.extend(reversed(self._children(at, self._end(at))))
        if stack:
            self._note("left here: the pages before it hold more bytes than the file")
        if missing.count:
            self._page = missing.first
            self._note(f"{missing.count} pages of the tree lie behind the end of the file")

    def _check(self, page: int, at: int, seen: bytearray) -> int:
        """Return the flags of a page that may be read, else 0."""
        number, flags, _, _ = _PAGE.unpack_from(self._pages, at)
        if page < _FIRST_TREE_PAGE:
            self._note("the tree refers to it, though it is a meta page")
        elif seen[page]:
            self._note("the tree refers to it twice")
        elif number != page:
            self._note(f"it says that it is page {number}")
        elif flags not in (_BRANCH, _LEAF):
            self._note(f"it is neither branch nor leaf, its flags are {flags:#x}")
        else:
            seen[page] = 1
            return int(flags)
        return 0

    def _end(self, at: int) -> int:
        """Return where a page ends, its overflow pages included."""
        overflow: int = _PAGE.unpack_from(self._pages, at)[3]
        end = at + (overflow + 1) * self._page_size
        if end > self._size:
            self._note(f"it goes on for {overflow} pages, behind the end of the file")
        return min(end, self._size)

    def _children(self, at: int, end: int) -> list[int]:
        table = self._table(self._pages, at, end)
        self.bytes_read += _PAGE.size + len(table)
        return [child for _, _, child in _BRANCH_ELEMENT.iter_unpack(table)]

    def _entries(self, pages: _Pages, at: int, end: int) -> list[Entry]:
        """Read a leaf; its entries lie one behind the other, as bbolt writes them."""
        table = self._table(pages, at, end)
        start = at + _PAGE.size
        free, last = start + len(table), b""
        found: list[Entry] = []
        broken = ""
        for flags, pos, key_size, value_size in _LEAF_ELEMENT.iter_unpack(table):
            key_at = start + pos
            value_at = key_at + key_size
            stop = value_at + value_size
            start += _ELEMENT_BYTES
            if key_at < free or stop > end:
                broken = "an entry reaches out of it or into another"
                continue
            free = stop
            key = pages[key_at:value_at]
            if key <= last:
                broken = broken or "its keys are not in order"
            last = key
            found.append((flags, key, pages[value_at:stop]))
        self.bytes_read += free - at
        if broken:
            self._note(broken)
        return found

    def _table(self, pages: _Pages, at: int, end: int) -> bytes:
        """Return the element headers of a page, as many as have room in it."""
        count: int = _PAGE.unpack_from(pages, at)[2]
        room = (end - at - _PAGE.size) // _ELEMENT_BYTES
        if count > room:
            self._note(f"it says that it has {count} entries, there is room for {room}")
        start = at + _PAGE.size
        return pages[start : start + min(count, room) * _ELEMENT_BYTES]

    def _note(self, words: str) -> None:
        self.damage.append(PageDamage(self._page, words))


@dataclass(slots=True)
class _Missing:
    """Pages that a cut file no longer has; there may be very many."""

    first: int = 0
    count: int = 0

    def add(self, page: int) -> None:
        self.first = min(self.first, page) if self.count else page
        self.count += 1


def _newest_meta(pages: _Pages) -> _Meta:
    """Choose between the two metas; the second is found even when the first is broken.

    Raises:
        DecodeError: If neither is valid.

    Source: bbolt ``db.go``, ``getPageSize`` and ``DB.meta``.
    """
    first = _valid_meta(pages, 0)
    places = (first.page_size,) if first else _PAGE_SIZES
    found = (first, *(_valid_meta(pages, at) for at in places))
    valid = [meta for meta in found if meta is not None]
    if not valid:
        raise DecodeError("neither meta page of the bbolt file is valid", todo="copy it again")
    return max(valid, key=lambda meta: meta.txid)


def _valid_meta(pages: _Pages, at: int) -> _Meta | None:
    if not _looks_like_meta(pages, at):
        return None
    start = at + _PAGE.size
    fields = _META_BODY.unpack_from(pages, start)
    page_size, root, page_count, txid, checksum = (fields[i] for i in (2, 4, 7, 8, 9))
    body = pages[start : start + _META_BODY.size - 8]
    if checksum != _fnv64a(body) or page_size not in _PAGE_SIZES:
        return None
    return _Meta(page_size, root, page_count, txid)


def _fnv64a(data: bytes) -> int:
    digest = _FNV_START
    for byte in data:
        digest = (digest ^ byte) * _FNV_PRIME & _U64
    return digest
