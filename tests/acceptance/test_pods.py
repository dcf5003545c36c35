"""Pod revisions and bindings against the stream and the API server's record (rows 2 and 3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import polars as pl

from tests.acceptance.etcd_scan import PodChange, apply_patch, pod_changes
from tests.acceptance.stores import STREAM, Stores
from tracekit.replay.diff import apply

BINDINGS = {"seed": 38, "mid": 430, "wide": 590, "json": 270}


def canonical(value: object) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def plain(document: Any) -> Any:
    """Return a copy of the object without its managedFields."""
    copy = orjson.loads(orjson.dumps(document))
    if copy is not None:
        copy["metadata"].pop("managedFields", None)
    return copy


def expected(change: PodChange) -> tuple[object, ...]:
    metadata = change.after["metadata"]
    return (
        change.revision,
        metadata["namespace"],
        metadata["name"],
        change.uid,
        change.operation,
        change.version,
        change.after["spec"].get("nodeName"),
        change.after["status"].get("phase"),
    )


def test_every_revision_of_every_pod_is_told(name: str, stores: Stores) -> None:
    store = stores(name)
    columns = ("revision", "namespace", "pod", "uid", "operation", "version", "node", "phase")
    told = store.query("pod_revisions").select(columns).rows()
    scanned = [expected(change) for change in pod_changes(store.recording / STREAM)]
    assert any(row[4] == "DELETE" for row in scanned)
    assert sorted(told, key=str) == sorted(scanned, key=str)


def test_deletes_and_only_they_are_the_stage_deleted(name: str, stores: Stores) -> None:
    rows = stores(name).query("pod_revisions")
    deleted = rows.filter(pl.col("operation") == "DELETE")
    assert deleted["version"].unique().to_list() == [0]
    assert rows.filter(pl.col("stage") == "deleted").equals(deleted)


def test_patch_leads_from_each_state_to_the_next(name: str, stores: Stores) -> None:
    store = stores(name)
    columns = store.query("pod_revisions").select("revision", "uid", "patch", "changed")
    told = {(row[0], row[1]): row[2:] for row in columns.iter_rows()}
    for change in pod_changes(store.recording / STREAM):
        text, changed = told[change.revision, change.uid]
        patch = orjson.loads(text)
        before, after = plain(change.before), canonical(plain(change.after))
        assert canonical(apply(patch, before)) == after, change.revision
        assert canonical(apply_patch(before, patch)) == after, change.revision
        assert {step["path"] for step in patch} >= set(orjson.loads(changed))


def read_bindings(path: Path) -> list[tuple[str, ...]]:
    _, *lines = path.read_text().splitlines()
    return [tuple(line.split("\t")) for line in lines]


def test_bindings_are_those_the_api_server_accepted(name: str, stores: Stores) -> None:
    store = stores(name)
    by_scheduler = store.query("bindings").filter(pl.col("path") == "scheduler")
    accepted = read_bindings(store.recording / "truth/bindings.tsv")
    assert len(accepted) == BINDINGS[name]
    told = by_scheduler.select("namespace", "pod", "uid", "node").rows()
    assert sorted(told) == sorted(row[:4] for row in accepted)


def test_other_ways_to_a_node_are_those_of_the_stream(name: str, stores: Stores) -> None:
    store = stores(name)
    scanned: dict[str, str] = {}
    for change in pod_changes(store.recording / STREAM):
        if change.version == 1 and change.after["spec"].get("nodeName"):
            annotations = change.after["metadata"].get("annotations", {})
            mirror = "kubernetes.io/config.mirror" in annotations
            scanned[change.uid] = "static" if mirror else "preset"
    rows = store.query("bindings").filter(pl.col("path") != "scheduler")
    assert dict(rows.select("uid", "path").iter_rows()) == scanned
