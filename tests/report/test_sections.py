"""Rows to values: each section's numbers from rows worked out by hand."""

from __future__ import annotations

from dataclasses import replace

from tests.report.rows import FACTS, at, figure, page, pod, pods, table, texts, verdict
from tests.report.synthetic import Rows
from tracekit.report.page import AreaChart, LineChart, Mark, StripChart


def _balance_row(
    node: str, resource: str, begin: float, end: float, asked: int, there: int
) -> dict[str, object]:
    return {
        "node": node,
        "zone": "z-a",
        "resource": resource,
        "from_at": at(begin),
        "to_at": at(end),
        "requested": asked,
        "allocatable": there,
        "ratio": asked / there,
    }


NODES: Rows = [
    _balance_row("node-2", "cpu", 0, 50, 0, 1000),
    _balance_row("node-2", "cpu", 50, 100, 600, 1000),
    _balance_row("node-10", "cpu", 0, 100, 3000, 3000),
    _balance_row("node-2", "pods", 0, 100, 3, 110),
]


def test_heat_has_a_row_a_node_in_natural_order_under_its_zone() -> None:
    chart = figure(page(node_balance=NODES), "fig-nodes").chart
    assert isinstance(chart, StripChart)
    assert [r.label for r in chart.rows] == ["z-a", "node-2", "node-10"]
    total, second, tenth = (r.strips[0].marks for r in chart.rows)
    # 3000 of 4000 is 75 %, 3600 of 4000 is 90 %: the fifth and the sixth step.
    assert total == (Mark("h4", "M0 10v-10h1000v10z"), Mark("h5", "M1000 10v-10h1000v10z"))
    assert second == (Mark("h0", "M0 10v-10h1000v10z"), Mark("h3", "M1000 10v-10h1000v10z"))
    assert tenth == (Mark("h5", "M0 10v-10h2000v10z"),)
    assert texts(chart.rows[0].values) == ["90", "–", "3 /110"]
    assert texts(chart.rows[2].values) == ["100", "–", "–"]


def test_heat_table_has_mean_and_peak() -> None:
    rows = table(figure(page(node_balance=NODES), "fig-nodes").data)
    assert rows[0][:6] == ["node-2", "z-a", "open", "60\u2009%", "30\u2009%", "60\u2009%"]


def test_many_nodes_are_folded_to_the_fullest_and_the_emptiest() -> None:
    rows = [_balance_row(f"n{i}", "cpu", 0, 100, i, 100) for i in range(70)]
    chart = figure(page(node_balance=rows), "fig-nodes").chart
    assert isinstance(chart, StripChart)
    assert [r.label for r in chart.rows] == [
        "z-a",
        *("n0", "n1", "n2", "n3", "n4", "n65", "n66", "n67", "n68", "n69"),
        "60 more",
    ]


def test_a_node_that_left_has_no_value_at_the_end() -> None:
    rows = [_balance_row("n", "cpu", 0, 40, 500, 1000)]
    chart = figure(page(node_balance=rows), "fig-nodes").chart
    assert isinstance(chart, StripChart)
    assert chart.rows[1].values[0].text == "–"


def test_heat_is_not_drawn_across_a_hole() -> None:
    rows = [_balance_row("n", "cpu", 0, 100, 500, 1000)]
    gaps: Rows = [{"source": "s", "from_at": at(20), "to_at": at(30), "cause": "compacted"}]
    chart = figure(page(node_balance=rows, gaps=gaps), "fig-nodes").chart
    assert isinstance(chart, StripChart)
    assert chart.axis.gaps == ((20.0, 10.0),)
    assert chart.rows[1].strips[0].marks == (Mark("h3", "M0 10v-10h400v10zM600 10v-10h1400v10z"),)


def test_imbalance_is_sigma_over_mean_and_hidden_below_a_tenth() -> None:
    def step(begin: float, end: float, mean: float, deviation: float) -> dict[str, object]:
        return {
            "resource": "cpu",
            "from_at": at(begin),
            "to_at": at(end),
            "mean_ratio": mean,
            "stddev_ratio": deviation,
            "max_ratio": 1.0,
            "min_ratio": 0.0,
            "gini": 0.5,
            "stranded": 2500,
        }

    found = figure(page(balance=[step(0, 50, 0.05, 0.2), step(50, 100, 0.5, 0.2)]), "fig-imbalance")
    assert isinstance(found.chart, LineChart)
    # 0.4 is the top of an axis of 110 pixels, so y is 0.
    assert found.chart.lines[0].d == "M1000 0H2000"
    assert found.chart.lines[0].value == "0.40"
    assert table(found.table) == [
        ["cpu", "50\u2009%", "0.20", "0.40", "100\u2009%", "0\u2009%", "0.50", "2.5 cores"]
    ]


