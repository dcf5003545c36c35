"""What people feed it by mistake: one clear line, the right exit code, the store intact."""

from __future__ import annotations

import gzip
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from tests.cli.conftest import Ran, Tracekit, process
from tests.recordings import Recordings

LINES = 5


def head(watch: bytes, lines: int = LINES) -> bytes:
    return b"".join(watch.splitlines(keepends=True)[:lines])


@pytest.fixture
def sound(run: Tracekit) -> Callable[[], None]:
    """Give a check that ``verify`` finds nothing in the store of this test."""

    def check() -> None:
        done = run("verify", "-o", "json")
        assert (done.code, done.out) == (0, "[]\n")

    return check


def refused(done: Ran, said: str) -> None:
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert done.err.startswith("tracekit: ")
    assert said in done.err
    assert done.err.isprintable() or done.err.rstrip("\n").isprintable()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("missing", None, "missing: no such file or folder; check the path"),
        ("empty", b"", "empty: the file is empty"),
        ("garbage", bytes(range(256)) * 20, "garbage: unknown format"),
        ("text.txt", b"hello world\n", "text.txt: unknown format (it starts with 'hello world')"),
        ("other.json", b'{"a":1}\n', "force one with --format"),
        ("evil\x1b[31m\n", b"hello\n", r"evil\x1b[31m\n: unknown format"),
        ("evil\x1b]0;x\x07", None, r"evil\x1b]0;x\x07: no such file"),
    ],
)
def test_a_file_that_is_no_recording(
    run: Tracekit,
    sound: Callable[[], None],
    tmp_path: Path,
    name: str,
    content: bytes | None,
    said: str,
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    refused(run("collect", name), said)
    sound()


def test_a_failure_keeps_what_was_committed_before(
    run: Tracekit, sound: Callable[[], None], watch: bytes, tmp_path: Path
) -> None:
    (tmp_path / "good.json").write_bytes(head(watch))
    (tmp_path / "bad").write_bytes(b"hello\n")
    assert run("collect", "good.json", "bad").code == 1
    sound()
    assert run("collect", "good.json", "-o", "json").rows[0]["duplicates"] == LINES


def test_a_folder_of_all_sorts_is_read_as_far_as_it_goes(
    run: Tracekit, sound: Callable[[], None], watch: bytes, tmp_path: Path
) -> None:
    folder = tmp_path / "all"
    folder.mkdir()
    (folder / "empty").write_bytes(b"")
    (folder / "good.json").write_bytes(head(watch))
    (folder / "note\x1b.txt").write_bytes(b"hello\n")
    done = run("collect", "all", "-o", "json")
    assert done.code == 3
    told = [(row["format"], row["stored"], row["diagnostics"]) for row in done.rows]
    assert told == [("unknown", 0, 1), ("etcd-watch-json", LINES, 0), ("unknown", 0, 1)]
    assert done.err.count("\n") == 1
    assert "all/empty and 1 more: data was lost" in done.err
    sound()


def test_a_half_written_last_line_is_a_diagnostic(
    run: Tracekit, sound: Callable[[], None], watch: bytes, tmp_path: Path
) -> None:
    (tmp_path / "cut.json").write_bytes(head(watch)[:-40])
    done = run("collect", "cut.json", "-o", "json")
    assert (done.code, done.rows[0]["stored"], done.rows[0]["diagnostics"]) == (3, LINES - 1, 1)
    assert "cut.json: data was lost or damaged" in done.err
    run("replay")
    found = run("query", "SELECT code, source FROM diagnostics", "-o", "json").rows
    assert {"code": "WATCH_LINE_CUT", "source": "cut.json"} in found
    sound()


def test_a_gzip_cut_in_the_middle_keeps_what_came_before(
    run: Tracekit, sound: Callable[[], None], watch: bytes, tmp_path: Path
) -> None:
    packed = gzip.compress(watch)
    (tmp_path / "cut.gz").write_bytes(packed[: len(packed) // 2])
    done = run("collect", "cut.gz", "-o", "json")
    assert done.code == 3
    assert 100 < int(str(done.rows[0]["stored"])) < 962
    run("replay")
    codes = run("query", "SELECT code FROM diagnostics", "-o", "csv").out.split()
    assert "SOURCE_CUT" in codes
    sound()


def unprivileged() -> tuple[str, ...]:
    """Return what to put before a command so that permissions bind it, root or not."""
    if os.geteuid():
        return ()
    prefix = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    if not shutil.which("setpriv") or subprocess.run([*prefix, "true"], check=False).returncode:
        pytest.skip("root reads every file, and setpriv cannot take that from it here")
    return prefix


def run_bound(*arguments: str | Path) -> Ran:
    with process(*arguments, prefix=unprivileged()) as child:
        out, err = child.communicate()
    return Ran(child.returncode, out.decode(), err.decode())


def test_a_file_that_may_not_be_read(watch: bytes, tmp_path: Path) -> None:
    closed = tmp_path / "closed.json"
    closed.write_bytes(head(watch))
    closed.chmod(0)
    done = run_bound("collect", closed, "--store", tmp_path / "s")
    refused(done, "closed.json: cannot read it (Permission denied); check that the file exists")


def test_a_store_that_may_not_be_written(
    run: Tracekit, sound: Callable[[], None], watch: bytes, tmp_path: Path
) -> None:
    (tmp_path / "watch.json").write_bytes(head(watch))
    store = tmp_path / "tracekit-store"
    assert run("collect", "watch.json").code == 0
    (tmp_path / "more.json").write_bytes(head(watch, 50))
    folders = [store, *(path for path in store.rglob("*") if path.is_dir())]
    for folder in folders:
        folder.chmod(0o500)
    try:
        done = run_bound("collect", tmp_path / "more.json", "--store", store)
    finally:
        for folder in folders:
            folder.chmod(0o700)
    refused(done, "Permission denied")
    sound()
    nowhere = tmp_path / "closed"
    nowhere.mkdir(mode=0o500)
    done = run_bound("collect", tmp_path / "more.json", "--store", nowhere / "s")
    refused(done, "cannot make the store (Permission denied); choose another place with --store")


def test_a_full_disk(
    run: Tracekit, sound: Callable[[], None], watch: bytes, tmp_path: Path
) -> None:
    (tmp_path / "watch.json").write_bytes(watch)
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    # What a disk without room does to a write, a limit on the size of a file does too.
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limit[1]))
    try:
        done = run("collect", "watch.json")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    refused(done, "free space or choose another --store")
    sound()
    assert run("collect", "watch.json", "-o", "json").rows[0]["stored"] == 962


def other_cluster(watch: bytes) -> bytes:
    """Return the stream as another cluster would have had it: kube-system has another uid."""
    from tracekit.decode import decode_value

    for line in watch.splitlines():
        for event in orjson.loads(line)["Events"]:
            if event["kv"]["key"] == "L3JlZ2lzdHJ5L25hbWVzcGFjZXMva3ViZS1zeXN0ZW0=":
                import base64

                value = base64.b64decode(event["kv"]["value"])
                found = decode_value(value).object
                assert found
                uid = found["metadata"]["uid"].encode()
                changed = value.replace(uid, uid[::-1])
                return watch.replace(event["kv"]["value"].encode(), base64.b64encode(changed))
    raise AssertionError("no kube-system namespace in the stream")


def test_two_clusters_under_one_name_are_refused(
    run: Tracekit, sound: Callable[[], None], watch: bytes, tmp_path: Path
) -> None:
    (tmp_path / "one.json").write_bytes(watch)
    (tmp_path / "two.json").write_bytes(other_cluster(watch))
    assert run("collect", "one.json").code == 0
    refused(run("collect", "two.json"), "its own --cluster name")
    sound()
    assert run("collect", "two.json", "--cluster", "two").code == 0
    sound()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda store: store.write_text("x"), "this is a file, a store is a folder"),
        (lambda store: (store.mkdir(), (store / "f").write_text("x")), "there is no store here"),
        (
            lambda store: (store.mkdir(), (store / "tracekit.json").write_text("{")),
            "the store cannot be read",
        ),
        (
            lambda store: (
                store.mkdir(),
                (store / "tracekit.json").write_text('{"schema_version": 99}'),
            ),
            "the store has schema version 99, this tracekit writes",
        ),
    ],
    ids=["file", "other folder", "damaged", "newer"],
)
@pytest.mark.parametrize("command", ["collect", "replay", "query", "ls", "verify"])
def test_a_store_that_is_none(
    run: Tracekit,
    watch: bytes,
    tmp_path: Path,
    make: Callable[[Path], object],
    said: str,
    command: str,
) -> None:
    (tmp_path / "watch.json").write_bytes(head(watch))
    make(tmp_path / "store")
    extra = {"collect": ["watch.json"], "query": ["bindings"]}.get(command, [])
    refused(run(command, *extra, "--store", "store"), said)


