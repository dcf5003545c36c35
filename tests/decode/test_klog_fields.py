"""Raw klog records in, key=value pairs out; right values from klog's and Go's own rules."""

from __future__ import annotations

import json
import string
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracekit.decode.klog_fields import ends_open, parse_fields, unquote

HEADER = "I0301 10:00:00.000000       1 scheduling_queue.go:800] "


def fields(tail: str, message: str = "m") -> dict[str, Any]:
    return parse_fields(f'{HEADER}"{message}"{tail}')


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        ("", {}),
        (' pod="ns-a/pod-a" node=""', {"pod": "ns-a/pod-a", "node": ""}),
        (
            " a=0 b=-7 c=300 d=1.5 e=-0.25 f=1e+06",
            {"a": 0, "b": -7, "c": 300, "d": 1.5, "e": -0.25, "f": 1e6},
        ),
        (" a=true b=false c=null", {"a": True, "b": False, "c": None}),
        # Not numbers as Go writes them: kept as they stand.
        (
            " a=007 b=1.10 c=0x1f d=1df28081 e=+1 f=1.",
            {"a": "007", "b": "1.10", "c": "0x1f", "d": "1df28081", "e": "+1", "f": "1."},
        ),
        (" a=9223372036854775807 b=18446744073709551615", {"a": 2**63 - 1, "b": 2**64 - 1}),
        (f" a={'9' * 30}", {"a": "9" * 30}),
        # Escapes of strconv.Quote.
        (r' err="a \"b\" \\ \n\t\r\a\b\f\v"', {"err": 'a "b" \\ \n\t\r\a\b\f\v'}),
        (r' k="\x00\x7f\u200b\U000e0001\u4e2d"', {"k": "\0\x7f\u200b\U000e0001\u4e2d"}),
        (r' k="\101\060\xe4\xb8\xad"', {"k": "A0\u4e2d"}),
        (r' k="\xff\x00 \ud800 \q"', {"k": "\\xff\0 \ufffd \\q"}),
        (' k="\u201csmart\u201d = x y=1" l=2', {"k": "\u201csmart\u201d = x y=1", "l": 2}),
        # JSON of klog 2.100 and later.
        (
            ' a={"cpu":1,"x":["]","}"]} b=["a/b","c/d"] c={} d=[]',
            {"a": {"cpu": 1, "x": ["]", "}"]}, "b": ["a/b", "c/d"], "c": {}, "d": []},
        ),
        (' e={"ID":"u","Type":"Started"}', {"e": {"ID": "u", "Type": "Started"}}),
        (
            ' d=[{"type":"NVIDIA RTX 3070","n":1}] z=1',
            {"d": [{"type": "NVIDIA RTX 3070", "n": 1}], "z": 1},
        ),
        # Go's %+v of klog up to 2.90, unquoted: raw text.
        (" pods=[ns-a/pod-a ns-b/pod-b] z=1", {"pods": "[ns-a/pod-a ns-b/pod-b]", "z": 1}),
        (
            " m=map[cpu:1 memory:2] n=<nil> s=&{2 [] <nil>} z=1",
            {"m": "map[cpu:1 memory:2]", "n": "<nil>", "s": "&{2 [] <nil>}", "z": 1},
        ),
        (
            " e=&{ID:1-1 Type:ContainerStarted Data:c6} podUID=1df28081-d4b4",
            {"e": "&{ID:1-1 Type:ContainerStarted Data:c6}", "podUID": "1df28081-d4b4"},
        ),
        (" a={Name:x Args:[a=b c]} b=[1 2]", {"a": "{Name:x Args:[a=b c]}", "b": "[1 2]"}),
        (" a=[never closed b=1", {"a": "[never closed", "b": 1}),
        (' a={"cut":', {"a": '{"cut":'}),
        # Named strings of %+v with spaces; keys with spaces behind other values.
        (" reason=Insufficient cpu node=n1", {"reason": "Insufficient cpu", "node": "n1"}),
        (" reason=Insufficient cpu now", {"reason": "Insufficient cpu now"}),
        (
            ' hint="QueueSkip" unschedulable plugins={"A":{}}',
            {"hint": "QueueSkip", "unschedulable plugins": {"A": {}}},
        ),
        (" evaluated nodes=1 feasible nodes=1", {"evaluated nodes": 1, "feasible nodes": 1}),
        (
            " missed nodes=[a b] redundant nodes=[]",
            {"missed nodes": "[a b]", "redundant nodes": []},
        ),
        # Sample 55: two spaces, and a key with a space before its =.
        (' event="PodAdd"  queue ="ActiveQueue"', {"event": "PodAdd", "queue": "ActiveQueue"}),
        (' k="(MISSING)"', {"k": "(MISSING)"}),
        (" a= b=1", {"a": "", "b": 1}),
        # Blocks.
        (" config=<\n\ta: 1\n\t  b: 2\n >", {"config": "a: 1\n  b: 2"}),
        (
            ' err=<\n\t > not the end\n\t\n > pod="a/b" body=<\n\tx\n > z=1',
            {"err": " > not the end\n", "pod": "a/b", "body": "x", "z": 1},
        ),
        (" a=1 body=<\n\tcut", {"a": 1, "body": "cut"}),
        (" body=<\n >", {"body": ""}),
        (" body=<", {"body": ""}),
        (" body=<\r\n\ta\r\n\tb\r\n > k=1\r", {"body": "a\nb", "k": 1}),
        (" k=v\r", {"k": "v"}),
        # What is no pair is kept raw.
        (" a=1 words", {"a": 1, "": "words"}),
        ('junk a="x"', {"": 'junk a="x"'}),
        (' a="x"junk', {"a": "x", "": "junk"}),
        (
            " a=1\ngoroutine 1 [running]:\n\t/a.go:1",
            {"a": 1, "": "goroutine 1 [running]:\n\t/a.go:1"},
        ),
        (' a=1 b="cut', {"a": 1, "b": '"cut'}),
        (' ="x"', {"": '="x"'}),
    ],
)
def test_values(tail: str, expected: dict[str, Any]) -> None:
    found = fields(tail)
    assert found == expected
    assert list(found) == list(expected)
    assert [type(v) for v in found.values()] == [type(v) for v in expected.values()]


