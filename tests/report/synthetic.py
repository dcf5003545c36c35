"""Made-up query results in the columns of contract.md, for looking at and for tests.

A small random cluster, the same for the same seed. Nothing here is a right value for any
number on the page; those stand in the tests, worked out by hand.
"""

from __future__ import annotations

import random
from collections import defaultdict

from tracekit.model.results import QueryColumn, QueryResult, ReportFacts
from tracekit.report.instants import format_instant, parse_instant

BEGIN = "2026-12-01T16:03:00.000000Z"
SECONDS = 366.0
REASONS = (
    "node(s) were unschedulable",
    "Insufficient cpu",
    "Insufficient memory",
    "Too many pods",
    "node(s) had untolerated taint(s)",
    "node(s) didn't match Pod's node affinity/selector",
    "node(s) didn't match pod topology spread constraints",
    "Insufficient nvidia.com/gpu",
    "node(s) didn't have free ports for the requested pod ports",
    'persistentvolumeclaim "data-0" not found',
    "a reason nobody knows",
)
CAUSES = (
    "api_eviction",
    "taint_eviction",
    "preemption",
    "scale_down",
    "rollout",
    "job_finished",
    "node_deleted",
    "deleted_by_user",
)

Rows = list[dict[str, object]]


def at(seconds: float) -> str:
    """Return an instant of the made-up recording."""
    begin = parse_instant(BEGIN)
    assert begin is not None
    return format_instant(begin + round(seconds * 1e6), 6).replace(" ", "T") + "Z"


def result(name: str, rows: Rows) -> QueryResult:
    """Wrap rows as the query room would."""
    names = dict.fromkeys(c for row in rows for c in row)
    columns = tuple(QueryColumn(c, "", f"meaning of {c}") for c in names)
    return QueryResult(name, f"SELECT *\nFROM {name}\nORDER BY ALL", columns, rows)