def test_an_answer_from_tables_never_built(run: Tracekit, watch: bytes, tmp_path: Path) -> None:
    refused(run("query", "bindings"), "run tracekit collect first")
    (tmp_path / "watch.json").write_bytes(head(watch))
    run("collect", "watch.json")
    for command in (
        ("query", "bindings"),
        ("replay", "a/b"),
        ("replay", "--at", "3"),
        ("report", "--html"),
    ):
        refused(run(*command), "the store has not been replayed; run tracekit replay")


def test_an_answer_from_tables_that_are_old_says_so(
    run: Tracekit, watch: bytes, tmp_path: Path
) -> None:
    (tmp_path / "one.json").write_bytes(head(watch))
    (tmp_path / "two.json").write_bytes(head(watch, 20))
    run("collect", "one.json")
    run("replay")
    run("collect", "two.json")
    done = run("query", "bindings", "-o", "json")
    assert done.code == 0
    assert "new rows since the last replay" in done.err


@pytest.mark.parametrize(
    "options", [["--format", "nope"], ["--log-timezone", "Mars/Olympus"], ["--redact", "some"]]
)
def test_an_option_without_sense_is_a_usage_error(
    run: Tracekit, watch: bytes, tmp_path: Path, options: list[str]
) -> None:
    (tmp_path / "watch.json").write_bytes(head(watch))
    assert run("collect", "watch.json", *options).code == 2


