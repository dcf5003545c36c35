"""The SQL contract bites: each broken file below is told what it breaks, a sound one nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.sql_contract import problems
from tracekit.query.header import read_header

_SOUND = """\
-- Waiting of pods by namespace.
-- @grain one row per namespace
-- @column namespace  text; namespace
-- @column pods       pods; pods that waited
-- @source pending_spells_rows, pods
WITH pods AS (SELECT uid, namespace FROM pods)
SELECT namespace, count(*) AS pods
FROM pending_spells_rows
JOIN pods USING (uid, namespace)
GROUP BY namespace
ORDER BY namespace
"""


def _problems(folder: Path, text: str, name: str = "waiting.sql") -> str:
    path = folder / name
    path.write_text(text)
    return "\n".join(problems(path, read_header(text)))


def test_sound_query_has_no_problem(tmp_path: Path) -> None:
    assert _problems(tmp_path, _SOUND) == ""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("_rows, pods\n", "_rows\n", "the statement reads ['pending_spells_rows', 'pods']"),
        ("_rows, pods\n", "_rows, pods, moves\n", "the statement reads"),
        ("_rows, pods\n", "_rows, pods, pods\n", "@source names a source twice"),
        ("-- @column namespace  text; namespace\n", "", "gives ['namespace', 'pods']"),
        ("one row per namespace", "namespaces", "'-- @grain' must say 'one row per ...'"),
    ],
)
def test_false_header_is_named(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in _SOUND
    assert words in _problems(tmp_path, _SOUND.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("-- Waiting of pods by namespace.", "-- Waiting of pods", "'-- <summary>.'"),
        ("ORDER BY namespace\n", "", "must have an ORDER BY"),
        ("ORDER BY namespace\n", "ORDER BY namespace", "end in a newline"),
        ("ORDER BY namespace\n", "ORDER BY namespace;\nSELECT 1\n", "exactly one SELECT"),
        ("ORDER BY namespace\n", "ORDER BY\n", "does not parse"),
        ("GROUP BY namespace", "group BY namespace", "keyword 'group' must be upper-case"),
        ("namespace, count(*) AS pods", "*", "not use *"),
        ("count(*) AS pods", f"count(*)  /* {'x' * 80} */ AS pods", "more than 100"),
        ("JOIN pods", "ASOF JOIN pods", "ASOF is not portable"),
        ("JOIN pods USING", "JOIN main.pods USING", "no schema before its name"),
        ("WITH pods AS (", "WITH pods AS MATERIALIZED (", "MATERIALIZED is not portable"),
        ("count(*) AS", "quantile_cont(x, 0.5) AS", "quantile_cont() is not portable"),
        ("count(*) AS", "time_bucket(INTERVAL 1 DAY, at) AS", "time_bucket() is not portable"),
        ("count(*) AS", "epoch_ms(at) AS", "epoch_ms() is not portable"),
        ("count(*) AS", "epoch(at) AS", "epoch() loses the fraction"),
        ("count(*) AS", "len(reasons) AS", "len() is not portable"),
        ("count(*) AS", "extract(epoch FROM at) AS", "extract(epoch ...) is not portable"),
        ("count(*) AS", "[x + 1 for x in xs] AS", "a list comprehension is not portable"),
        ("count(*) AS", "xs[1:2] AS", "a list slice is not portable"),
        ("count(*) AS", "date_diff('second', a, b) AS", "counts boundaries here"),
        (
            "FROM pending_spells_rows",
            "FROM generate_series(1, 3)",
            "generate_series() is not portable",
        ),
        ("FROM pending_spells_rows", "FROM read_parquet('x')", "reads by a function"),
        ("FROM pods)", "FROM pods UNION ALL BY NAME SELECT 1)", "UNION BY NAME is not portable"),
        ("FROM pods)", "FROM pods PIVOT (count(*) FOR uid IN (1)))", "PIVOT is not portable"),
    ],
)
def test_false_statement_is_named(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in _SOUND
    assert words in _problems(tmp_path, _SOUND.replace(old, new))


@pytest.mark.parametrize("name", ["Waiting.sql", "waiting-time.sql"])
def test_false_name_is_named(tmp_path: Path, name: str) -> None:
    assert "lower_snake" in _problems(tmp_path, _SOUND, name)


def test_floor_of_epoch_is_allowed(tmp_path: Path) -> None:
    text = _SOUND.replace("count(*) AS", "max(floor(epoch(at))) AS")
    assert _problems(tmp_path, text) == ""