class Cluster:
    """One made-up recording."""

    def __init__(self, nodes: int = 24, pods: int = 400, seed: int = 7) -> None:
        self.random = random.Random(seed)
        self.nodes = [f"node-{i + 1}" for i in range(nodes)]
        labels = ("cn-hangzhou-g", "cn-hangzhou-h", "cn-hangzhou-i")
        self.zone: dict[str, str | None] = {
            n: labels[i % 3] if i < nodes - 1 else None for i, n in enumerate(self.nodes)
        }
        self.rows: dict[str, Rows] = defaultdict(list)
        self.revision = 0
        for i in range(pods):
            self._pod(i)
        self._nodes()
        self._balance()
        self._zones()
        self._sums()

    def results(self) -> dict[str, QueryResult]:
        """Return every query the report asks for."""
        return {name: result(name, rows) for name, rows in self.rows.items()}

    def _revise(self, pod: dict[str, object], seconds: float, **columns: object) -> None:
        self.revision += self.random.randint(1, 9)
        self.rows["pod_revisions"].append(
            {
                **pod,
                "revision": self.revision,
                "operation": "PUT",
                "phase": "Pending",
                "node": None,
                "patch": [],
                "at": at(seconds),
                "at_certainty": "estimated",
                "at_error_seconds": round(self.random.uniform(0.001, 0.4), 3),
                **columns,
            }
        )

    def _pod(self, index: int) -> None:
        rnd = self.random
        app = index % 60
        namespace = ("data", "infra", "ml", "shop")[app % 4]
        workload = f"Deployment/app-{app}" if app % 5 else f"StatefulSet/app-{app}"
        pod: dict[str, object] = {
            "cluster": "made-up",
            "namespace": namespace,
            "pod": f"app-{app}-66cdf4b-{index:05d}",
            "uid": f"0a1b2c3d-0000-4000-8000-{index:012d}",
        }
        created = rnd.uniform(1, 330)
        waits = rnd.random() < 0.6
        bound = created + (rnd.expovariate(1 / 90) if waits else rnd.uniform(0.01, 0.3))
        self._revise(
            pod, created, version=1, stage="created", writer="kube-controller-manager", changed=[""]
        )
        self._wait(pod, workload, created, min(bound, SECONDS), bound > SECONDS, waits)
        if bound < SECONDS:
            self._run(pod, workload, created, bound)

    def _wait(
        self,
        pod: dict[str, object],
        workload: str,
        begin: float,
        end: float,
        open_: bool,
        waits: bool,
    ) -> None:
        now, version = begin, 2
        while now < end:
            until = min(end, now + self.random.expovariate(1 / 25)) if waits else end
            reason = self.random.choice(REASONS) if waits else "not_tried"
            self.rows["pending"].append(
                {
                    **pod,
                    "workload": workload,
                    "from_at": at(now),
                    "to_at": at(until),
                    "seconds": round(until - now, 6),
                    "open": open_ and until == end,
                    "kind": "unschedulable" if waits else "not_tried",
                    "cause": reason,
                    "nodes_blocked": self.random.randint(1, 24) if waits else None,
                }
            )
            if waits:
                self._attempt(pod, now, reason)
                self._revise(
                    pod,
                    now,
                    version=version,
                    stage="unschedulable",
                    writer="kube-scheduler",
                    changed=["/status/conditions/0/message"],
                )
            now, version = until, version + 1

    def _attempt(self, pod: dict[str, object], seconds: float, reason: str) -> None:
        for _ in range(self.random.randint(1, 4)):
            key = f"{len(self.rows['attempts']):016x}"
            self.rows["attempts"].append(
                {
                    **pod,
                    "attempt_id": key,
                    "revision": self.revision,
                    "at": at(seconds),
                    "at_certainty": "observed",
                    "at_error_seconds": 0.0,
                    "verdict": "unschedulable",
                    "nodes_total": 24,
                    "sources": ["condition", "log"],
                    "message": f"0/24 nodes are available: 20 {reason}, 4 Too many pods. "
                    "preemption: 0/24 nodes are available: 24 Preemption is not helpful.",
                }
            )
            for nodes, words in ((20, reason), (4, "Too many pods")):
                self.rows["attempt_reasons"].append(
                    {
                        "attempt_id": key,
                        "origin": "scheduler",
                        "plugin": "?",
                        "reason": words,
                        "nodes": nodes,
                    }
                )

    def _run(self, pod: dict[str, object], workload: str, created: float, bound: float) -> None:
        node = self.random.choice(self.nodes)
        self._revise(
            pod,
            bound,
            version=8,
            stage="bound",
            node=node,
            writer="kube-scheduler",
            changed=["/spec/nodeName", "/status/conditions/0"],
        )
        self.rows["bindings"].append(
            {
                **pod,
                "node": node,
                "revision": self.revision,
                "created_revision": 1,
                "at": at(bound),
                "at_certainty": "estimated",
                "at_error_seconds": 0.02,
                "waited_seconds": bound - created,
                "path": "scheduler",
            }
        )
        started = bound + self.random.uniform(0.2, 2)
        self._revise(
            pod,
            started,
            version=9,
            stage="ready",
            node=node,
            phase="Running",
            writer="kubelet",
            changed=["/status/phase", "/status/podIP", "/status/conditions/1", "/status/startTime"],
        )
        if self.random.random() < 0.4:
            self._leave(pod, workload, node, min(started + self.random.expovariate(1 / 40), 360))

    def _leave(self, pod: dict[str, object], workload: str, node: str, seconds: float) -> None:
        cause = self.random.choice(CAUSES)
        self._revise(
            pod,
            seconds,
            version=10,
            stage="terminating",
            node=node,
            phase="Running",
            writer="kube-apiserver",
            changed=["/metadata/deletionTimestamp"],
        )
        self.rows["moves"].append(
            {
                **pod,
                "workload": workload,
                "node": node,
                "at": at(seconds),
                "at_certainty": "estimated",
                "at_error_seconds": 0.05,
                "revision": self.revision,
                "cause": cause,
                "detail": f"deletionTimestamp set by {cause}",
                "actor": "someone",
                "preemptor": "shop/app-60-2" if cause == "preemption" else None,
                "replacement_uid": None,
                "replacement_pod": None,
                "replacement_node": None,
                "certainty": "observed",
                "evidence": {},
            }
        )
        self._revise(
            pod,
            seconds + 1,
            version=0,
            stage="deleted",
            node=node,
            phase="Running",
            operation="DELETE",
            writer=None,
            changed=[],
        )

    def _nodes(self) -> None:
        for node in self.nodes:
            self._node_change(node, 0.2, "registered", "")
            now = self.random.uniform(20, 300)
            while now < 330:
                kind = self.random.choice(("cordon", "taint", "ready"))
                opens, closes, detail = {
                    "cordon": ("cordoned", "uncordoned", "spec.unschedulable"),
                    "taint": ("taint_added", "taint_removed", "maint=a:NoSchedule"),
                    "ready": ("not_ready", "ready", "Ready=Unknown"),
                }[kind]
                until = now + self.random.uniform(5, 120)
                self._node_change(node, now, opens, detail)
                if until < 340:
                    self._node_change(node, until, closes, detail)
                now = until + self.random.uniform(5, 60)
        self.rows["node_changes"].sort(key=lambda r: str(r["at"]))

    def _node_change(self, node: str, seconds: float, change: str, detail: str) -> None:
        self.rows["node_changes"].append(
            {
                "node": node,
                "zone": self.zone[node],
                "at": at(seconds),
                "at_certainty": "estimated",
                "at_error_seconds": 0.1,
                "revision": round(seconds * 60),
                "change": change,
                "detail": detail,
            }
        )

    def _balance(self) -> None:
        steps = [3.0 * i for i in range(123)]
        ratios: dict[tuple[str, str], float] = defaultdict(float)
        for begin, end in zip(steps, [*steps[1:], SECONDS], strict=True):
            for resource, there in (("cpu", 16000), ("memory", 32 << 30), ("pods", 110)):
                values = []
                for node in self.nodes:
                    step = self.random.choice((-0.1, 0, 0, 0, 0.06, 0.12))
                    share = min(max(ratios[node, resource] + step, 0), 1)
                    ratios[node, resource] = share
                    values.append(share)
                    self.rows["node_balance"].append(
                        {
                            "node": node,
                            "zone": self.zone[node],
                            "resource": resource,
                            "from_at": at(begin),
                            "to_at": at(end),
                            "requested": round(share * there),
                            "allocatable": there,
                            "ratio": share,
                        }
                    )
                self._balance_row(begin, end, resource, values)

    def _balance_row(self, begin: float, end: float, resource: str, values: list[float]) -> None:
        mean = sum(values) / len(values)
        spread = (sum((v - mean) ** 2 for v in values) / len(values)) ** 0.5
        self.rows["balance"].append(
            {
                "from_at": at(begin),
                "to_at": at(end),
                "resource": resource,
                "mean_ratio": mean,
                "stddev_ratio": spread,
                "max_ratio": max(values),
                "min_ratio": min(values),
                "gini": 0.2,
                "stranded": 3700,
            }
        )

    def _zones(self) -> None:
        zones = sorted({z for z in self.zone.values() if z})
        for app in range(0, 60, 2):
            workload = f"Deployment/app-{app}" if app % 5 else f"StatefulSet/app-{app}"
            key = {
                "namespace": ("data", "infra", "ml", "shop")[app % 4],
                "workload": workload,
                "kind": workload.split("/")[0],
            }
            used, now = 0, self.random.uniform(0, 100)
            while now < SECONDS:
                until = min(SECONDS, now + self.random.uniform(20, 200))
                used = self.random.randint(1, 3)
                for zone in zones[:used]:
                    self.rows["zone_spread"].append(
                        {
                            **key,
                            "zone": zone,
                            "from_at": at(now),
                            "to_at": at(until),
                            "pods": self.random.randint(1, 4),
                        }
                    )
                now = until
            risk = self.random.choice(("none", "single_zone", "skewed"))
            self.rows["zone_redundancy"].append(
                {
                    **key,
                    "replicas": self.random.randint(2, 8),
                    "zones_used": used,
                    "zones_available": 3,
                    "largest_zone_share": 1 / used,
                    "skew": 2,
                    "seconds_in_one_zone": self.random.uniform(0, 300),
                    "spread_was_possible": True,
                    "risk": risk,
                }
            )

    def _sums(self) -> None:
        sums: dict[tuple[str, str, str], list[float]] = defaultdict(list)
        for row in self.rows["pending"]:
            key = (str(row["namespace"]), str(row["workload"]), str(row["cause"]))
            sums[key].append(float(str(row["seconds"])))
        for (namespace, workload, cause), values in sorted(sums.items()):
            self.rows["pending_by_cause"].append(
                {
                    "namespace": namespace,
                    "workload": workload,
                    "cause": cause,
                    "pods": len(values),
                    "pod_seconds": sum(values),
                    "longest_seconds": max(values),
                }
            )
        for app in range(30):
            for step, scale in (("created_to_bound", 40.0), ("bound_to_running", 1.0)):
                p50 = self.random.uniform(0.01, 1) * scale
                self.rows["scheduling_latency"].append(
                    {
                        "namespace": "shop",
                        "workload": f"Deployment/app-{app}",
                        "step": step,
                        "pods": 7,
                        "p50_seconds": p50,
                        "p90_seconds": p50 * 2,
                        "p99_seconds": p50 * 3,
                    }
                )
        self.rows["diagnostics"] = [
            {
                "code": "LOG_CLOCK_ASSUMED",
                "severity": "INFO",
                "source": "kube-scheduler.log",
                "count": 1,
                "first_at": "line 1",
                "example": "I1201 16:03:00.000000 1 main.go:1] x",
                "remedy": "give --log-year and --log-timezone",
            }
        ]
        self.rows["gaps"] = []


def make_facts(**changes: object) -> ReportFacts:
    """Return the facts of the made-up recording."""
    known: dict[str, object] = {
        "cluster": "made-up",
        "first_revision": 1,
        "last_revision": 24280,
        "window_from": BEGIN,
        "window_to": at(SECONDS),
        "counts": {"revisions": 24280, "log records": 1_200_345},
        "generated_by": "tracekit 0.1.0",
    }
    return ReportFacts(**{**known, **changes})  # type: ignore[arg-type]