def _wait(name: str, begin: float, end: float, cause: str, **columns: object) -> dict[str, object]:
    told = {
        "workload": "Deployment/w",
        "from_at": at(begin),
        "to_at": at(end),
        "seconds": end - begin,
        "kind": "unschedulable",
        "cause": cause,
        "nodes_blocked": 3,
        "open": False,
    }
    return pod(name, **{**told, **columns})


WAITS = [
    _wait("a", 0, 50, "Insufficient cpu"),
    _wait("a", 50, 100, "node(s) were unschedulable", open=True),
    _wait("b", 25, 50, "Insufficient cpu"),
    _wait("c", 0, 100, "starting", kind="starting", open=True),
]


def test_the_stack_counts_each_waiting_pod_once() -> None:
    found = figure(page(pending=WAITS), "fig-pending")
    assert isinstance(found.chart, AreaChart)
    cordon, cpu = found.chart.areas
    # The top of the axis is 2 pods on 190 pixels: one pod is 95 pixels.
    assert cordon.css == "c-cordon"
    assert cordon.d == "M1000 190V95H2000V190H1000z"
    assert cpu.d == "M0 190V95H500V0H1000V190H500V190H0z"
    assert (cordon.value, cpu.value) == ("1", "")
    assert [i.group for i in found.legend] == ["Node closed", "No room"]


def test_a_long_stack_is_the_mean_of_equal_steps() -> None:
    waits = [_wait(f"p{i}", i / 5, i / 5 + 0.1, "Too many pods") for i in range(450)]
    found = figure(page(pending=waits), "fig-pending")
    assert "Each step is the mean over 250 ms" in found.caption
    assert isinstance(found.chart, AreaChart)
    assert found.chart.areas[0].css == "c-slots"


def test_longest_waits_leave_out_pods_that_only_start() -> None:
    found = figure(page(pending=WAITS), "fig-spells")
    assert isinstance(found.chart, StripChart)
    assert [(r.label, r.values[0].text, r.values[1].text) for r in found.chart.rows] == [
        ("ns/a", "1 min 40 s", "still waits"),
        ("ns/b", "25.0 s", "done"),
    ]
    assert found.chart.rows[0].strips[0].marks == (
        Mark("c-cordon", "M1000 9v-9h1000v9z"),
        Mark("c-cpu", "M0 9v-9h1000v9z"),
    )


def test_pod_seconds_are_summed_by_namespace_and_cause() -> None:
    def row(namespace: str, cause: str, spent: float) -> dict[str, object]:
        return {
            "namespace": namespace,
            "workload": "Pod/x",
            "cause": cause,
            "pods": 1,
            "pod_seconds": spent,
            "longest_seconds": spent,
        }

    found = figure(
        page(
            pending_by_cause=[
                row("b", "Insufficient cpu", 1),
                row("b", "Insufficient cpu", 3),
                row("a", "gated", 16),
                row("a", "starting", 9),
            ]
        ),
        "fig-pod-seconds",
    )
    assert found.table is not None
    assert [h.label for h in found.table.headers] == [
        "Namespace",
        "Insufficient cpu",
        "Scheduling gate",
        "All causes",
    ]
    assert table(found.table) == [["a", "0", "16", "16"], ["b", "4", "0", "4"]]
    assert texts(found.table.total) == ["All", "4", "16", "20"]
    assert [c.tint for c in found.table.rows[1]] == [None, 0.5, None, None]
    assert "1 pod that had a node" in found.note
    assert "9 pod-seconds" in found.note


def test_zones_in_use_are_counted_from_two_replicas() -> None:
    key: dict[str, object] = {"namespace": "ns", "workload": "Deployment/w", "kind": "Deployment"}
    spread: Rows = [
        {**key, "zone": "z-a", "from_at": at(0), "to_at": at(100), "pods": 1},
        {**key, "zone": "z-a", "from_at": at(25), "to_at": at(100), "pods": 1},
        {**key, "zone": "z-b", "from_at": at(50), "to_at": at(75), "pods": 1},
    ]
    risk: Rows = [
        {
            **key,
            "replicas": 2,
            "zones_used": 1,
            "zones_available": 2,
            "largest_zone_share": 1.0,
            "skew": 2,
            "seconds_in_one_zone": 50.0,
            "spread_was_possible": True,
            "risk": "single_zone",
        }
    ]
    view = page(zone_spread=spread, zone_redundancy=risk)
    chart = figure(view, "fig-zones").chart
    assert isinstance(chart, StripChart)
    assert chart.rows[0].strips[0].marks == (
        Mark("zx0", "M0 9v-1h500v1z"),
        Mark("zx1", "M500 9v-3h500v3zM1500 9v-3h500v3z"),
        Mark("zx2", "M1000 9v-6h500v6z"),
    )
    assert texts(chart.rows[0].values) == ["2", "·", "50.0 s"]
    assert table(figure(view, "fig-risk").table) == [
        [
            "ns/Deployment/w",
            "single zone",
            "2",
            "1",
            "2",
            "100\u2009%",
            "2",
            "50.0 s",
            "yes",
        ]
    ]


