"""Queries over the derived tables, and the states and lives read through them."""

from __future__ import annotations

import difflib
from collections import defaultdict
from datetime import datetime
from typing import Any, NoReturn

import orjson
import polars as pl

from tracekit.decode import named_pods, parse_fields
from tracekit.errors import NotFoundError, StoreError
from tracekit.model.tables import TABLES
from tracekit.query import QueryRunner
from tracekit.replay.quantity import bounded
from tracekit.store import Store, StoreReader

__all__ = [
    "PodLife",
    "pod_life",
    "query_runner",
    "require_replay",
    "revision_at",
    "revision_time",
    "state_at",
]

PodLife = dict[str, pl.DataFrame]


def query_runner(store: Store) -> QueryRunner:
    """Return a runner over the committed files of a store."""
    reader = StoreReader(store)
    files = {name: reader.files(name) for name in TABLES}
    return QueryRunner(files, {"klog_fields": _fields_json, "klog_pods": _pods_json})


def _fields_json(raw: str) -> str:
    return orjson.dumps(parse_fields(raw), option=orjson.OPT_NON_STR_KEYS).decode()


def _pods_json(raw: str) -> str:
    return orjson.dumps(named_pods(raw)).decode()


def require_replay(store: Store) -> None:
    """Refuse to answer from derived tables that were never built.

    Raises:
        StoreError: If the store was never replayed.
    """
    if not StoreReader(store).rows("replay_state").height:
        raise StoreError(
            "the store has not been replayed",
            where=str(store.folder),
            todo=f"run tracekit replay --store {store.folder}",
        )


def revision_time(reader: StoreReader, cluster: str, revision: int) -> dict[str, Any]:
    """Return ``at``, ``at_certainty`` and ``at_error_seconds`` of a revision of the record.

    Raises:
        NotFoundError: If the record has no such revision.
    """
    rows = reader.rows("revision_times", cluster).filter(pl.col("revision") == revision)
    if not rows.height:
        raise NotFoundError(f"no revision {revision} in the record")
    return rows.select("at", "at_certainty", "at_error_seconds").row(0, named=True)


def revision_at(reader: StoreReader, cluster: str, point: int | datetime) -> int:
    """Return the revision that stood at a revision or time.

    Raises:
        NotFoundError: If the point lies before the record.
    """
    times = reader.rows("revision_times", cluster)
    if isinstance(point, datetime):
        before = times.filter(pl.col("at") <= point)
    else:
        before = times.filter(pl.col("revision") <= point)
    if not before.height:
        first = times.row(0, named=True) if times.height else None
        raise NotFoundError(
            f"{_words(point)} lies before the record",
            todo=f"it begins at revision {first['revision']}, {_words(first['at'])}"
            if first
            else "the cluster has no object revisions: collect an etcd stream",
        )
    return int(before["revision"][-1])


def _words(point: int | datetime | None) -> str:
    if isinstance(point, datetime):
        return f"{point:%Y-%m-%dT%H:%M:%S.%fZ}"
    return "time unknown" if point is None else f"revision {point}"


def state_at(store: Store, cluster: str, point: int | datetime) -> dict[str, Any]:
    """Return the cluster at a revision or time.

    Returns:
        ``revision``, ``at``, ``nodes`` (name, zone, unschedulable, ready, taints,
        allocatable, requested; cpu in millicores, memory and storage in bytes) and ``pods``
        (namespace, name, uid, node, phase), each sorted by name.

    Raises:
        NotFoundError: If the point lies before the record.
    """
    require_replay(store)
    reader = StoreReader(store)
    revision = revision_at(reader, cluster, point)
    stands = (pl.col("from_revision") <= revision) & (pl.col("to_revision") > revision)
    at = revision_time(reader, cluster, revision)["at"]
    spans = reader.rows("node_spans", cluster).filter(stands).sort("node")
    placed = reader.rows("placements", cluster).filter(stands)
    requested = _requested(placed)
    return {
        "revision": revision,
        "at": at,
        "nodes": [
            {
                "name": span["node"],
                "zone": span["zone"],
                "unschedulable": span["unschedulable"],
                "ready": span["ready"],
                "taints": orjson.loads(span["taints"]),
                "allocatable": orjson.loads(span["allocatable"]),
                "requested": requested[span["node"]],
            }
            for span in spans.iter_rows(named=True)
        ],
        "pods": _pods_at(reader, cluster, revision),
    }


def _requested(placed: pl.DataFrame) -> dict[str, dict[str, int]]:
    requested: dict[str, dict[str, int]] = defaultdict(lambda: {"cpu": 0, "memory": 0, "pods": 0})
    for row in placed.iter_rows(named=True):
        node = requested[row["node"]]
        node["pods"] += 1
        for resource, amount in orjson.loads(row["requests"]).items():
            node[resource] = bounded(node.get(resource, 0) + amount)
    return requested


def _pods_at(reader: StoreReader, cluster: str, revision: int) -> list[dict[str, Any]]:
    states = reader.rows("pod_states", cluster).filter(pl.col("revision") <= revision)
    last = states.group_by("key", maintain_order=True).last()
    alive = last.filter(pl.col("operation") == "PUT").sort("namespace", "pod")
    return [
        {
            "namespace": row["namespace"],
            "name": row["pod"],
            "uid": row["uid"],
            "node": row["node"],
            "phase": row["phase"],
        }
        for row in alive.iter_rows(named=True)
    ]


def pod_life(
    store: Store, cluster: str, namespace: str, name: str, uid: str | None = None
) -> PodLife:
    """Return all that the queries say of one pod name.

    Returns:
        Frames ``pods``, ``pod_revisions``, ``attempts``, ``attempt_reasons``, ``node_scores``,
        ``pending`` and ``moves``, of every incarnation or of ``uid``, oldest first.

    Raises:
        NotFoundError: If the record has no such pod; names the nearest.
    """
    require_replay(store)
    runner = query_runner(store)
    who = (
        (pl.col("cluster") == cluster)
        & (pl.col("namespace") == namespace)
        & (pl.col("pod") == name)
    )
    pods = StoreReader(store).rows("pods", cluster)
    mine = pods.filter(who)
    if uid is not None:
        mine = mine.filter(pl.col("uid") == uid)
    if not mine.height:
        _refuse_unknown(pods, f"{namespace}/{name}", uid)
    life: PodLife = {"pods": mine.sort("created_revision")}
    for query in ("pod_revisions", "attempts", "pending", "moves"):
        frame = runner.run(query).filter(who)
        life[query] = frame if uid is None else frame.filter(pl.col("uid") == uid)
    ids = life["attempts"]["attempt_id"].implode()
    for query in ("attempt_reasons", "node_scores"):
        life[query] = runner.run(query).filter(pl.col("attempt_id").is_in(ids))
    return life


def _refuse_unknown(pods: pl.DataFrame, wanted: str, uid: str | None) -> NoReturn:
    names = sorted({f"{n}/{p}" for n, p in pods.select("namespace", "pod").iter_rows()})
    if uid is not None and wanted in names:
        raise NotFoundError(
            f"pod {wanted} has no incarnation with uid {uid}",
            todo=f"see them with tracekit replay {wanted}",
        )
    near = difflib.get_close_matches(wanted, names, n=5, cutoff=0.4)
    raise NotFoundError(
        f"no pod {wanted} in the record",
        todo=f"nearest: {', '.join(near)}"
        if near
        else "see the pods with tracekit query pod_revisions",
    )
