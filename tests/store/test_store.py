"""The folder of a store: what is one, what is none, who may write to it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import orjson
import polars as pl
import pytest

from tests.store.rows import add, objects, stored
from tracekit.errors import SchemaVersionError, StoreError, StoreLockedError
from tracekit.model.tables import SCHEMA_VERSION, TABLES
from tracekit.store import Store, StoreReader
from tracekit.store.schema import conform, delta_schema, polars_schema


def one_line(error: BaseException, *words: str) -> None:
    text = str(error)
    assert "\n" not in text
    for word in words:
        assert word in text


def test_a_store_is_made_once_and_found_again(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "store"
    key = Store.create(folder).redaction_key()
    assert len(key) == 32
    assert Store.create(folder).redaction_key() == Store(folder).redaction_key() == key
    assert Store.create(tmp_path / "other").redaction_key() != key


def test_only_its_owner_may_read_the_redaction_key(tmp_path: Path) -> None:
    Store.create(tmp_path)
    assert stat.S_IMODE((tmp_path / "redaction.key").stat().st_mode) == 0o600


def test_a_start_that_was_interrupted_is_taken_up(tmp_path: Path) -> None:
    (tmp_path / "redaction.key").write_bytes(b"")
    (tmp_path / "tracekit.json.part").write_bytes(b"{")
    assert len(Store.create(tmp_path).redaction_key()) == 32


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(StoreError) as refused:
        Store.create(tmp_path)
    one_line(refused.value, str(tmp_path), "no store here")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("make", [Store, Store.create], ids=["open", "create"])
def test_a_file_is_no_store(tmp_path: Path, make: type[Store]) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError) as refused:
        make(tmp_path / "file")
    one_line(refused.value, str(tmp_path / "file"))


def test_where_nothing_is_there_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no store here") as refused:
        Store(tmp_path / "none")
    one_line(refused.value, str(tmp_path / "none"), "collect")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '"x"', "null"])
def test_a_store_without_its_version_is_refused(tmp_path: Path, text: str) -> None:
    Store.create(tmp_path)
    (tmp_path / "tracekit.json").write_text(text)
    with pytest.raises(StoreError, match="the store cannot be read") as refused:
        Store(tmp_path)
    one_line(refused.value, "tracekit.json")


@pytest.mark.parametrize("version", [SCHEMA_VERSION + 1, 0, "1", None])
def test_another_schema_version_is_refused(tmp_path: Path, version: object) -> None:
    Store.create(tmp_path)
    (tmp_path / "tracekit.json").write_bytes(orjson.dumps({"schema_version": version}))
    for make in (Store, Store.create):
        with pytest.raises(SchemaVersionError) as refused:
            make(tmp_path)
        one_line(refused.value, f"schema version {version}", f"writes {SCHEMA_VERSION}")


def test_an_escape_in_the_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="two hex digits"):
        Store.create(tmp_path / "a%20b")


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    store = Store.create(tmp_path)
    with store.lock():
        with pytest.raises(StoreLockedError, match="another tracekit") as refused, store.lock():
            pass
        one_line(refused.value, str(tmp_path))
    with store.lock():
        pass


def test_another_process_holds_the_lock_until_it_ends(tmp_path: Path) -> None:
    store = Store.create(tmp_path)
    code = (
        "import sys; from pathlib import Path; from tracekit.store import Store\n"
        f"with Store(Path({str(tmp_path)!r})).lock(): print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(StoreLockedError), store.lock():
            pass
        holder.kill()
    with store.lock():
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="without root, who may not write is who runs this")
def test_who_may_not_write_is_told_so(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    add(Store.create(folder), objects((1, "/a", b"1")))
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    (folder / "redaction.key").chmod(0o600)
    told = _as_nobody(
        folder,
        "store.lock().__enter__()",
        "store.redaction_key()",
        "store.replace('gaps', __import__('polars').DataFrame())",
        "Store.create(folder / 'new')",
    )
    assert [line.split(" ", 1)[0] for line in told] == ["StoreError"] * 4
    assert all("Permission denied" in line for line in told)
    assert stored(Store(folder), "objects", "revision") == [(1,)]


def _as_nobody(folder: Path, *statements: str) -> list[str]:
    """Run statements as a user without rights; return what each was told."""
    parts = [
        "import os, polars, tracekit.store.delta",
        "from pathlib import Path",
        "from tracekit.store import Store",
        "from tracekit.errors import TracekitError",
        f"os.chdir('/'); os.setuid(65534); folder = Path({str(folder)!r}); store = None",
        "def attempt(statement):",
        "    try: exec(statement)",
        "    except TracekitError as error: print(type(error).__name__, error)",
        "    else: print('allowed', statement)",
        "store = Store(folder)",
        *(f"attempt({statement!r})" for statement in statements),
    ]
    for parent in folder.parents:
        if parent.stat().st_uid == os.getuid() and parent != Path("/tmp"):
            parent.chmod(parent.stat().st_mode | 0o055)
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(parts)], check=True, capture_output=True, text=True
    )
    return done.stdout.splitlines()


def test_replacing_a_table_sorts_it_and_leaves_one_version(tmp_path: Path) -> None:
    store = Store.create(tmp_path)
    schema = polars_schema(TABLES["gaps"])
    for revisions in ([5, 3], [9, 1, 4]):
        frame = pl.DataFrame(
            {"cluster": "c", "source_id": "s", "from_revision": revisions, "cause": "x"}
        )
        store.replace("gaps", conform(frame, TABLES["gaps"]))
    assert StoreReader(store).rows("gaps")["from_revision"].to_list() == [1, 4, 9]
    store.replace("gaps", pl.DataFrame())
    empty = StoreReader(store).rows("gaps")
    assert (empty.height, empty.schema) == (0, schema)


def test_versions_count_commits(tmp_path: Path) -> None:
    store = Store.create(tmp_path)
    assert store.versions(["objects", "gaps"]) == {"objects": -1, "gaps": -1}
    add(store, objects((1, "/a", b"1")))
    before = store.versions(["objects", "gaps"])
    add(store, objects((2, "/a", b"2")))
    assert store.versions(["objects"])["objects"] == before["objects"] + 1
    assert before["gaps"] == -1


@pytest.mark.parametrize("name", list(TABLES))
def test_an_empty_table_has_the_columns_of_the_model(tmp_path: Path, name: str) -> None:
    scanned = StoreReader(Store.create(tmp_path)).scan(name).collect()
    assert scanned.columns == [column.name for column in TABLES[name].columns]
    assert len(delta_schema(TABLES[name]).fields) == scanned.width


def test_a_column_the_table_does_not_have_is_a_bug() -> None:
    with pytest.raises(ValueError, match="gaps has no column colour"):
        conform(pl.DataFrame({"colour": ["red"]}), TABLES["gaps"])
