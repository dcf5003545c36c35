"""Names, messages and annotations that a cluster can hold and a page must only show."""

from __future__ import annotations

from tests.report.synthetic import Cluster, Rows
from tracekit.model.results import QueryResult

TEXTS = (
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "'><svg onload=alert(3)>",
    "{{ 7*7 }}{% raw %}",
    "javascript:alert(4)",
    "</style><style>*{display:none}</style>",
    "</pre></details><iframe src=//evil.example></iframe>",
    "<!-- ]]> -->",
    "a\u202egnp.exe",
    "zero\u200bwidth \x00 null \x1b[31m",
    "lone \ud800 surrogate",
    "'; DROP TABLE pods; --",
    "&lt;b&gt;&amp;",
)


def hostile_results() -> dict[str, QueryResult]:
    """Return a small made-up recording in which every free text is hostile."""
    results = Cluster(nodes=4, pods=12, seed=3).results()
    for name, result in results.items():
        rows: Rows = []
        for number, row in enumerate(result.rows):
            poison = TEXTS[number % len(TEXTS)]
            rows.append({k: _poisoned(k, v, poison) for k, v in row.items()})
        sql = f"SELECT '{TEXTS[0]}' -- {TEXTS[1]}"
        results[name] = QueryResult(name, sql, result.columns, rows)
    return results


# What the page reads as a value, not as words, stays as it is.
_KEPT = ("at", "from_at", "to_at", "at_certainty", "operation", "resource", "attempt_id", "step",
         "severity", "risk", "kind", "change", "verdict", "path")  # fmt: skip


def _poisoned(column: str, value: object, poison: str) -> object:
    if column in _KEPT:
        return value
    if isinstance(value, list):
        return [poison]
    return f"{value}{poison}" if isinstance(value, str) else value