def test_moves_are_counted_by_cause_most_first() -> None:
    def move(name: str, cause: str, seconds: float, **columns: object) -> dict[str, object]:
        return pod(
            name,
            node="n",
            at=at(seconds),
            at_certainty="observed",
            cause=cause,
            revision=1,
            certainty="observed",
            **columns,
        )

    view = page(
        moves=[
            move(
                "a",
                "preemption",
                10,
                preemptor="ns/vip",
                replacement_uid="u2",
                replacement_pod="a2",
                detail="victim",
            ),
            move("b", "job_finished", 20),
            move("c", "job_finished", 30),
        ]
    )
    assert table(figure(view, "fig-moves").data) == [
        ["job finished", "2", "1", "0", "0", "2"],
        ["preemption", "1", "1", "1", "0", "1"],
    ]
    assert table(figure(view, "fig-move-list").table)[0] == [
        "12:00:10.000",
        "ns/a",
        "n",
        "preemption",
        "victim · preemptor ns/vip",
        "ns/a2",
        "still pending",
    ]


def _revision(seconds: float, stage: str, **columns: object) -> dict[str, object]:
    told = {
        "at": at(seconds),
        "at_certainty": "estimated",
        "at_error_seconds": 0.02,
        "stage": stage,
        "revision": int(seconds),
        "operation": "PUT",
        "version": 2,
        "node": None,
        "phase": "Pending",
        "writer": "w",
        "changed": ["/x"],
    }
    return pod("a", **{**told, **columns})


LIFE: Rows = [
    _revision(0, "created", version=1),
    _revision(20, "unschedulable"),
    _revision(25, "unschedulable"),
    _revision(30, "unschedulable"),
    _revision(50, "bound", node="n1"),
    _revision(60, "ready", node="n1", phase="Running"),
    _revision(80, "terminating", node="n1", phase="Running"),
    _revision(100, "deleted", node="n1", phase="Running", operation="DELETE", version=0),
]


ATTEMPTS = [
    pod("a", attempt_id=str(i), at=at(20 + 5 * i), at_certainty="observed", nodes_total=4,
        verdict="unschedulable", message=f"0/4 nodes: {i}", sources="condition,log")
    for i in range(3)
]  # fmt: skip
REASONS: Rows = [
    {"attempt_id": str(i), "plugin": "NodeResourcesFit", "reason": "Insufficient cpu",
     "nodes": i + 2}
    for i in range(3)
]  # fmt: skip


def test_a_pod_page_tells_a_life() -> None:
    waits = [_wait("a", 0, 50, "Insufficient cpu")]
    moves: Rows = [pod("a", node="n1", at=at(80), cause="api_eviction")]
    (shown,) = pods(
        page(
            pod_revisions=LIFE,
            attempts=ATTEMPTS,
            attempt_reasons=REASONS,
            pending=waits,
            moves=moves,
        )
    )
    assert shown.anchor == "pod/uid-a"
    assert shown.claim == (
        "Waited 50.0 s and 3 failed attempts for a node, then went to n1. "
        "Left it after 30.0 s: api eviction."
    )
    assert shown.life is not None
    assert [(p.css, p.left, p.width) for p in shown.life.parts] == [
        ("c-cpu", 0.0, 50.0),
        ("b-start", 50.0, 10.0),
        ("b-run", 60.0, 20.0),
        ("b-term", 80.0, 20.0),
    ]
    assert table(shown.verdicts) == [
        [
            "12:00:20.000",
            "unschedulable",
            "4",
            "2–4 Insufficient cpu ×3, until 12:00:30.000",
            "condition, log",
        ]
    ]
    assert [row[2] for row in table(shown.revisions)] == [
        "created",
        "unschedulable",
        "bound n1",
        "ready",
        "terminating",
        "deleted",
    ]
    assert shown.revisions.rows[0][0].bound == "±\u200920 ms"
    assert shown.message == "0/4 nodes: 2"


