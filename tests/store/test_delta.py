"""One Delta table: commits are whole, durable, and read by others as Delta says."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from tests.store.rows import add, objects, stored
from tracekit.errors import StoreError
from tracekit.model.tables import TABLES
from tracekit.store import Store
from tracekit.store.delta import DeltaFolder


@pytest.fixture
def table(tmp_path: Path) -> DeltaFolder:
    return DeltaFolder(tmp_path / "objects", TABLES["objects"])


def rows(*revisions: int) -> pl.DataFrame:
    return objects(*((revision, "/k", b"v") for revision in revisions))


def revisions(table: DeltaFolder) -> list[int]:
    """Read as any Delta reader does, from the table's own log."""
    uris = DeltaTable(table.folder).file_uris()
    return sorted(pl.read_parquet(uris)["revision"].to_list())


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Record what is synced, in order."""
    paths: list[Path] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        paths.append(Path(os.readlink(f"/proc/self/fd/{handle}")))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    return paths


def test_a_table_without_a_commit_is_empty(table: DeltaFolder) -> None:
    assert (table.exists(), table.version(), table.files()) == (False, -1, [])
    assert table.transaction("app") is None


def test_a_table_is_made_by_its_first_rows(table: DeltaFolder) -> None:
    parts = [table.write_part(rows(1, 2)), table.write_part(rows(3))]
    assert not table.exists()
    table.commit(parts, resume=("app", 3))
    assert (table.version(), table.transaction("app"), revisions(table)) == (0, 3, [1, 2, 3])
    table.commit([table.write_part(rows(4))], resume=("app", 4))
    assert (table.version(), table.transaction("app"), revisions(table)) == (1, 4, [1, 2, 3, 4])
    assert [count for _, count in table.parts()].count(1) == 2
    assert [Path(path) for path, _ in table.parts()] == [Path(file) for file in table.files()]


def test_a_commit_of_nothing_is_none(table: DeltaFolder) -> None:
    table.commit([])
    assert table.version() == -1


def test_overwriting_takes_the_place_of_all_rows(table: DeltaFolder) -> None:
    table.commit([table.write_part(rows(1, 2))])
    table.commit([table.write_part(rows(3))], overwrite=True)
    assert revisions(table) == [3]


def test_statistics_let_a_reader_skip_files(table: DeltaFolder) -> None:
    table.commit([table.write_part(rows(3, 1, 2))])
    actions = pl.DataFrame(DeltaTable(table.folder).get_add_actions(flatten=True))
    assert actions.select("num_records", "min.revision", "max.revision").rows() == [(3, 1, 3)]


def test_everything_a_commit_needs_is_synced_before_it_and_it_last(
    table: DeltaFolder, synced: list[Path]
) -> None:
    log = table.folder / "_delta_log"
    first = table.write_part(rows(1))
    assert synced == [table.folder / first.name]
    synced.clear()
    table.commit([first])
    home = table.folder
    assert synced == [home, home, home.parent, log / f"{0:020}.json", log]
    synced.clear()
    table.commit([table.write_part(rows(2))])
    assert synced[1:] == [home, log / f"{1:020}.json", log]


def test_a_checkpoint_is_synced_too(table: DeltaFolder, synced: list[Path]) -> None:
    log, seen = table.folder / "_delta_log", set[Path]()
    for revision in range(1, 120):
        synced.clear()
        table.commit([table.write_part(rows(revision))])
        seen |= set(synced)
        if (log / "_last_checkpoint").exists():
            break
    written = {path for path in log.iterdir() if path.is_file()}
    assert log / "_last_checkpoint" in written
    assert written <= seen


def test_parts_that_are_discarded_are_gone(table: DeltaFolder) -> None:
    part = table.write_part(rows(1))
    table.discard([part])
    assert list(table.folder.iterdir()) == []


def test_a_commit_that_delta_refuses_leaves_the_table_as_it_was(
    table: DeltaFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.commit([table.write_part(rows(1))])
    before = sorted(table.folder.rglob("*"))

    def refuse(*_: object, **__: object) -> None:
        raise DeltaError("Generic LocalFileSystem error\n  No space left on device (os error 28)")

    monkeypatch.setattr(DeltaTable, "create_write_transaction", refuse)
    with pytest.raises(StoreError) as refused:
        table.commit([table.write_part(rows(2))])
    assert str(refused.value) == (
        f"{table.folder}: cannot write (No space left on device); free space or choose another "
        "--store; what was committed before is intact"
    )
    assert sorted(table.folder.rglob("*")) == before


def test_a_disk_that_fails_after_the_commit_does_not_cost_its_parts(
    table: DeltaFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = table.write_part(rows(1))
    real = os.fsync

    def fsync(handle: int) -> None:
        if os.readlink(f"/proc/self/fd/{handle}").endswith(".json"):
            raise OSError(5, "Input/output error")
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(StoreError, match="cannot write"):
        table.commit([part])
    assert revisions(table) == [1]


def test_an_interrupt_in_the_commit_does_not_cost_its_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.create(tmp_path / "store")
    real = DeltaFolder.commit

    def commit(self: DeltaFolder, *parts: object, **how: object) -> None:
        real(self, *parts, **how)  # type: ignore[arg-type]
        raise KeyboardInterrupt

    from tracekit.store import SourceWriter

    writer = SourceWriter(store, "objects", cluster="default", source_id="s")
    writer.stage(writer.admit(rows(1)))
    monkeypatch.setattr(DeltaFolder, "commit", commit)
    with pytest.raises(KeyboardInterrupt):
        writer.commit(1)
    writer.discard()
    assert stored(store, "objects", "revision") == [(1,)]


@pytest.mark.parametrize(
    "read", [DeltaFolder.files, DeltaFolder.version, DeltaFolder.parts], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("damage", [b"", b"{nonsense"], ids=["empty", "nonsense"])
def test_a_damaged_log_is_told_in_one_line(
    table: DeltaFolder, read: Callable[[DeltaFolder], object], damage: bytes
) -> None:
    table.commit([table.write_part(rows(1))])
    (table.folder / "_delta_log" / f"{0:020}.json").write_bytes(damage)
    with pytest.raises(StoreError, match="the table cannot be read") as refused:
        read(table)
    assert "\n" not in str(refused.value)
    assert str(table.folder) in str(refused.value)


@pytest.mark.parametrize("name", ["two words", "ümläut", "50%", "a#b?c", "-x", "a'b\"c"])
def test_a_store_may_have_any_name(tmp_path: Path, name: str) -> None:
    store = Store.create(tmp_path / name)
    add(store, rows(1), resume=1)
    add(store, rows(2), resume=2)
    assert stored(store, "objects", "revision") == [(1,), (2,)]
    assert store.table("objects").transaction("default/source") == 2


def test_a_store_may_be_named_from_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    add(Store.create(Path("store")), rows(1))
    assert stored(Store(tmp_path / "store"), "objects", "revision") == [(1,)]
