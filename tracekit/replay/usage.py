"""Requested against allocatable on each node, as steps over revisions.

A pod counts on its node from its binding until it is terminal or deleted, running or not;
every pod takes one slot of ``pods``. Requests follow the scheduler's rule.

Source: kube-scheduler ``framework/types.go`` NodeInfo (Requested, Allocatable, Pods).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import orjson

from tracekit.replay.quantity import bounded

__all__ = ["fold_usage"]

Row = Mapping[str, Any]
_CPU_ROOM_MILLICORES = 100
_MEMORY_ROOM_BYTES = 256 * 1024 * 1024


def fold_usage(spans: Iterable[Row], placements: Iterable[Row]) -> list[dict[str, Any]]:
    """Fold node spans and placements into rows of ``usage_steps`` without cluster."""
    nodes: dict[str, tuple[list[Row], list[Row]]] = defaultdict(lambda: ([], []))
    for span in spans:
        nodes[span["node"]][0].append(span)
    for placement in placements:
        nodes[placement["node"]][1].append(placement)
    rows: list[dict[str, Any]] = []
    for node in sorted(nodes):
        rows += _merge(_node_steps(node, *nodes[node]))
    return rows


def _node_steps(node: str, spans: list[Row], placements: list[Row]) -> Iterator[dict[str, Any]]:
    turns: dict[int, list[tuple[int, dict[str, int]]]] = defaultdict(list)
    for placement in placements:
        requests = {**orjson.loads(placement["requests"]), "pods": 1}
        turns[placement["from_revision"]].append((1, requests))
        turns[placement["to_revision"]].append((-1, requests))
    ends = {s[end] for s in spans for end in ("from_revision", "to_revision")}
    edges = sorted({*turns, *ends})
    requested: dict[str, int] = defaultdict(int)
    spans = sorted(spans, key=lambda s: s["from_revision"])
    place = 0
    for start, end in pairwise(edges):
        for sign, requests in turns.get(start, ()):
            for resource, amount in requests.items():
                requested[resource] += sign * amount
        while place < len(spans) and spans[place]["to_revision"] <= start:
            place += 1
        ahead = spans[place] if place < len(spans) else None
        span = ahead if ahead is not None and ahead["from_revision"] <= start else None
        if span is not None or any(requested.values()):
            yield from _step(node, span, requested, start, end)


def _step(
    node: str, span: Row | None, requested: Mapping[str, int], start: int, end: int
) -> Iterator[dict[str, Any]]:
    allocatable: dict[str, int] = orjson.loads(span["allocatable"]) if span else {}
    roomless = _is_roomless(allocatable, requested)
    for resource in sorted({*allocatable, *(r for r, amount in requested.items() if amount)}):
        yield {
            "node": node,
            "zone": span["zone"] if span else None,
            "resource": resource,
            "from_revision": start,
            "to_revision": end,
            "requested": bounded(requested.get(resource, 0)),
            "allocatable": allocatable.get(resource),
            "ready": bool(span and span["ready"]),
            "open": bool(span and span["open"]),
            "roomless": roomless,
        }


def _is_roomless(allocatable: Mapping[str, int], requested: Mapping[str, int]) -> bool:
    def free(resource: str) -> int:
        return allocatable.get(resource, 0) - requested.get(resource, 0)

    return (
        free("cpu") < _CPU_ROOM_MILLICORES
        or free("memory") < _MEMORY_ROOM_BYTES
        or free("pods") < 1
    )


def _merge(steps: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join neighbouring steps of one resource that say the same."""
    running: dict[str, dict[str, Any]] = {}
    done: list[dict[str, Any]] = []
    for step in steps:
        before = running.get(step["resource"])
        if before is not None and _same(before, step):
            before["to_revision"] = step["to_revision"]
            continue
        running[step["resource"]] = step
        done.append(step)
    return done


def _same(a: Row, b: Row) -> bool:
    return a["to_revision"] == b["from_revision"] and all(
        a[k] == b[k] for k in ("zone", "requested", "allocatable", "ready", "open", "roomless")
    )
