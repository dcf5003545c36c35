"""Node states folded from node changes."""

from __future__ import annotations

from tests.report.rows import at
from tracekit.report.instants import parse_instant
from tracekit.report.node_states import node_spans, state_at_end


def test_node_states_are_folded_from_changes() -> None:
    def change(seconds: float, what: str, detail: str = "") -> dict[str, object]:
        return {"node": "n", "zone": None, "at": at(seconds), "change": what, "detail": detail}

    rows = [
        change(
            0,
            "registered",
            "ready: False, KubeletNotReady; taints: gpu=yes:NoSchedule, "
            "node.kubernetes.io/not-ready:NoSchedule",
        ),
        change(1, "ready"),
        change(2, "cordoned"),
        change(3, "taint_added", "node.kubernetes.io/unschedulable:NoSchedule"),
        change(4, "taint_added", "maint=a:NoExecute"),
        change(5, "uncordoned"),
        change(6, "taint_removed", "maint=a:NoExecute"),
    ]
    begin = parse_instant(at(0))
    assert begin is not None
    found = [
        (s.kind, (s.begin - begin) // 1_000_000, s.end and (s.end - begin) // 1_000_000)
        for s in node_spans(rows)
    ]
    assert found == [
        ("not_ready", 0, 1),
        ("tainted", 0, None),
        ("cordoned", 2, 5),
        ("tainted", 4, 6),
    ]
    assert state_at_end(node_spans(rows)) == {"n": "tainted"}