def test_pods_beyond_the_bound_are_counted() -> None:
    revisions = [
        {**_revision(0, "created", version=1), "pod": f"p{i}", "uid": f"u{i:03}"}
        for i in range(250)
    ]
    waits = [_wait(f"p{i}", 0, i / 10, "Too many pods", uid=f"u{i:03}") for i in range(250)]
    moves: Rows = [
        {"namespace": "ns", "pod": "p0", "uid": "u000", "cause": "preemption", "at": at(9)}
    ]
    view = page(pod_revisions=revisions, pending=waits, moves=moves)
    shown = pods(view)
    assert len(shown) == 200
    assert shown[0].name == "ns/p249"
    assert shown[-1].name == "ns/p0", "a moved pod has its place"
    section = next(s for s in view.sections if s.id == "pods").blocks[0]
    assert "200 pods of 250" in getattr(section, "left_out", "")


def test_the_verdict_counts_live_pods_without_a_node() -> None:
    revisions = [
        _revision(0, "created", version=1),
        {**_revision(0, "created", version=1), "pod": "b", "uid": "uid-b"},
        {**_revision(9, "succeeded", phase="Succeeded"), "pod": "c", "uid": "uid-c"},
        {**_revision(9, "deleted", operation="DELETE"), "pod": "d", "uid": "uid-d"},
    ]
    bindings: Rows = [pod("b", path="scheduler"), pod("c", path="preset")]
    attempts: Rows = [pod("a", verdict="unschedulable"), pod("b", verdict="bound")]
    view = page(
        pod_revisions=revisions,
        pending=WAITS,
        bindings=bindings,
        attempts=attempts,
        node_balance=NODES,
    )
    head = verdict(view)
    assert head.sentence == "1 of 2 live pods have no node when the record ends."
    assert head.support == (
        "What stops most nodes for them now: node cordoned 1. "
        "ns/a waited longest, 1 min 40 s in all."
    )
    assert head.facts == (
        ("2", "nodes seen in 1 zone"),
        ("4", "pods seen"),
        ("1", "bindings (and 1 preset)"),
        ("1", "unschedulable attempts"),
        ("125", "pod-seconds without a node"),
    )
    assert head.banners == ()


def test_damage_and_holes_are_said_at_the_top() -> None:
    diagnostics: Rows = [
        {"code": "WATCH_LINE_CUT", "severity": "DATA_LOSS", "source": "a", "count": 2},
        {"code": "LOG_CLOCK_ASSUMED", "severity": "INFO", "source": "a", "count": 1},
    ]
    gaps: Rows = [
        {
            "source": "a",
            "from_revision": 5,
            "to_revision": 9,
            "from_at": None,
            "to_at": None,
            "cause": "compacted",
        }
    ]
    view = page(diagnostics=diagnostics, gaps=gaps)
    first, second = verdict(view).banners
    assert first == "Data was lost while reading: WATCH_LINE_CUT, 2 times in 1 source."
    assert second.startswith("The record has 1 hole. What happened inside is not known")
    shown = table(figure(view, "fig-diagnostics").table)
    assert [row[0] for row in shown] == ["data loss", "info"]
    assert table(figure(view, "fig-gaps").table) == [["a", "5", "9", "–", "–", "compacted"]]


def test_the_clock_is_stated_from_the_rows() -> None:
    rows = [_revision(i, "updated", at_error_seconds=e) for i, e in enumerate((0.1, 0.3, 0.2))]
    rows.append(_revision(9, "updated", at_certainty="unknown", at_error_seconds=None))
    assert table(figure(page(pod_revisions=rows), "fig-clock").table) == [
        ["pod_revisions", "4", "0", "3", "1", "200 ms", "300 ms"]
    ]


def test_latency_lists_the_slowest_first() -> None:
    def row(name: str, p50: float, p99: float) -> dict[str, object]:
        return {
            "namespace": "ns",
            "workload": name,
            "step": "created_to_bound",
            "pods": 2,
            "p50_seconds": p50,
            "p90_seconds": p99,
            "p99_seconds": p99,
        }

    found = figure(
        page(scheduling_latency=[row("a", 0.1, 1), row("b", 1, 10)]), "fig-created-bound"
    )
    assert table(found.table) == [
        ["ns/b", "2", "1.0 s", "10.0 s", "10.0 s", ""],
        ["ns/a", "2", "100 ms", "1.0 s", "1.0 s", ""],
    ]
    assert found.table is not None
    # The scale runs over two decades, 0.1 s to 10 s.
    assert [(r[-1].tint, r[-1].bar) for r in found.table.rows] == [(0.5, 0.5), (0.0, 0.5)]


def test_a_window_nobody_told_is_read_from_the_rows() -> None:
    facts = replace(FACTS, window_from=None, window_to=None)
    view = page(facts, pending=WAITS)
    assert view.window == "2026-12-01 12:00:00 – 12:01:40 UTC, 1 min 40 s"


def test_figures_are_numbered_through_the_page() -> None:
    view = page(pending=WAITS)
    numbers = [b.number for s in view.sections for b in s.blocks if hasattr(b, "number")]
    assert numbers == list(range(1, len(numbers) + 1))
