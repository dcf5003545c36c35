"""Requested against allocatable, from hand-made spans and placements."""

from __future__ import annotations

from typing import Any

from tracekit.replay.usage import fold_usage

GIB = 1 << 30


def _span(start: int, end: int, **other: Any) -> dict[str, Any]:
    plain = {
        "node": "n", "zone": "z", "from_revision": start, "to_revision": end, "ready": True,
        "open": True,
        "allocatable": f'{{"cpu":1000,"memory":{GIB},"pods":3}}',
    }  # fmt: skip
    return {**plain, **other}


def _placed(start: int, end: int, requests: str) -> dict[str, Any]:
    return {"node": "n", "from_revision": start, "to_revision": end, "requests": requests}


def _of(rows: list[dict[str, Any]], resource: str) -> list[tuple[Any, ...]]:
    return [
        (r["from_revision"], r["to_revision"], r["requested"], r["allocatable"])
        for r in rows
        if r["resource"] == resource
    ]


def test_requests_come_and_go_with_the_pods() -> None:
    rows = fold_usage(
        [_span(1, 101)],
        [_placed(10, 40, '{"cpu":300}'), _placed(20, 101, '{"cpu":200,"nvidia.com/gpu":1}')],
    )
    assert _of(rows, "cpu") == [
        (1, 10, 0, 1000), (10, 20, 300, 1000), (20, 40, 500, 1000), (40, 101, 200, 1000),
    ]  # fmt: skip
    assert [r[2] for r in _of(rows, "pods")] == [0, 1, 2, 1]
    assert _of(rows, "nvidia.com/gpu") == [(20, 101, 1, None)]


def test_steps_that_say_the_same_are_one() -> None:
    rows = fold_usage([_span(1, 50), _span(50, 101)], [_placed(10, 20, '{"memory":5}')])
    assert _of(rows, "cpu") == [(1, 101, 0, 1000)]


def test_a_pod_on_a_node_that_is_gone_counts_without_allocatable() -> None:
    rows = fold_usage([_span(1, 30)], [_placed(10, 101, '{"cpu":300}')])
    assert _of(rows, "cpu")[-1] == (30, 101, 300, None)
    assert rows[-1]["ready"] is False


def test_roomless_is_a_lack_of_cpu_memory_or_slots() -> None:
    def roomless(requests: str, pods: int = 1) -> bool:
        rows = fold_usage([_span(1, 101)], [_placed(10, 101, requests)] * pods)
        return bool(next(r for r in rows if r["from_revision"] == 10)["roomless"])

    assert not roomless('{"cpu":900,"memory":0}')
    assert roomless('{"cpu":901}')
    assert roomless(f'{{"memory":{GIB - 256 * 1024 * 1024 + 1}}}')
    assert not roomless("{}", pods=2)
    assert roomless("{}", pods=3)
