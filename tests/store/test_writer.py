"""What the store takes and what it has already; right values are reckoned by hand."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.store.rows import add, lines, objects, stored
from tracekit.errors import ClusterMismatchError, StoreError
from tracekit.store import SourceWriter, Store, StoreReader


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(tmp_path / "store")


def test_objects_are_known_by_revision_and_key(store: Store) -> None:
    first = objects((1, "/a", b"1"), (2, "/a", b"2"), (2, "/b", b"2"))
    assert add(store, first) == (3, 0)
    overlapping = objects((2, "/b", b"2"), (3, "/a", None), first_line=70)
    assert add(store, overlapping, source="other") == (1, 1)
    assert stored(store, "objects", "revision", "key", "value", "source_id") == [
        (1, "/a", b"1", "source"),
        (2, "/a", b"2", "source"),
        (2, "/b", b"2", "source"),
        (3, "/a", None, "other"),
    ]


def test_an_overlap_inside_one_source_is_left_out(store: Store) -> None:
    # A watch that was resumed tells the last revisions again.
    before, after = (
        objects((1, "/a", b"1"), (2, "/a", b"2")),
        objects((2, "/a", b"2"), (3, "/a", b"3")),
    )
    assert add(store, before, after) == (3, 1)
    assert add(store, pl.concat([before, after]), source="whole") == (0, 4)


@pytest.mark.parametrize("batches", [1, 2])
def test_another_value_inside_one_source_is_refused(store: Store, batches: int) -> None:
    frames = [objects((1, "/a", b"one")), objects((1, "/a", b"two"))]
    if batches == 1:
        frames = [pl.concat(frames)]
    with pytest.raises(ClusterMismatchError, match="revision 1 of /a has another value"):
        add(store, *frames)
    assert stored(store, "objects", "revision") == []


@pytest.mark.parametrize("value", [b"other", None], ids=["value", "delete"])
def test_another_value_leaves_the_store_as_it_was(store: Store, value: bytes | None) -> None:
    add(store, objects((1, "/a", b"1"), (5, "/a", b"5")), resume=5)
    before = files(store)
    writer = SourceWriter(store, "objects", cluster="default", source_id="other")
    writer.stage(writer.admit(objects((2, "/a", b"2"), (3, "/a", b"3"))))
    with pytest.raises(ClusterMismatchError, match=r"revision 5 of /a .* \(1 such rows\)"):
        writer.admit(objects((5, "/a", value)))
    writer.discard()
    assert files(store) == before
    assert stored(store, "objects", "revision") == [(1,), (5,)]


def test_another_redaction_is_not_another_cluster(store: Store) -> None:
    add(store, objects((1, "/a", b"hash")).with_columns(redacted=pl.lit(True)))
    with pytest.raises(StoreError, match="with another redaction") as refused:
        add(store, objects((1, "/a", b"secret")))
    assert not isinstance(refused.value, ClusterMismatchError)


def test_clusters_do_not_know_each_other(store: Store) -> None:
    add(store, objects((1, "/a", b"one")), cluster="one")
    assert add(store, objects((1, "/a", b"two")), cluster="two") == (1, 0)
    assert stored(store, "objects", "value", cluster="two") == [(b"two",)]
    add(store, lines((1, "x")), cluster="one")
    assert add(store, lines((1, "x")), cluster="two") == (1, 0)


def test_equal_records_of_a_log_are_all_kept(store: Store) -> None:
    assert add(store, lines((1, "x"), (1, "x"), (2, "y"))) == (3, 0)
    assert stored(store, "log_lines", "stamp_us", "raw") == [(1, "x"), (1, "x"), (2, "y")]


def test_of_equal_records_only_those_beyond_the_stored_ones_are_new(store: Store) -> None:
    add(store, lines((1, "x"), (1, "x"), (2, "y")))
    assert add(store, lines((1, "x"), (1, "x"), (1, "x"), (2, "y")), source="b") == (1, 3)
    assert stored(store, "log_lines", "stamp_us", "raw") == [(1, "x")] * 3 + [(2, "y")]


def test_the_same_text_at_another_time_is_another_record(store: Store) -> None:
    add(store, lines((1, "x"), (3, "x")))
    assert add(store, lines((2, "x")), source="b") == (1, 0)


def test_records_without_a_time_are_known_by_their_text(store: Store) -> None:
    add(store, lines((None, "preamble"), (5, "x")))
    assert add(store, lines((None, "preamble"), (9, "y")), source="b") == (1, 1)
    assert add(store, lines((None, "preamble")), source="c") == (0, 1)


def test_a_log_of_records_without_a_time_alone(store: Store) -> None:
    add(store, lines((None, "a"), (None, "b")))
    assert add(store, lines((None, "b"), (None, "c")), source="b") == (1, 1)


_RECORDS = st.lists(st.tuples(st.sampled_from([None, 1, 2]), st.sampled_from("xy")), max_size=8)


@given(first=_RECORDS, second=_RECORDS, cut=st.integers(0, 8))
def test_a_log_is_a_multiset_however_it_is_cut(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[tuple[int | None, str]],
    second: list[tuple[int | None, str]],
    cut: int,
) -> None:
    store = Store.create(tmp_path_factory.mktemp("store"))
    add(store, lines(*first), source="a")
    add(store, lines(*second[:cut]), lines(*second[cut:]), source="b")
    expected = [
        record
        for record in {*first, *second}
        for _ in range(max(first.count(record), second.count(record)))
    ]
    assert stored(store, "log_lines", "stamp_us", "raw") == sorted(expected, key=repr)


def test_the_resume_point_is_committed_with_the_rows(store: Store) -> None:
    add(store, objects((4, "/a", b"4"), (9, "/a", b"9")), source="s", resume=9)
    table = store.table("objects")
    assert table.transaction("default/s") == 9
    assert table.transaction("default/t") is None
    version = table.version()
    add(store, objects((11, "/a", b"11")), source="s", resume=11)
    assert (table.version(), table.transaction("default/s")) == (version + 1, 11)


def test_nothing_is_seen_before_the_commit(store: Store) -> None:
    writer = SourceWriter(store, "objects", cluster="default", source_id="s")
    writer.stage(writer.admit(objects((1, "/a", b"1"))))
    assert stored(store, "objects", "revision") == []
    writer.commit(1)
    assert stored(store, "objects", "revision") == [(1,)]
    writer.discard()
    assert stored(store, "objects", "revision") == [(1,)]


def test_rows_come_in_the_order_of_their_table(store: Store) -> None:
    add(store, objects((9, "/a", b"9"), (2, "/b", b"2")))
    add(store, objects((5, "/a", b"5")), source="t")
    revisions = StoreReader(store).rows("objects")["revision"]
    assert revisions.to_list() == [2, 5, 9]


def files(store: Store) -> list[Path]:
    return sorted(path for path in store.folder.rglob("*") if path.is_file())
