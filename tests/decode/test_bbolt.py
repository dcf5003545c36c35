"""bbolt pages in, buckets and entries out; broken pages are told and left behind."""

from __future__ import annotations

import struct

import pytest

from tests.decode.bbolt_pages import (
    PAGE_BYTES,
    branch,
    bucket_entry,
    file_of,
    inline_bucket,
    leaf,
    meta,
    page,
)
from tracekit.decode.bbolt import BboltFile, is_bbolt
from tracekit.errors import DecodeError

Pairs = list[tuple[bytes, bytes]]
ENTRIES: Pairs = [(b"%04d" % i, b"value %d" % i) for i in range(30)]


def tree(*, broken: dict[int, bytes] | None = None) -> bytes:
    """Three leaves of ten entries under a branch: pages 2 root, 3 branch, 4 to 6 leaves."""
    pages = {
        2: leaf(2, [(b"key", bucket_entry(3))], flags=1),
        3: branch(3, [(ENTRIES[i * 10][0], 4 + i) for i in range(3)]),
        **{4 + i: leaf(4 + i, ENTRIES[i * 10 : i * 10 + 10]) for i in range(3)},
    } | (broken or {})
    return file_of([pages[number] for number in sorted(pages)])


def read(data: bytes, size: int | None = None, name: bytes = b"key") -> tuple[Pairs, list[int]]:
    file = BboltFile(data, len(data) if size is None else size)
    bucket = file.buckets()[name]
    found = [(key, value) for entries in file.leaves(bucket) for _, key, value in entries]
    return found, [damaged.page for damaged in file.damage]


def patched(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


def test_entries_come_in_the_order_of_keys() -> None:
    assert read(tree()) == (ENTRIES, [])


def test_inline_bucket() -> None:
    root = leaf(2, [(b"key", inline_bucket(ENTRIES[:3])), (b"meta", inline_bucket([]))], flags=1)
    assert read(file_of([root])) == (ENTRIES[:3], [])
    assert read(file_of([root]), name=b"meta") == ([], [])


def test_a_value_longer_than_a_page_goes_on_in_overflow_pages() -> None:
    long = [(b"a", b"x" * 3 * PAGE_BYTES), (b"b", b"y" * 5)]
    root = leaf(2, [(b"key", bucket_entry(3))], flags=1)
    assert read(file_of([root, leaf(3, long)])) == (long, [])


def test_the_newer_meta_counts() -> None:
    pages = [leaf(2 + i, [(b"key", inline_bucket(ENTRIES[i : i + 1]))], flags=1) for i in (0, 1)]
    for old, new in ((0, 1), (1, 0)):
        metas = {old: meta(old, 2, 4, 7), new: meta(new, 3, 4, 8)}
        data = metas[0] + metas[1] + b"".join(pages)
        assert read(data) == (ENTRIES[1:2], [])


@pytest.mark.parametrize("number", [0, 1])
def test_one_broken_meta_is_enough_left(number: int) -> None:
    broken = patched(tree(), number * PAGE_BYTES + 40, b"\xff")
    assert read(broken) == (ENTRIES, [])
    assert is_bbolt(broken)


def test_a_meta_without_magic_is_found_by_the_other() -> None:
    broken = patched(tree(), 0, b"\0" * PAGE_BYTES)
    assert is_bbolt(broken[: 64 * 1024])
    assert read(broken) == (ENTRIES, [])


def test_two_broken_metas_cannot_be_read() -> None:
    broken = patched(patched(tree(), 40, b"\xff"), PAGE_BYTES + 40, b"\xff")
    with pytest.raises(DecodeError, match="neither meta page"):
        BboltFile(broken, len(broken))


@pytest.mark.parametrize(
    ("at", "new"),
    [
        (5 * PAGE_BYTES, b"\x09"),  # page id
        (5 * PAGE_BYTES + 8, b"\x10"),  # flags: a freelist
        (5 * PAGE_BYTES + 8, b"\x00"),
    ],
)
def test_a_broken_leaf_costs_its_own_entries(at: int, new: bytes) -> None:
    assert read(patched(tree(), at, new)) == (ENTRIES[:10] + ENTRIES[20:], [5])


@pytest.mark.parametrize("field", [0, 4, 8])  # pos, key size, value size behind the flags
def test_a_broken_element_costs_itself(field: int) -> None:
    at = 5 * PAGE_BYTES + 16 + 3 * 16 + 4 + field
    found, damaged = read(patched(tree(), at, b"\xff\xff\xff\x7f"))
    assert found == ENTRIES[:13] + ENTRIES[14:]
    assert damaged == [5]


def test_a_page_that_says_it_has_too_many_entries() -> None:
    found, damaged = read(patched(tree(), 6 * PAGE_BYTES + 10, b"\xff\xff"))
    assert found[:20] == ENTRIES[:20]
    assert set(damaged) == {6}


def test_an_overflow_behind_the_end_is_told_and_the_page_read() -> None:
    found, damaged = read(patched(tree(), 4 * PAGE_BYTES + 12, b"\xff\xff\xff\xff"))
    assert found == ENTRIES
    assert damaged == [4]


def test_keys_out_of_order_are_told_and_kept() -> None:
    swapped = leaf(5, [*ENTRIES[11:20], ENTRIES[10]])
    found, damaged = read(tree(broken={5: swapped}))
    assert found == [*ENTRIES[:10], *ENTRIES[11:20], ENTRIES[10], *ENTRIES[20:]]
    assert damaged == [5]


def test_a_cycle_ends() -> None:
    loop = branch(3, [(b"0000", 4), (b"0010", 3), (b"0020", 6), (b"0021", 4), (b"0022", 0)])
    found, damaged = read(tree(broken={3: loop}))
    assert found == ENTRIES[:10] + ENTRIES[20:]
    assert damaged == [3, 4, 0]


def test_a_child_behind_the_end_is_told_once() -> None:
    far = branch(3, [(b"0000", 4), (b"0010", 2**63), (b"0020", 77), (b"0021", 6)])
    found, damaged = read(tree(broken={3: far}))
    assert found == ENTRIES[:10] + ENTRIES[20:]
    assert damaged == [77]


def test_a_cut_file_tells_where_it_ends() -> None:
    data = tree()[: 6 * PAGE_BYTES + 100]
    found, damaged = read(data)
    assert found == ENTRIES[:20]
    assert damaged == [6, 6]  # the file ends there; a page of the tree is not there


def test_pages_that_overlap_do_not_multiply_the_file() -> None:
    # Each leaf claims all pages behind it as overflow, and its entry all of those bytes.
    count = 250
    root = leaf(2, [(b"key", bucket_entry(3))], flags=1)
    children = branch(3, [(b"", 4 + i) for i in range(count)])
    leaves = [
        page(4 + i, 2, 1, struct.pack("<IIII", 0, 16, 1, (count - i - 1) * PAGE_BYTES))
        for i in range(count)
    ]
    leaves = [patched(p, 12, struct.pack("<I", count - i - 1)) for i, p in enumerate(leaves)]
    data = file_of([root, children, *leaves])
    found, damaged = read(data)
    assert sum(len(value) for _, value in found) <= 2 * len(data)
    assert damaged


@pytest.mark.parametrize("head", [b"", b"\xed\x0c\xda\xed" * 100, b"I1201 15:59:20 x\n" * 5000])
def test_other_files_are_refused(head: bytes) -> None:
    assert not is_bbolt(head)


def test_another_version_is_refused() -> None:
    data = patched(patched(tree(), 20, b"\x03"), PAGE_BYTES + 20, b"\x03")
    assert not is_bbolt(data)
