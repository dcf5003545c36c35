"""Scheduling attempts against the stream and the scheduler's own log (issue 2, row 4)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from tests.acceptance.etcd_scan import condition_changes, pod_changes
from tests.acceptance.stores import LOG, STREAM, Replayed, Stores, build
from tests.recordings import Recording, Recordings

# What issue 2 and facts/replay.md count, and what the logs of the recordings hold.
CONDITION_REVISIONS = {"seed": 38, "mid": 6_081}
VERDICTS = {"seed": (118, 38), "mid": (11_691, 430), "wide": (1_353, 590)}
YEAR = 2026

_HALF = re.compile(
    r"0/(\d+) nodes are available: (.*?)\.(?: (?:no new claims|preemption:|not found).*)?"
)
_BOUND = re.compile(
    r'I(\d{4} [\d:.]+) .*"Successfully bound pod to node" pod="(\S+)/(\S+)" node="(\S+)"'
    r" evaluatedNodes=(\d+) feasibleNodes=(\d+)"
)


def told_by(store: Replayed, source: str) -> pl.DataFrame:
    listed = pl.col("sources").str.split(",").list.contains(source)
    return store.query("attempts").filter(listed)


def instant(text: str) -> datetime:
    return datetime.strptime(f"{YEAR}{text} +0000", "%Y%m%d %H:%M:%S.%f %z")


def no_fit_lines(recording: Recording) -> list[dict[str, str]]:
    with (recording / "truth/unschedulable.jsonl").open("rb") as lines:
        return [orjson.loads(line) for line in lines]


def bound_lines(recording: Recording) -> list[tuple[str, ...]]:
    text = (recording / "truth/scheduler-kept.log").read_text()
    return [found.groups() for found in _BOUND.finditer(text)]


def test_stream_tells_each_new_condition_message_once(name: str, stores: Stores) -> None:
    store = stores(name)
    scanned = condition_changes(store.recording / STREAM)
    if name in CONDITION_REVISIONS:
        assert len(scanned) == CONDITION_REVISIONS[name]
    told = told_by(store, "condition").select("revision", "uid").rows()
    assert sorted(told) == sorted(scanned.items())


def test_stream_tells_each_binding_once(name: str, stores: Stores) -> None:
    store = stores(name)
    bound = store.query("attempts").filter(pl.col("verdict") == "bound")
    columns = ("namespace", "pod", "uid", "node", "revision")
    by_scheduler = store.query("bindings").filter(pl.col("path") == "scheduler")
    assert sorted(bound.select(columns).rows()) == sorted(by_scheduler.select(columns).rows())


def test_stream_tells_event_times_that_have_no_revision(name: str, stores: Stores) -> None:
    store = stores(name)
    attempts = store.query("attempts")
    alone = attempts.filter(pl.col("sources") == "event")
    assert alone["revision"].null_count() == alone.height > 0
    assert set(attempts["sources"]) <= {
        "condition", "condition,event", "binding", "binding,event", "event",
    }  # fmt: skip
    scheduling = ("FailedScheduling", "Scheduled")
    times = store.query("events").filter(pl.col("reason").is_in(scheduling))
    known = set(times.select("uid", "at").iter_rows())
    assert set(alone.select("uid", "at").iter_rows()) <= known


def test_attempt_ids_are_unique(name: str, stores: Stores) -> None:
    attempts = stores(name).query("attempts")
    assert attempts["attempt_id"].n_unique() == attempts.height


def test_log_makes_the_attempts_complete(name_with_text_log: str, stores: Stores) -> None:
    store = stores(name_with_text_log, log=True)
    no_fit, bound = VERDICTS[name_with_text_log]
    assert len(no_fit_lines(store.recording)) == no_fit
    assert len(bound_lines(store.recording)) == bound
    counted = Counter(store.query("attempts")["verdict"])
    assert counted == {"unschedulable": no_fit, "bound": bound}
    assert told_by(store, "log").height == no_fit + bound


def test_log_rows_are_the_no_fit_lines(name_with_text_log: str, stores: Stores) -> None:
    store = stores(name_with_text_log, log=True)
    rows = told_by(store, "log").filter(pl.col("verdict") == "unschedulable")
    told = Counter(rows.select(_full_name(), "at", "message").iter_rows())
    lines = no_fit_lines(store.recording)
    assert told == Counter((line["pod"], instant(line["t"]), line["err"]) for line in lines)


def test_log_rows_are_the_bound_lines(name_with_text_log: str, stores: Stores) -> None:
    store = stores(name_with_text_log, log=True)
    rows = told_by(store, "log").filter(pl.col("verdict") == "bound")
    columns = ("namespace", "pod", "node", "nodes_evaluated", "nodes_feasible", "at")
    lines = [
        (namespace, pod, node, int(evaluated), int(feasible), instant(at))
        for at, namespace, pod, node, evaluated, feasible in bound_lines(store.recording)
    ]
    assert sorted(rows.select(columns).rows()) == sorted(lines)


def test_log_joins_every_condition_revision_once(name_with_text_log: str, stores: Stores) -> None:
    store = stores(name_with_text_log, log=True)
    scanned = condition_changes(store.recording / STREAM)
    rows = told_by(store, "condition")
    assert sorted(rows.select("revision", "uid").rows()) == sorted(scanned.items())
    # The scheduler logs each verdict before it writes it, so none is without its line.
    assert rows.filter(~pl.col("sources").str.contains("log")).height == 0


def test_condition_row_has_the_message_of_its_revision(
    name_with_text_log: str, stores: Stores
) -> None:
    store = stores(name_with_text_log, log=True)
    messages = {
        change.revision: condition["message"]
        for change in pod_changes(store.recording / STREAM)
        for condition in change.after["status"].get("conditions", ())
        if condition["type"] == "PodScheduled" and "message" in condition
    }
    rows = told_by(store, "condition").select("revision", "message").rows()
    assert [r for r, message in rows if message != messages[r]] == []


def test_nodes_total_and_reasons_are_the_schedulers(
    name_with_text_log: str, stores: Stores
) -> None:
    store = stores(name_with_text_log, log=True)
    reasons: dict[str, list[str]] = defaultdict(list)
    for row in store.query("attempt_reasons").sort("attempt_id", "ordinal").iter_rows(named=True):
        count = "" if row["nodes"] is None else f"{row['nodes']} "
        reasons[row["attempt_id"]].append(f"{count}{row['reason']}")
        assert row["origin"] == "scheduler"
        assert row["plugin"] != "unknown"
    no_fit = told_by(store, "log").filter(pl.col("verdict") == "unschedulable")
    for row in no_fit.iter_rows(named=True):
        half = _HALF.fullmatch(row["message"])
        assert half, row["message"]
        assert row["nodes_total"] == int(half[1])
        assert ", ".join(reasons[row["attempt_id"]]) == half[2]


def test_log_attempts_are_of_the_incarnation_that_lived(
    name_with_text_log: str, stores: Stores
) -> None:
    store = stores(name_with_text_log, log=True)
    lives = incarnations(store)
    reused = 0
    for row in told_by(store, "log").iter_rows(named=True):
        mine = lives[row["namespace"], row["pod"]]
        # The attempt follows its pod's creation and precedes the next one of that name.
        at = bisect_left([created for created, _ in mine], row["at"]) - 1
        reused += len(mine) > 1
        assert row["uid"] == mine[at][1], row
    assert reused > 0


def incarnations(store: Replayed) -> dict[tuple[str, str], list[tuple[datetime, str]]]:
    """Return creation times and uids of each pod name, oldest first.

    The API server's own times where the recording has its audit log, else those of
    creationTimestamp, which are of the second.
    """
    lives: dict[tuple[str, str], list[tuple[datetime, str]]] = defaultdict(list)
    exact = _audited_creations(store.recording)
    for change in pod_changes(store.recording / STREAM):
        if change.version == 1:
            metadata: dict[str, Any] = change.after["metadata"]
            second = datetime.fromisoformat(metadata["creationTimestamp"]).astimezone(UTC)
            created = exact.get(change.uid, second)
            lives[metadata["namespace"], metadata["name"]].append((created, change.uid))
    return lives


def _audited_creations(recording: Recording) -> dict[str, datetime]:
    if "audit.log" not in recording.names():
        return {}
    found = {}
    with (recording / "audit.log").open("rb") as lines:
        for line in lines:
            if b'"verb":"create"' in line and b'"resource":"pods","namespace"' in line:
                record = orjson.loads(line)
                uid = record.get("responseObject", {}).get("metadata", {}).get("uid")
                if uid and "subresource" not in record["objectRef"]:
                    found[uid] = datetime.fromisoformat(record["requestReceivedTimestamp"])
    return found


def test_bound_attempts_have_the_uid_of_the_api_server(
    name_with_text_log: str, stores: Stores
) -> None:
    store = stores(name_with_text_log, log=True)
    _, *lines = (store.recording / "truth/bindings.tsv").read_text().splitlines()
    accepted = [tuple(line.split("\t")[:4]) for line in lines]
    rows = told_by(store, "log").filter(pl.col("verdict") == "bound")
    assert sorted(rows.select("namespace", "pod", "uid", "node").rows()) == sorted(accepted)


def test_log_alone_tells_its_verdicts(recordings: Recordings, tmp_path: Path) -> None:
    # Without a stream there are no uids, but no line is lost.
    trace = build(tmp_path / "store", [recordings("seed") / LOG])
    attempts = trace.query("attempts")
    assert Counter(attempts["verdict"]) == {"unschedulable": 118, "bound": 38}
    assert attempts["uid"].null_count() == attempts.height


def _full_name() -> pl.Expr:
    return pl.concat_str("namespace", "pod", separator="/").alias("name")
