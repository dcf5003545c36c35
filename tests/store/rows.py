"""Rows and recordings of the tests' own making, small enough to reckon with."""

from __future__ import annotations

import base64
import random
from collections.abc import Iterable
from pathlib import Path

import orjson
import polars as pl

from tracekit.model.tables import TABLES
from tracekit.store import SourceWriter, Store, StoreReader
from tracekit.store.schema import conform

__all__ = ["add", "lines", "objects", "stored", "write_log", "write_watch"]


def objects(*changes: tuple[int, str, bytes | None], first_line: int = 1) -> pl.DataFrame:
    """Return rows as a decoder gives them: (revision, key, value), None for a delete."""
    frame = pl.DataFrame(
        {
            "revision": [revision for revision, _, _ in changes],
            "sub": [0] * len(changes),
            "key": [key for _, key, _ in changes],
            "operation": ["PUT" if value is not None else "DELETE" for _, _, value in changes],
            "value": [value for _, _, value in changes],
            "encoding": ["none" if value is None else "json" for _, _, value in changes],
            "redacted": [False] * len(changes),
            "record_no": list(range(first_line, first_line + len(changes))),
        },
        schema_overrides={"value": pl.Binary(), "revision": pl.Int64(), "key": pl.String()},
    )
    return conform(frame, TABLES["objects"]).drop("cluster", "source_id")


def lines(*records: tuple[int | None, str]) -> pl.DataFrame:
    """Return rows as a log decoder gives them: (stamp, text)."""
    frame = pl.DataFrame(
        {
            "record_no": list(range(1, len(records) + 1)),
            "stamp_us": [stamp for stamp, _ in records],
            "raw": [text for _, text in records],
        },
        schema_overrides={"stamp_us": pl.Int64(), "raw": pl.String()},
    )
    return conform(frame, TABLES["log_lines"]).drop("cluster", "source_id")


def add(
    store: Store,
    *frames: pl.DataFrame,
    source: str = "source",
    cluster: str = "default",
    resume: int | None = None,
) -> tuple[int, int]:
    """Write a source of one or more batches; return the stored and the duplicate rows."""
    table = "objects" if "revision" in frames[0].columns else "log_lines"
    writer = SourceWriter(store, table, cluster=cluster, source_id=source)
    for frame in frames:
        writer.stage(writer.admit(frame))
    writer.commit(resume)
    return writer.stored, writer.duplicates


def stored(
    store: Store, table: str, *columns: str, cluster: str = "default"
) -> list[tuple[object, ...]]:
    """Return some columns of a table, sorted."""
    rows = StoreReader(store).rows(table, cluster).select(columns).rows()
    return sorted(rows, key=repr)


def write_watch(path: Path, revisions: Iterable[int], size: int = 0) -> Path:
    """Write an etcd watch recording: one JSON object a revision, as custom resources are kept.

    Args:
        path: File to write.
        revisions: One event each, on a key of its own.
        size: Bytes in each object that no compression makes smaller.
    """
    with path.open("wb") as sink:
        for revision in revisions:
            name = f"w{revision}"
            value = {
                "apiVersion": "example.org/v1",
                "kind": "Widget",
                "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{revision}"},
                "spec": _base64(random.Random(revision).randbytes(size)),
            }
            kv = {
                "key": _base64(f"/registry/example.org/widgets/ns/{name}".encode()),
                "create_revision": revision,
                "mod_revision": revision,
                "version": 1,
                "value": _base64(orjson.dumps(value)),
            }
            header = {"cluster_id": 7, "member_id": 1, "revision": revision, "raft_term": 2}
            sink.write(orjson.dumps({"Header": header, "Events": [{"kv": kv}]}) + b"\n")
    return path


def write_log(path: Path, seconds: Iterable[int]) -> Path:
    """Write a scheduler's klog text: one record a second of an hour."""
    with path.open("w") as sink:
        for second in seconds:
            clock = f"10:{second // 60:02}:{second % 60:02}.000000"
            sink.write(
                f"I0102 {clock}       1 schedule_one.go:314] "
                f'"Successfully bound pod to node" pod="ns/p{second}" node="n1"\n'
            )
    return path


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()
