"""Lookups in the raw record: keys, stored objects, and what differs between revisions."""

from __future__ import annotations

import base64
import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from tracekit.decode import decode_value
from tracekit.errors import NotFoundError
from tracekit.replay.diff import apply, diff, without_managed_fields
from tracekit.store import StoreReader

__all__ = ["StoredObject", "changes_between", "list_keys", "pick_cluster", "stored_object"]


@dataclass(frozen=True, slots=True)
class StoredObject:
    """One stored state of a key.

    Attributes:
        object: Kubernetes JSON; for an opaque value its encoding and base64 text.
        deleted_revision: Revision of the delete that ended it; None while it lives.
    """

    key: str
    revision: int
    version: int
    object: Mapping[str, Any]
    deleted_revision: int | None


def pick_cluster(reader: StoreReader, given: str | None) -> str:
    """Return the cluster to look at: the given one, else the only one.

    Raises:
        NotFoundError: If the store has no such cluster, or several and none was given.
    """
    names = reader.clusters()
    if not names:
        raise NotFoundError("the store is empty", todo="run tracekit collect first")
    if given is not None and given not in names:
        raise NotFoundError(f"no cluster {given!r} in the store", todo=f"it has {', '.join(names)}")
    if given is None and len(names) > 1:
        raise NotFoundError(
            f"the store has {len(names)} clusters",
            todo=f"choose one with --cluster: {', '.join(names)}",
        )
    return given or names[0]


def list_keys(reader: StoreReader, cluster: str, prefix: str = "") -> pl.DataFrame:
    """List the keys below a prefix: one row a key, with its last known state."""
    return reader.collect(
        reader.scan("objects")
        .filter(pl.col("cluster") == cluster, pl.col("key").str.starts_with(prefix))
        .sort("revision", "sub")
        .group_by("key")
        .agg(
            _last_known("kind"),
            _last_known("namespace"),
            _last_known("name"),
            pl.len().cast(pl.Int64).alias("changes"),
            pl.col("revision").last().alias("last_revision"),
            (pl.col("operation").last() == "DELETE").alias("deleted"),
        )
        .sort("key")
    )


def _last_known(column: str) -> pl.Expr:
    return pl.col(column).filter(pl.col(column) != "").last().alias(column)


def stored_object(
    reader: StoreReader,
    cluster: str,
    key: str,
    *,
    revision: int | None = None,
    version: int | None = None,
    uid: str | None = None,
) -> StoredObject:
    """Return one state of a key.

    Args:
        reader: The store.
        cluster: Name of the cluster.
        key: etcd key.
        revision: State that stood at this revision, as ``etcdctl get --rev`` has it.
        version: State with this etcd version, of the newest incarnation or of ``uid``.
        uid: Incarnation; the newest by default.

    Raises:
        NotFoundError: If there is no such key or state; says what there is.
        DecodeError: If the value is unreadable.
    """
    rows = _rows_of(reader, cluster, key)
    if revision is not None:
        rows = rows.filter(pl.col("revision") <= revision)
        if not rows.height:
            raise NotFoundError(f"{key} did not exist at revision {revision} in this record")
        if rows["operation"][-1] == "DELETE":
            raise NotFoundError(
                f"{key} was deleted at revision {rows['revision'][-1]}",
                todo="ask for a revision before that",
            )
    ended = rows.filter(pl.col("operation") == "DELETE")["revision"].to_list()
    puts = rows.filter(pl.col("operation") == "PUT")
    if uid is not None:
        puts = puts.filter(pl.col("uid") == uid)
    elif version is not None and puts.height:
        puts = puts.filter(pl.col("uid") == puts["uid"][-1])
    if version is not None:
        puts = puts.filter(pl.col("version") == version)
    if not puts.height:
        wanted = " ".join(
            filter(None, (f"version {version}" if version else "", f"uid {uid}" if uid else ""))
        )
        raise NotFoundError(f"{key} has no state with {wanted or 'a value'} in this record")
    row = puts.row(-1, named=True)
    end = next((r for r in ended if r > row["revision"]), None)
    return StoredObject(key, row["revision"], row["version"], _shown(row), end)


def changes_between(
    reader: StoreReader, cluster: str, key: str, first: int, second: int
) -> list[dict[str, Any]]:
    """List what differs between the states of a key at two revisions, managedFields aside.

    Returns:
        One row a changed field: op, path (JSON pointer), old and new value.
    """
    old = stored_object(reader, cluster, key, revision=first)
    new = stored_object(reader, cluster, key, revision=second)
    state: Any = without_managed_fields(old.object)
    rows: list[dict[str, Any]] = []
    for step in diff(state, without_managed_fields(new.object)):
        before = None if step["op"] == "add" else _value_at(state, step["path"])
        rows.append(
            {"op": step["op"], "path": step["path"], "old": before, "new": step.get("value")}
        )
        state = apply([step], state)
    return rows


def _value_at(document: Any, pointer: str) -> Any:
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        document = document[int(name)] if isinstance(document, list) else document[name]
    return document


def _rows_of(reader: StoreReader, cluster: str, key: str) -> pl.DataFrame:
    rows = reader.collect(
        reader.scan("objects")
        .filter(pl.col("cluster") == cluster, pl.col("key") == key)
        .select("key", "revision", "sub", "operation", "version", "encoding", "uid", "value")
        .sort("revision", "sub")
    )
    if rows.height:
        return rows
    keys = reader.scan("objects").filter(pl.col("cluster") == cluster)
    known = reader.collect(keys.select(pl.col("key").unique()))["key"].sort().to_list()
    near = difflib.get_close_matches(key, known, n=3)
    hint = f"did you mean {', '.join(near)}?" if near else "see the keys with tracekit ls"
    raise NotFoundError(f"no key {key}", todo=hint)


def _shown(row: Mapping[str, Any]) -> Mapping[str, Any]:
    if row["encoding"] in ("protobuf", "json"):
        decoded = decode_value(row["value"]).object
        if decoded is not None:
            return decoded
    return {
        "encoding": row["encoding"],
        "value": base64.b64encode(row["value"] or b"").decode(),
    }