def test_duplicate_key_keeps_first_place_and_last_value() -> None:
    # klog serialize.FormatKVs.
    assert list(fields(' pod="a" node="n" pod="b"').items()) == [("pod", "b"), ("node", "n")]


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "words",
        f"{HEADER}plain words k=1",
        f'{HEADER}Failed because nodeName="10.0.0.20"  does not exist',
        "Log file created at: 2019/12/31 23:59:58",
        '\torphan\n > pod="a/b"',
    ],
)
def test_unstructured_record_has_no_fields(raw: str) -> None:
    assert parse_fields(raw) == {}


def test_message_with_escapes_and_noise_before_the_header() -> None:
    raw = f"\0\0\ufeff\x1b[31m{HEADER}" + r'"a \"b] \" =c" k=1'
    assert parse_fields(raw) == {"k": 1}


def test_cut_message_is_kept() -> None:
    assert parse_fields(f'{HEADER}"Attempting to sch') == {"": '"Attempting to sch'}


def test_deep_nesting_does_not_raise() -> None:
    deep = "[" * 100_000
    assert fields(f" a={deep} b=1") == {"a": deep, "b": 1}
    assert fields(f" a={deep}{']' * 100_000} b=1")["b"] == 1


@pytest.mark.parametrize(
    ("raw", "terminated", "is_open"),
    [
        (f'{HEADER}"m" k=<\n\tx', True, True),
        (f'{HEADER}"m" k=<\n\tx\n >', True, False),
        (f'{HEADER}"m" k="x', False, True),
        (f'{HEADER}"m" k="x', True, True),  # pasted: klog ends what it quotes
        (f'{HEADER}"m" k="x"', False, False),
    ],
)
def test_ends_open(raw: str, terminated: bool, is_open: bool) -> None:
    assert ends_open(raw, terminated=terminated) is is_open


# A model of the writer: strconv.Quote and klog's serialize.go, from their source.


def go_quote(text: str) -> str:
    names = {"\a": "a", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t", "\v": "v"}
    names |= {'"': '"', "\\": "\\"}
    out = []
    for char in text:
        if char in names:
            out.append("\\" + names[char])
        elif char.isprintable():
            out.append(char)
        else:
            code = ord(char)
            form = f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}"
            out.append(form if code < 0x10000 else f"\\U{code:08x}")
    return '"' + "".join(out) + '"'


def klog_value(value: Any) -> str:
    if isinstance(value, str):
        if "\n" not in value:
            return "=" + go_quote(value)
        body = "".join(f"\t{line}\n" for line in value.removesuffix("\n").split("\n"))
        return f"=<\n{body} >"
    return "=" + json.dumps(value, separators=(",", ":"), ensure_ascii=False)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
LINES = st.lists(TEXT.map(lambda t: t.replace("\n", "").replace("\r", "")), min_size=2, max_size=4)
KEYS = st.text(string.ascii_letters + string.digits + "_./-", min_size=1, max_size=10)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
).filter(lambda v: not isinstance(v, str) and v != {})
VALUES = TEXT.filter(lambda t: "\n" not in t) | LINES.map("\n".join) | JSON_VALUES


@given(TEXT)
def test_unquote_undoes_go_quoting(text: str) -> None:
    assert unquote(go_quote(text)[1:-1]) == text


@given(TEXT, st.dictionaries(KEYS, VALUES, max_size=5))
def test_all_that_klog_writes_comes_back(message: str, pairs: dict[str, Any]) -> None:
    tail = "".join(f" {key}{klog_value(value)}" for key, value in pairs.items())
    expected = {
        k: v.removesuffix("\n") if isinstance(v, str) and "\n" in v else v for k, v in pairs.items()
    }
    found = parse_fields(f"{HEADER}{go_quote(message)}{tail}")
    assert found == expected
    assert list(found) == list(expected)


@given(st.text(max_size=60))
def test_no_tail_raises(tail: str) -> None:
    fields(tail)
    parse_fields(tail)
    ends_open(tail, terminated=False)


@given(st.text(' ="\\<>[]{}()\n\t\rax1:', max_size=40))
def test_no_punctuation_raises_or_is_lost(tail: str) -> None:
    found = fields(tail)
    words = [w for w in "ax1" if w in tail]
    kept = repr(found)
    assert all(w in kept for w in words)
