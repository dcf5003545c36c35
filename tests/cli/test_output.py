"""A frame in, bytes out."""

from __future__ import annotations

import csv
import io
import json
import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any, BinaryIO, cast

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracekit.cli.output import OutputFormat, write_frame

FORMATS: list[OutputFormat] = ["table", "json", "jsonl", "csv", "parquet"]
AT = datetime(2026, 12, 1, 15, 59, 44, 394_122, tzinfo=UTC)


def written(
    frame: pl.DataFrame, fmt: OutputFormat, *json_columns: str, width: int | None = 80
) -> bytes:
    out = io.BytesIO()
    write_frame(frame, fmt, out, json_columns=frozenset(json_columns), width=width)
    return out.getvalue()


def lines(frame: pl.DataFrame, *, width: int | None = 80) -> list[str]:
    return written(frame, "table", width=width).decode().splitlines()


PODS = pl.DataFrame(
    {
        "pod": ["web-1", None],
        "revision": [7, None],
        "ratio": [1.2, math.nan],
        "open": [True, None],
        "at": pl.Series([AT, None], dtype=pl.Datetime("us", "UTC")),
        "evidence": ['{"b":1,"a":[null]}', None],
    }
)


def test_json_is_an_array_of_objects_with_utc_times_and_nested_json() -> None:
    assert written(PODS, "json", "evidence").decode() == (
        "[\n"
        '{"pod":"web-1","revision":7,"ratio":1.2,"open":true,"at":"2026-12-01T15:59:44.394122Z",'
        '"evidence":{"b":1,"a":[null]}},\n'
        '{"pod":null,"revision":null,"ratio":null,"open":null,"at":null,"evidence":null}\n'
        "]\n"
    )


def test_jsonl_has_one_object_a_line() -> None:
    rows = written(PODS, "jsonl", "evidence").decode().splitlines()
    assert rows[0] == (
        '{"pod":"web-1","revision":7,"ratio":1.2,"open":true,'
        '"at":"2026-12-01T15:59:44.394122Z","evidence":{"b":1,"a":[null]}}'
    )
    assert [json.loads(row)["pod"] for row in rows] == ["web-1", None]


@pytest.mark.parametrize(("fmt", "expected"), [("json", b"[]\n"), ("jsonl", b"")])
def test_json_without_rows(fmt: OutputFormat, expected: bytes) -> None:
    assert written(PODS.clear(), fmt, "evidence") == expected


@pytest.mark.parametrize(
    ("text", "nested"),
    [
        ("[1, 2]", [1, 2]),
        ('"x"', "x"),
        ("null", None),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ('{\n "a": 1\n}', {"a": 1}),
        ("", ""),
        ("{broken", "{broken"),
        ("NaN", "NaN"),
    ],
)
def test_json_text_is_nested_and_other_text_stays(text: str, nested: Any) -> None:
    frame = pl.DataFrame({"evidence": [text]})
    row = written(frame, "jsonl", "evidence")
    assert row.count(b"\n") == 1
    assert json.loads(row) == {"evidence": nested}
    assert json.loads(written(frame, "jsonl")) == {"evidence": text}


def test_json_knows_every_type_a_query_can_make() -> None:
    frame = pl.DataFrame(
        {
            "sum": pl.Series([Decimal(10**25)], dtype=pl.Decimal(38, 0)),
            "price": pl.Series([Decimal("1.50")], dtype=pl.Decimal(10, 2)),
            "wide": pl.Series([2**70], dtype=pl.Int128),
            "waited": [timedelta(seconds=90, microseconds=5)],
            "day": [date(2026, 12, 1)],
            "raw": [b"k8s\x00"],
            "phase": pl.Series(["Running"], dtype=pl.Categorical),
            "nodes": [["a", "b"]],
            "place": [{"zone": "g", "at": AT}],
            "local": [datetime(2026, 12, 1, 15, 59)],
            "berlin": pl.Series([AT]).dt.convert_time_zone("Europe/Berlin"),
            "infinite": [math.inf],
            "nothing": [None],
        }
    )
    assert json.loads(written(frame, "jsonl")) == {
        "sum": 10**25,
        "price": 1.5,
        "wide": 2**70,
        "waited": 90.000005,
        "day": "2026-12-01",
        "raw": "azhzAA==",
        "phase": "Running",
        "nodes": ["a", "b"],
        "place": {"zone": "g", "at": "2026-12-01T15:59:44.394122Z"},
        "local": "2026-12-01T15:59:00.000000",
        "berlin": "2026-12-01T15:59:44.394122Z",
        "infinite": None,
        "nothing": None,
    }
    for fmt in FORMATS:
        assert written(frame, fmt) == written(frame, fmt)


def test_csv_follows_rfc_4180() -> None:
    assert written(PODS, "csv", "evidence").decode() == (
        "pod,revision,ratio,open,at,evidence\r\n"
        'web-1,7,1.2,true,2026-12-01T15:59:44.394122Z,"{""b"":1,""a"":[null]}"\r\n'
        ",,NaN,,,\r\n"
    )


