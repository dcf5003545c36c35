"""klog as JSON in, the rows of its text form out.

Key order and what a record lacks are those of component-base ``logs/json/json.go`` and of its
own tests; the recording is one of kube-scheduler 1.36 with ``--logging-format=json``.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import polars as pl
import pytest

from tests.recordings import Recordings
from tracekit.decode import decoder_for, parse_fields
from tracekit.decode.klog_json import JsonKlogDecoder, JsonKlogSession
from tracekit.model.diagnostics import Diagnostic

TS = '{"ts":1796141959935.9812,'
AT = datetime(2026, 12, 1, 16, 19, 19, 935981, UTC)
INFO = TS + '"caller":"scheduler/schedule_one.go:481","msg":"Successfully bound pod to node","v":2}'
BOUND = (
    TS + '"caller":"scheduler/schedule_one.go:481","msg":"Successfully bound pod to node",'
    '"pod":{"name":"b","namespace":"a"},"v":2,"pod":{"name":"b","namespace":"a"},"node":"n1",'
    '"evaluatedNodes":4,"feasibleNodes":2}'
)


def read(text: str | bytes, block: int = 1 << 22) -> tuple[pl.DataFrame, list[Diagnostic]]:
    data = text.encode() if isinstance(text, str) else text
    session = JsonKlogSession(block)
    batches = [session.parse(chunk) for chunk in session.split(io.BytesIO(data))]
    return pl.concat(b.frame for b in batches), [d for b in batches for d in b.diagnostics]


def row(text: str) -> dict[str, Any]:
    frame, _ = read(f"{text}\n")
    assert frame.height == 1
    return frame.row(0, named=True)


def stamp_us(at: datetime, steps: int = 0) -> int:
    yearless = at.replace(year=2000 + 4 * steps, tzinfo=None)
    return (yearless - datetime(2000, 1, 1)) // timedelta(microseconds=1)


def test_record() -> None:
    assert row(BOUND) == {
        "record_no": 1,
        "stamp_us": stamp_us(AT),
        "severity": "I",
        "thread": None,
        "caller": "scheduler/schedule_one.go:481",
        "message": "Successfully bound pod to node",
        "structured": True,
        "raw": BOUND,
        "wrapped_at": AT,
    }
    assert parse_fields(BOUND) == {
        "pod": "a/b", "node": "n1", "evaluatedNodes": 4, "feasibleNodes": 2,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("ts", "micros"),
    [
        ("1796141959935.9812", 935_981),
        ("1796141959935.9819", 935_981),
        ("1796141959935.98", 935_980),
        ("1796141959935.9", 935_900),
        ("1796141959935", 935_000),
        ("1796141959000.0005", 0),
    ],
)
def test_time_is_cut_to_the_microsecond_as_in_text(ts: str, micros: int) -> None:
    found = row(INFO.replace("1796141959935.9812", ts))
    assert found["wrapped_at"].microsecond == micros
    assert found["stamp_us"] % 1_000_000 == micros


@pytest.mark.parametrize(
    ("line", "severity", "caller", "message"),
    [
        # No severity key: an error is what has no v, wherever v stands.
        (TS + '"caller":"a/b.go:1","msg":"m","v":0}', "I", "a/b.go:1", "m"),
        (TS + '"caller":"a/b.go:1","msg":"m","k":1,"v":5,"x":"y"}', "I", "a/b.go:1", "m"),
        (TS + '"caller":"a/b.go:1","msg":"m","err":"e"}', "E", "a/b.go:1", "m"),
        (TS + '"caller":"a/b.go:1","msg":"m","k":"\\"v\\":1","err":"e"}', "E", "a/b.go:1", "m"),
        (TS + '"logger":"Filter.X","caller":"a/b.go:1","msg":"m","v":4}', "I", "a/b.go:1", "m"),
        # 1.19 to 1.21: no caller, and errors have "v":0.
        (TS + '"msg":"m","v":0,"err":"e"}', "E", None, "m"),
        (TS + '"msg":"m","v":0}', "I", None, "m"),
        # Escapes: of a quote, of a backslash before the closing quote, of Unicode.
        (TS + '"caller":"a/b.go:1","msg":"a \\"b\\" c","v":0}', "I", "a/b.go:1", 'a "b" c'),
        (TS + '"caller":"a/b.go:1","msg":"a\\\\","v":0}', "I", "a/b.go:1", "a\\"),
        (TS + '"caller":"a/b.go:1","msg":"\\u4e2d\\n","v":0}', "I", "a/b.go:1", "\u4e2d\n"),
        (TS + '"caller":"a/b.go:1","msg":"é","v":0}', "I", "a/b.go:1", "é"),
        (TS + '"caller":"a/b.go:1","msg":"","v":0}', "I", "a/b.go:1", ""),
        (TS + '"caller":"a/b.go:1","msg":"m","k":"\\\\","v":0}', "I", "a/b.go:1", "m"),
    ],
)
def test_header(line: str, severity: str, caller: str | None, message: str) -> None:
    found = row(line)
    assert (found["severity"], found["caller"], found["message"]) == (severity, caller, message)
    assert (found["wrapped_at"], found["raw"]) == (AT, line)


@pytest.mark.parametrize(
    ("pairs", "fields"),
    [
        # Text writes references as klog.KObj does, and lists of them as klog.KObjSlice.
        ('"v":2,"pod":{"name":"b","namespace":"a"}', {"pod": "a/b"}),
        ('"v":2,"node":{"name":"n"}', {"node": "n"}),
        ('"v":2,"pods":[{"name":"b","namespace":"a"},{"name":"d"}]', {"pods": ["a/b", "d"]}),
        ('"v":2,"taint":{"key":"k","effect":"NoSchedule"}',
         {"taint": {"key": "k", "effect": "NoSchedule"}}),
        ('"v":2,"x":{"name":"n","kind":"K"}', {"x": {"name": "n", "kind": "K"}}),
        # Of equal keys the last value counts, at the first place.
        ('"pod":"a/b","v":2,"k":1,"pod":"c/d"', {"pod": "c/d", "k": 1}),
        ('"k":1,"err":"e"', {"err": "e", "k": 1}),
        ('"v":2,"took":"1µs","on":true,"no":null', {"took": "1µs", "on": True, "no": None}),
    ],
)  # fmt: skip
def test_fields_are_those_of_text(pairs: str, fields: dict[str, Any]) -> None:
    found = parse_fields(f'{TS}"caller":"a/b.go:1","msg":"m",{pairs}}}')
    assert list(found.items()) == list(fields.items())


def test_logger_is_the_first_field() -> None:
    found = parse_fields(TS + '"logger":"Filter.X","caller":"a/b.go:1","msg":"m","k":1,"err":"e"}')
    assert list(found.items()) == [("logger", "Filter.X"), ("err", "e"), ("k", 1)]


def test_text_between_stays() -> None:
    text = (
        "I1201 16:19:19.000001       1 main.go:1] starting\nFlag --x has been deprecated\n"
        f"{INFO}\npanic: oh no\n\ngoroutine 1 [running]:\nmain.main()\n\t/src/main.go:5 +0x1\n"
        f"{INFO}\n"
    )
    frame, damage = read(text)
    assert frame["severity"].to_list() == ["I", "I", None, "I"]
    assert "\n".join(frame["raw"]) + "\n" == text
    assert [(d.code, d.position) for d in damage] == [("LOG_LINE_UNSTRUCTURED", 4)]


def test_record_over_two_lines_is_one() -> None:
    """Source: kubernetes test/integration/logs/benchmark/data/split.log."""
    text = f"{BOUND[:120]}\n{BOUND[120:]}\n{INFO}\n"
    frame, damage = read(text)
    assert frame["message"].to_list() == ["Successfully bound pod to node"] * 2
    assert damage == []


def test_cut_record_is_kept_and_told() -> None:
    frame, damage = read(f"{INFO}\n{BOUND[:100]}")
    assert frame["raw"].to_list() == [INFO, BOUND[:100]]
    assert [(d.code, d.position) for d in damage] == [("LOG_RECORD_CUT", 2)]


def test_new_year_and_leap_day() -> None:
    ends = [datetime(2027, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(2028, 2, 29, tzinfo=UTC),
            datetime(2028, 3, 1, tzinfo=UTC), datetime(2029, 3, 1, tzinfo=UTC)]  # fmt: skip
    text = "".join(
        INFO.replace("1796141959935.9812", f"{int(at.timestamp())}000") + "\n" for at in ends
    )
    expected = [stamp_us(at, steps) for at, steps in zip(ends, (0, 1, 1, 2), strict=True)]
    assert read(text)[0]["stamp_us"].to_list() == expected


@pytest.mark.parametrize("block", [1, 50, 200, 1000])
def test_blocks_do_not_change_rows(block: int) -> None:
    text = f"Flag --x\n{INFO}\n{BOUND[:120]}\n{BOUND[120:]}\r\n\n{INFO}\nError: x\ny\n{BOUND}"
    assert read(text, block)[0].equals(read(text)[0])


def test_not_utf8() -> None:
    data = INFO.encode().replace(b"bound", b"b\xffund") + b"\n"
    frame, damage = read(data)
    assert frame["message"].to_list() == ["Successfully b\ufffdund pod to node"]
    assert [d.code for d in damage] == ["LOG_NOT_UTF8"]


@pytest.mark.parametrize(
    ("head", "is_own"),
    [
        (f"{INFO}\n", True),
        (f"Flag --x\n{INFO}\n", True),
        (f"{INFO}\n{INFO[:40]}", True),
        # zap and controller-runtime: a level, seconds, RFC 3339.
        ('{"level":"info","ts":1576762653.0310497,"caller":"a.go:1","msg":"m"}\n', False),
        ('{"ts":1576762653.0310497,"caller":"a.go:1","msg":"m"}\n', False),
        ('{"ts":"2024-12-09T21:21:39Z","caller":"a.go:1","msg":"m"}\n', False),
        ('{"ts":1796141959935.9812,"level":"info","msg":"m"}\n', False),
        ('{"kind":"Event","apiVersion":"audit.k8s.io/v1"}\n', False),
        ("I1201 16:19:19.000001       1 main.go:1] starting\n", False),
    ],
)
def test_recognised_by_milliseconds_and_no_level(head: str, is_own: bool) -> None:
    assert JsonKlogDecoder().recognises(head.encode()) is is_own


def test_recording_gives_what_an_independent_reading_gives(recordings: Recordings) -> None:
    data = (recordings("json") / "kube-scheduler.log").read_bytes()
    assert decoder_for(data[:65536], path="x", forced=None).name == "klog-json"
    lines = data.decode().splitlines()
    records = [orjson.loads(line) for line in lines]
    frame, damage = read(data)
    assert damage == []
    assert frame["raw"].to_list() == lines
    assert frame["message"].to_list() == [r["msg"] for r in records]
    assert frame["caller"].to_list() == [r["caller"] for r in records]
    assert frame["severity"].to_list() == ["I" if "v" in r else "E" for r in records]
    assert frame["wrapped_at"].dt.epoch("us").to_list() == list(_micros(lines))


def _micros(lines: Iterable[str]) -> Iterable[int]:
    for line in lines:
        match = re.match(r'\{"ts":(\d+)(?:\.(\d+))?', line)
        assert match is not None
        yield int(match[1]) * 1000 + int((match[2] or "")[:3].ljust(3, "0"))
