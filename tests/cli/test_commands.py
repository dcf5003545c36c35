"""Each command as a user types it: what goes where, in which form, with which exit code."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path

import polars as pl
import pytest

from tests.cli.conftest import Tracekit, process
from tests.recordings import Recordings
from tracekit.cli.screen import columns_of

SUMMARY = ["source", "format", "records", "stored", "duplicates", "diagnostics", "gaps"]
VIP = "/registry/pods/default/vip"
COMMANDS = ["collect", "replay", "report", "query", "ls", "get", "diff", "verify"]


def fits(text: str) -> None:
    wide = [line for line in text.splitlines() if columns_of(line) > 80]
    assert not wide


def test_collect_ends_with_a_summary_of_each_source(
    run: Tracekit, recordings: Recordings, tmp_path: Path
) -> None:
    recording = recordings("seed")
    files = [recording / "etcd-watch.json", recording / "kube-scheduler.log"]
    first = run("collect", *files, "--store", "s", "-o", "json")
    assert first.code == 0
    assert [list(row) for row in first.rows] == [SUMMARY, SUMMARY]
    told = [(row["format"], row["records"], row["stored"]) for row in first.rows]
    # traces/README.md: 962 revisions, one event a line.
    assert told[0] == ("etcd-watch-json", 962, 962)
    assert told[1][0] == "klog"
    assert first.err == ""
    again = run("collect", *files, "--store", "s", "-o", "table")
    assert again.code == 0
    assert "etcd-watch-json            962       0    962" in again.out
    fits(again.out)


def test_collect_reads_a_folder_and_compressed_files(
    run: Tracekit, watch: bytes, tmp_path: Path
) -> None:
    folder = tmp_path / "recording" / "deep"
    folder.mkdir(parents=True)
    (folder / "watch.json.gz").write_bytes(gzip.compress(watch[: watch.index(b"\n") + 1]))
    done = run("collect", "recording", "-o", "jsonl")
    assert (done.code, json.loads(done.out)["stored"]) == (0, 1)
    assert (tmp_path / "tracekit-store").is_dir()


def test_collect_reads_standard_input(
    run: Tracekit, watch: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(watch)))
    done = run("collect", "-", "--store", "s", "-o", "csv")
    assert done.out.splitlines() == [",".join(SUMMARY), "-,etcd-watch-json,962,962,0,0,0"]


def test_collect_takes_every_option(run: Tracekit, recordings: Recordings) -> None:
    log = recordings("seed") / "kube-scheduler.log"
    told = [
        "--component",
        "my-scheduler",
        "--node",
        "cp-1",
        "--log-year",
        "2025",
        "--log-timezone",
        "+01:00",
        "--redact",
        "all",
        "--format",
        "klog",
    ]
    assert run("collect", log, "--cluster", "prod", *told).code == 0
    assert run("replay").code == 0
    sql = 'SELECT DISTINCT cluster, component, node, year("at") AS year FROM log_records'
    assert run("query", sql, "-o", "json").rows == [
        {"cluster": "prod", "component": "my-scheduler", "node": "cp-1", "year": 2025}
    ]


def test_replay_builds_once(run: Tracekit, watch: bytes, tmp_path: Path) -> None:
    (tmp_path / "watch.json").write_bytes(watch)
    run("collect", "watch.json")
    first, again = run("replay"), run("replay")
    assert (first.code, first.out, again.code, again.out) == (0, "", 0, "")
    assert "replay_state                 1 row\n" in first.err
    assert again.err == "nothing new since the last replay\n"


def test_replay_of_a_pod_shows_every_incarnation_newest_last(run: Tracekit, seed: Path) -> None:
    life = run("replay", "default/ubuntu", "--store", seed, "-o", "table")
    fits(life.out)
    one, two = life.out.split("\n\n")
    assert one.startswith("default/ubuntu (1 of 2)  uid ")
    assert two.startswith("default/ubuntu (2 of 2)  uid ")
    # traces/README.md, stories 01, 04 and 05.
    assert "bound by the scheduler to node-33" in one
    assert "bound by the scheduler to node-65 · 1 failed attempt known" in two
    assert "taint_eviction" in two
    stages = [
        row["stage"] for row in run("replay", "default/ubuntu", "--store", seed, "-o", "json").rows
    ]
    assert stages.count("created") == 2
    assert stages[-1] == "deleted"


def test_replay_picks_an_incarnation(run: Tracekit, seed: Path) -> None:
    rows = run("replay", "default/ubuntu", "--store", seed, "-o", "json").rows
    uids = list(dict.fromkeys(row["uid"] for row in rows))
    picked = run("replay", "default/ubuntu", "--uid", str(uids[0]), "--store", seed, "-o", "json")
    assert {row["uid"] for row in picked.rows} == {uids[0]}
    unknown = run("replay", "default/ubuntu", "--uid", "nobody", "--store", seed)
    assert (unknown.code, unknown.out) == (1, "")
    assert "no incarnation with uid nobody" in unknown.err


@pytest.mark.parametrize(
    ("diff", "columns"),
    [
        ("none", set()),
        ("fields", {"changed", "heartbeats"}),
        ("full", {"changed", "heartbeats", "patch"}),
    ],
)
def test_replay_shows_as_much_of_a_change_as_asked(
    run: Tracekit, seed: Path, diff: str, columns: set[str]
) -> None:
    done = run("replay", "default/vip", "--diff", diff, "--store", seed, "-o", "json")
    assert {"changed", "heartbeats", "patch"} & set(done.rows[0]) == columns
    text = run("replay", "default/vip", "--diff", diff, "--store", seed, "-o", "table").out
    fits(text)
    assert ("/spec/nodeName" in text) == (diff != "none")
    assert ('add /spec/nodeName "node-33"' in text) == (diff == "full")


def test_replay_at_a_revision_has_the_promised_shape(run: Tracekit, seed: Path) -> None:
    done = run("replay", "--at", "900", "--store", seed, "-o", "json")
    state = json.loads(done.out)
    assert list(state) == ["revision", "at", "nodes", "pods"]
    assert state["revision"] == 900
    assert state["at"].endswith("Z")
    node, pod = state["nodes"][0], state["pods"][0]
    assert list(node) == [
        "name",
        "zone",
        "unschedulable",
        "ready",
        "taints",
        "allocatable",
        "requested",
    ]
    assert list(pod) == ["namespace", "name", "uid", "node", "phase"]
    assert json.loads(run("replay", "--at", state["at"], "--store", seed, "-o", "jsonl").out)
    table = run("replay", "--at", "900", "--store", seed, "-o", "table").out
    fits(table)
    assert "    taint node-role.kubernetes.io/control-plane:NoSchedule\n" in table
    assert "estimated ±" in table


def test_replay_at_says_when_a_revision_is_not_in_the_record(run: Tracekit, seed: Path) -> None:
    after = run("replay", "--at", "99999", "--store", seed, "-o", "json")
    assert (after.code, json.loads(after.out)["revision"]) == (0, 963)
    assert "revision 99999 is not in the record" in after.err
    before = run("replay", "--at", "1999-01-01", "--store", seed)
    assert (before.code, before.out) == (1, "")
    assert "1999-01-01T00:00:00.000000Z lies before the record" in before.err


@pytest.mark.parametrize(("at", "form"), [("yesterday", "json"), ("=-5", "json"), ("900", "csv")])
def test_replay_at_nonsense_is_a_usage_error(run: Tracekit, seed: Path, at: str, form: str) -> None:
    done = run("replay", f"--at={at.lstrip('=')}", "--store", seed, "-o", form)
    assert (done.code, done.out) == (2, "")


def test_query_in_every_form(run: Tracekit, seed: Path, recordings: Recordings) -> None:
    # traces/README.md: 38 bindings by the scheduler.
    truth = (recordings("seed") / "truth/bindings.tsv").read_text(encoding="utf-8")
    sql = "SELECT * FROM bindings WHERE path = 'scheduler'"
    asked = ("query", sql, "--store", seed, "-o")
    assert len(run(*asked, "json").rows) == 38
    assert len(run(*asked, "jsonl").out.splitlines()) == 38
    read = list(csv.DictReader(io.StringIO(run(*asked, "csv").out)))
    assert {row["pod"] for row in read} == {row["pod"] for row in run(*asked, "json").rows}
    assert all(row["uid"] in truth for row in read)
    table = run(*asked, "table")
    assert table.err == "(38 rows of cluster default)\n"
    fits(table.out)


def test_query_in_parquet_goes_into_a_pipe(seed: Path) -> None:
    with process("query", "bindings", "--store", seed, "-o", "parquet") as child:
        out, err = child.communicate()
    assert (child.returncode, err) == (0, b"")
    assert pl.read_parquet(io.BytesIO(out)).height == 39  # 38 by the scheduler, and pinned


def test_query_of_one_row_says_so(run: Tracekit, seed: Path) -> None:
    done = run("query", "SELECT 1 AS one", "--store", seed, "-o", "table")
    assert (done.out, done.err) == ("one\n───\n  1\n", "(1 row)\n")


def test_query_reads_a_file_and_standard_input(
    run: Tracekit, seed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my.sql").write_text("SELECT count(*) AS n FROM bindings; -- all\n", "utf-8")
    monkeypatch.setattr("sys.stdin", io.StringIO("SELECT 2 AS n"))
    monkeypatch.setenv("TRACEKIT_STORE", str(seed))
    assert run("query", "@my.sql", "-o", "json").rows == [{"n": 39}]
    assert run("query", "@-", "-o", "json").rows == [{"n": 2}]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bindinsg", "no query 'bindinsg'; did you mean bindings"),
        ("SELECT podd FROM bindings", 'Candidate bindings: "pod"'),
        ("SELECT * FROM pods", "Table with name pods does not exist"),
        ("SELEC 1", "syntax error"),
        ("SELECT max(at) FROM bindings", 'write the column at as "at"'),
        ("SELECT CAST(pod AS INT) FROM bindings", "Could not convert string"),
        ("@nowhere.sql", "nowhere.sql: cannot read the query (No such file or directory)"),
        ("@empty.sql", "empty.sql: there is no query in it"),
        ("@binary.sql", "binary.sql: the query is not UTF-8 text"),
    ],
)
def test_a_query_that_cannot_run_fails_in_one_line(
    run: Tracekit, seed: Path, tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "empty.sql").write_text(" \n", "utf-8")
    (tmp_path / "binary.sql").write_bytes(b"\xff\xfe\x00")
    done = run("query", text, "--store", seed)
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert done.err.startswith("tracekit: ")
    assert said in done.err


def test_query_list_needs_no_store(run: Tracekit) -> None:
    rows = run("query", "--list", "-o", "json").rows
    assert {"pod_revisions", "bindings", "attempts", "pending"} <= {row["query"] for row in rows}
    assert list(rows[0]) == ["query", "column", "unit", "meaning", "grain", "summary"]
    text = run("query", "--list", "-o", "table").out
    fits(text)
    assert "\nbindings: one row per pod uid with a node\n" in text


def test_ls_lists_keys_below_a_prefix(run: Tracekit, seed: Path) -> None:
    rows = run("ls", "/registry/minions/", "--store", seed, "-o", "json").rows
    assert [row["name"] for row in rows] == ["master-1", "node-124", "node-33", "node-65"]
    table = run("ls", "--store", seed, "-o", "table")
    lines = table.out.splitlines()
    # A key is never cut, so one that is wider than the screen stands alone.
    fits("\n".join(line for line in lines if not line.startswith("  /registry/")))
    assert table.err.startswith(f"({sum('/registry/' in line for line in lines)} keys;")
    assert run("ls", "/nothing", "--store", seed, "-o", "json").rows == []


def test_get_shows_an_object_as_it_stood(run: Tracekit, seed: Path) -> None:
    last = json.loads(run("get", VIP, "--store", seed).out)
    first = json.loads(run("get", VIP, "--version", "1", "--store", seed).out)
    bound = json.loads(run("get", VIP, "--revision", "927", "--store", seed).out)
    assert (last["kind"], last["metadata"]["name"]) == ("Pod", "vip")
    assert "managedFields" in last["metadata"]
    assert "nodeName" not in first["spec"]
    assert bound["spec"]["nodeName"] == "node-33"
    uid = last["metadata"]["uid"]
    assert json.loads(run("get", VIP, "--uid", uid, "--store", seed).out) == last


def test_get_of_a_deleted_key_says_so_beside_the_data(run: Tracekit, seed: Path) -> None:
    done = run("get", "/registry/pods/default/ubuntu", "--store", seed)
    assert done.code == 0
    assert json.loads(done.out)["metadata"]["name"] == "ubuntu"
    assert "last state before it was deleted" in done.err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("/registry/pods/default/vipp",), "did you mean /registry/pods/default/vip"),
        ((VIP, "--revision", "1"), "did not exist at revision 1"),
        ((VIP, "--version", "77"), "no state with version 77"),
        ((VIP, "--uid", "nobody"), "no state with uid nobody"),
        (("/registry/pods/default/ubuntu", "--revision", "300"), "was deleted at revision"),
        ((VIP, "--cluster", "prod"), "no cluster 'prod' in the store; it has default"),
    ],
)
def test_get_of_what_is_not_there_names_what_is(
    run: Tracekit, seed: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = run("get", *arguments, "--store", seed)
    assert (done.code, done.out, done.err.count("\n")) == (1, "", 1)
    assert said in done.err


def test_diff_lists_changed_fields(run: Tracekit, seed: Path) -> None:
    asked = ("diff", VIP, "823", "927", "--store", seed, "-o")
    rows = run(*asked, "json").rows
    assert {"op": "add", "path": "/spec/nodeName", "old": None, "new": "node-33"} in rows
    table = run(*asked, "table")
    fits(table.out)
    assert 'add /spec/nodeName\n  + "node-33"\n' in table.out
    assert table.err == f"({len(rows)} changes)\n"


def test_an_unknown_pod_names_the_nearest(run: Tracekit, seed: Path) -> None:
    done = run("replay", "default/ubunto", "--store", seed)
    assert (done.code, done.out) == (1, "")
    assert "no pod default/ubunto in the record; nearest: default/ubuntu" in done.err
    assert run("replay", "ubuntu", "--store", seed).code == 2


def test_report_writes_where_told(run: Tracekit, seed: Path, tmp_path: Path) -> None:
    done = run("report", "--html", "--json", "r.json", "--store", seed)
    assert (done.code, done.out) == (0, "tracekit-report.html\nr.json\n")
    assert (tmp_path / "tracekit-report.html").read_text("utf-8").startswith("<!doctype html>")
    assert set(json.loads((tmp_path / "r.json").read_bytes())) == {"facts", "queries"}
    assert run("report", "--store", seed).code == 2
    nowhere = run("report", "--html", "no/such/folder.html", "--store", seed)
    assert nowhere.code == 1
    assert "cannot write the report" in nowhere.err


def test_verify_is_silent_about_a_sound_store(run: Tracekit, seed: Path) -> None:
    assert run("verify", "--store", seed, "-o", "json").rows == []
    table = run("verify", "--store", seed, "-o", "table")
    assert (table.code, table.out, table.err) == (0, "", "(the store is sound)\n")


def test_two_clusters_in_one_store_must_be_told_apart(
    run: Tracekit, watch: bytes, tmp_path: Path
) -> None:
    (tmp_path / "watch.json").write_bytes(watch)
    for name in ("a", "b"):
        assert run("collect", "watch.json", "--cluster", name).code == 0
    assert run("replay").code == 0
    for command in (
        ("ls",),
        ("get", VIP),
        ("diff", VIP, "823", "927"),
        ("replay", "default/vip"),
        ("replay", "--at", "900"),
        ("report", "--html"),
    ):
        done = run(*command)
        assert (done.code, done.out) == (1, "")
        assert "the store has 2 clusters; choose one with --cluster: a, b" in done.err
        assert run(*command, "--cluster", "b").code == 0
    table = run("query", "SELECT DISTINCT cluster FROM bindings ORDER BY ALL", "-o", "csv")
    assert table.out.split() == ["cluster", "a", "b"]


@pytest.mark.parametrize("command", [None, *COMMANDS])
def test_help_has_examples_and_fits_the_screen(run: Tracekit, command: str | None) -> None:
    done = run(*([command] if command else []), "--help")
    assert done.code == 0
    assert "\n  Examples:\n    " in done.out
    assert "...\n" not in done.out.split("Commands:")[-1].split("Examples:")[0] or command
    fits(done.out)


@pytest.mark.parametrize(
    "arguments",
    [
        ("frobnicate",),
        ("collect",),
        ("collect", "--log-year", "12", "x"),
        ("query",),
        ("query", " "),
        ("query", "x", "-o", "yaml"),
        ("get",),
        ("get", VIP, "--revision", "x"),
        ("diff", VIP, "1"),
        ("replay", "--diff", "some", "a/b"),
        ("--nonsense",),
    ],
)
def test_a_wrong_call_is_a_usage_error(
    run: Tracekit, seed: Path, arguments: tuple[str, ...]
) -> None:
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert done.err