def test_csv_without_rows_has_the_header() -> None:
    assert written(PODS.clear(), "csv") == b"pod,revision,ratio,open,at,evidence\r\n"


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.text(alphabet=st.sampled_from('a,"\r\n é'), max_size=6), st.integers(0, 9)),
        max_size=5,
    )
)
def test_csv_is_read_back_whatever_the_text(rows: list[tuple[str, int]]) -> None:
    frame = pl.DataFrame(rows, schema={'a,"b"': pl.String, "n": pl.Int64}, orient="row")
    text = written(frame, "csv").decode()
    read = list(csv.reader(io.StringIO(text, newline="")))
    assert read == [['a,"b"', "n"], *([value, str(n)] for value, n in rows)]


def test_csv_tells_an_empty_text_from_null() -> None:
    frame = pl.DataFrame({"a": ["", None], "b": ["x", "y"]})
    assert written(frame, "csv") == b'a,b\r\n"",x\r\n,y\r\n'


class Pipe(io.RawIOBase):
    """A sink that cannot seek, as stdout into a pipe."""

    def __init__(self) -> None:
        self.got = b""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.got += bytes(data)
        return len(data)


def test_parquet_goes_into_a_pipe_and_keeps_text_and_types() -> None:
    pipe = Pipe()
    write_frame(
        PODS, "parquet", cast(BinaryIO, pipe), json_columns=frozenset({"evidence"}), width=None
    )
    assert pl.read_parquet(io.BytesIO(pipe.got)).equals(PODS, null_equal=True)


def test_table_aligns_numbers_right_and_shows_null() -> None:
    frame = pl.DataFrame(
        {
            "node": ["node-65", "n\u00f6de", None],
            "pods": [12, 3, None],
            "cordoned": [True, False, None],
        }
    )
    assert lines(frame) == [
        "node     pods  cordoned",
        "───────  ────  ────────",
        "node-65    12  true",
        "n\u00f6de        3  false",
        "–           –  –",
    ]


def test_table_without_rows_has_the_header() -> None:
    assert lines(
        pl.DataFrame({"node": [], "pods": []}, schema={"node": pl.String, "pods": pl.Int8})
    ) == [
        "node  pods",
        "────  ────",
    ]
    assert lines(pl.DataFrame()) == []


def test_table_shortens_the_widest_text_and_marks_it() -> None:
    frame = pl.DataFrame({"pod": ["default/ubuntu"], "message": ["m" * 200], "nodes": [24]})
    table = lines(frame, width=60)
    assert table[2] == f"default/ubuntu  {'m' * 36}…     24"
    assert max(map(len, table)) == 60


def test_table_that_fits_nowhere_becomes_records() -> None:
    frame = pl.DataFrame({f"column_{n}": ["v" * 30, None] for n in range(5)} | {"n": [1, 2]})
    value = "v" * 30
    assert lines(frame, width=60) == [
        *(f"column_{n}: {value}" for n in range(5)),
        "n:        1",
        "",
        *(f"column_{n}: –" for n in range(5)),
        "n:        2",
    ]


def test_table_counts_wide_and_combining_characters() -> None:
    frame = pl.DataFrame({"pod": ["日本", "e\u0301"], "n": [1, 2]})
    assert lines(frame)[2:] == ["日本  1", "e\u0301     2"]


@pytest.mark.parametrize("width", [20, 400])
def test_table_shows_control_characters_as_escapes(width: int) -> None:
    hostile = "\x1b[2J\x1b]0;owned\x07 a\r\nb\tc \u202eevil\u2028 \x9b31m \x7f"
    frame = pl.DataFrame({"na\nme": [hostile], "message": [hostile]})
    text = written(frame, "table", width=width).decode()
    assert all(c.isprintable() or c == "\n" for c in text)
    assert text.count("\n") == (2 if width == 20 else 3)
    assert r"\x1b[2J\x1b" in text
    assert r"na\nme" in text


def test_table_is_as_wide_as_the_terminal_but_never_below_80(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    frame = pl.DataFrame({"message": ["m" * 500]})
    for columns, width in (("40", 80), ("132", 132)):
        monkeypatch.setenv("COLUMNS", columns)
        assert len(lines(frame, width=None)[2]) == width


SCREEN_TEXT = st.text(alphabet="ab c\n\x1b日", max_size=60)


@settings(deadline=None)
@given(
    st.lists(st.tuples(SCREEN_TEXT, SCREEN_TEXT, st.integers(0, 10**9)), max_size=4),
    st.integers(20, 120),
)
def test_table_fits_its_width_or_is_printed_as_records(
    rows: list[tuple[str, str, int]], width: int
) -> None:
    schema = {"pod": pl.String, "message": pl.String, "n": pl.Int64}
    table = lines(pl.DataFrame(rows, schema=schema, orient="row"), width=width)
    if table[0].startswith("pod:"):
        labelled = [line for line in table if line.startswith(("pod:", "message:", "n:"))]
        assert len(labelled) == 3 * len(rows)
        assert all(line == "" or line.startswith(" ") for line in table if line not in labelled)
    else:
        assert len(table) == 2 + len(rows)
        assert all(len(line) + line.count("日") <= width for line in table)


@pytest.mark.parametrize("fmt", FORMATS)
def test_same_frame_gives_the_same_bytes(fmt: OutputFormat) -> None:
    assert written(PODS, fmt, "evidence") == written(PODS.clone(), fmt, "evidence")