def test_the_wrong_format_is_not_forced_upon_a_file(
    run: Tracekit, recordings: Recordings, sound: Callable[[], None]
) -> None:
    log = recordings("seed") / "kube-scheduler.log"
    done = run("collect", log, "--format", "etcd-watch-json", "-o", "json")
    assert (done.code, done.rows[0]["stored"]) == (3, 0)
    sound()


def test_verify_names_what_is_wrong(run: Tracekit, watch: bytes, tmp_path: Path) -> None:
    (tmp_path / "watch.json").write_bytes(watch)
    run("collect", "watch.json")
    part = next((tmp_path / "tracekit-store" / "objects").glob("*.parquet"))
    whole = part.read_bytes()
    part.write_bytes(whole[:1000])
    cut = run("verify", "-o", "json")
    assert (cut.code, cut.rows[0]["where"]) == (1, str(part.relative_to(tmp_path)))
    assert "checksum differs" in str(cut.rows[0]["what"])
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 1
    part.write_bytes(flipped)
    assert "checksum differs" in str(run("verify", "-o", "json").rows[0]["what"])
    part.unlink()
    gone = run("verify", "-o", "table")
    assert gone.code == 1
    assert "a committed file is missing" in gone.out.replace("\n  ", " ")
    shutil.rmtree(part.parent)
    assert "its rows are not in the store" in str(run("verify", "-o", "json").rows[0]["what"])


def test_verify_tells_files_of_a_collect_that_was_killed(
    run: Tracekit, watch: bytes, tmp_path: Path
) -> None:
    (tmp_path / "watch.json").write_bytes(watch)
    run("collect", "watch.json")
    (tmp_path / "tracekit-store" / "objects" / "part-left.parquet").write_bytes(b"half")
    done = run("verify", "-o", "json")
    assert (done.code, done.rows[0]["severity"]) == (0, "INFO")
    assert run("replay").code == 0


def test_an_interrupted_collect_leaves_the_store_consistent(
    run: Tracekit, sound: Callable[[], None], watch: bytes, tmp_path: Path
) -> None:
    (tmp_path / "first.json").write_bytes(head(watch))
    child = process("collect", tmp_path / "first.json", "-", "--store", tmp_path / "tracekit-store")
    assert child.stdin
    with child:
        # More than a pipe holds: when this returns, the second source is being read.
        child.stdin.write(watch[: len(watch) // 2])
        child.stdin.flush()
        child.send_signal(signal.SIGINT)
        out, err = child.communicate()
    assert (child.returncode, out) == (130, b"")
    assert err.decode().strip() == "tracekit: interrupted; what was committed stays"
    sound()
    assert len(list((tmp_path / "tracekit-store" / "objects").glob("*.parquet"))) == 1
    (tmp_path / "watch.json").write_bytes(watch)
    rest = run("collect", "watch.json", "-o", "json").rows[0]
    assert (rest["stored"], rest["duplicates"]) == (962 - LINES, LINES)


@pytest.mark.parametrize("form", ["table", "jsonl", "csv"])
def test_a_reader_that_goes_away_is_no_error(seed: Path, form: str) -> None:
    sql = "SELECT repeat('x', 1000) AS x FROM range(5000)"
    with process("query", sql, "--store", seed, "-o", form) as child:
        assert child.stdout
        child.stdout.readline()
        child.stdout.close()
        assert child.stderr
        assert child.stderr.read() == b""
    assert child.returncode == 141


def test_two_writers_do_not_meet(
    run: Tracekit, sound: Callable[[], None], watch: bytes, tmp_path: Path
) -> None:
    (tmp_path / "watch.json").write_bytes(head(watch))
    child = process("collect", "-", "--store", tmp_path / "tracekit-store")
    assert child.stdin
    with child:
        child.stdin.write(watch[: len(watch) // 2])
        child.stdin.flush()
        refused(run("collect", "watch.json"), "another tracekit is writing to this store")
        child.stdin.write(watch[len(watch) // 2 :])
        child.stdin.close()
        assert child.wait() == 0
    sound()


def test_a_first_piece_that_is_a_scrap_is_known_by_the_next(
    run: Tracekit, watch: bytes, tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(watch[:5])
    (tmp_path / "b").write_bytes(watch[5:])
    done = run("collect", "a", "b", "-o", "json")
    assert done.code == 0
    assert {row["format"] for row in done.rows} <= {"etcd-watch-json", "continued"}
    assert sum(int(str(row["records"])) for row in done.rows) == watch.count(b'"mod_revision"')


def test_a_file_name_that_is_no_text_is_shown_escaped(run: Tracekit, tmp_path: Path) -> None:
    name = os.fsdecode(b"log\xff")
    (tmp_path / name).write_text('I1201 16:00:00.000001       1 a.go:1] "one" k="v"\n')
    done = run("collect", name, "-o", "json")
    assert (done.code, done.rows[0]["source"]) == (0, r"log\xff")
