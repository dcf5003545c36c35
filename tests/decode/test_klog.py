"""klog text in, rows of log_lines out; wordings and layouts as klog and glog write them."""

from __future__ import annotations

import io
import json
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import BinaryIO

import polars as pl
import pytest

from tests.recordings import Recordings
from tracekit.decode.klog import KlogDecoder, KlogSession
from tracekit.decode.klog_fields import parse_fields
from tracekit.model.batches import Chunk, SourceContext
from tracekit.model.diagnostics import CODES, Diagnostic
from tracekit.model.tables import TABLES

HEADER = "I1201 15:59:20.639036   19896 schedule_one.go:481] "
BIND = HEADER + '"Successfully bound pod to node" pod="a/b" node="n1" evaluatedNodes=4'


class Trickle(io.BytesIO):
    """A stream that gives at most three bytes at once, as a pipe may."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(size if size is not None and size >= 0 else 3, 3))


def read_stream(
    stream: BinaryIO, block: int = 1 << 24
) -> tuple[pl.DataFrame, list[Diagnostic], dict[str, str | int | None]]:
    session = KlogSession(block)
    batches = [session.parse(chunk) for chunk in session.split(stream)]
    empty = session.parse(Chunk(b"", 1, True))
    assert all(b.table == "log_lines" and b.records == b.frame.height for b in batches)
    frame = pl.concat([empty.frame, *(b.frame for b in batches)])
    return frame, [d for b in batches for d in b.diagnostics], session.facts()


def read(
    text: str | bytes, block: int = 1 << 24
) -> tuple[pl.DataFrame, list[Diagnostic], dict[str, str | int | None]]:
    return read_stream(io.BytesIO(text.encode() if isinstance(text, str) else text), block)


def row(text: str) -> dict[str, object]:
    frame, _, _ = read(text)
    assert frame.height == 1
    return frame.row(0, named=True)


def stamp(text: str, *, years: int = 0) -> int:
    at = datetime.strptime(f"{2000 + years} {text}", "%Y %m%d %H:%M:%S.%f")
    return (at - datetime(2000, 1, 1)) // timedelta(microseconds=1)


def codes(damage: list[Diagnostic]) -> list[tuple[str, int]]:
    assert all(d.code in CODES for d in damage)
    return [(d.code, d.position) for d in damage]


def test_columns_are_those_of_the_schema() -> None:
    frame, _, _ = read(BIND + "\n")
    others = {"cluster", "source_id", "body", "wrapped_at", "component", "node"}
    expected = [c for c in TABLES["log_lines"].columns if c.name not in others]
    types = {"string": pl.String, "int64": pl.Int64, "bool": pl.Boolean}
    assert dict(frame.schema) == {c.name: types[c.type] for c in expected}


def test_structured_record() -> None:
    assert row(BIND + "\n") == {
        "record_no": 1,
        "stamp_us": stamp("1201 15:59:20.639036"),
        "severity": "I",
        "thread": 19896,
        "caller": "schedule_one.go:481",
        "message": "Successfully bound pod to node",
        "structured": True,
        "raw": BIND,
    }


@pytest.mark.parametrize(
    ("line", "thread", "caller", "message", "structured"),
    [
        # klog pads the process id to seven columns; pid 1, seven digits, and more (Windows).
        ("W0504 12:16:01.540212       1 a.go:1] x", 1, "a.go:1", "x", False),
        ("I0817 00:53:01.018280 1495316 a.go:2] x", 1495316, "a.go:2", "x", False),
        ("I0817 00:53:01.018280 123456789 a.go:3] x", 123456789, "a.go:3", "x", False),
        # --add_dir_header, and a caller the runtime does not know.
        ("E0817 00:53:01.018280       1 scheduler/a.go:4] x", 1, "scheduler/a.go:4", "x", False),
        ("F0817 00:53:01.018280       1 ???:1] x", 1, "???:1", "x", False),
        # An empty message; a message with brackets and double spaces; key="value" in text.
        ("I0817 00:53:01.018280       1 a.go:5] ", 1, "a.go:5", "", False),
        ("I0817 00:53:01.018280       1 a.go:5]", 1, "a.go:5", "", False),
        ('I0817 00:53:01.018280       1 a.go:6] x [y]  n="v"', 1, "a.go:6", 'x [y]  n="v"', False),
        # Quoted messages: with escapes, with none, long, cut before the closing quote.
        (r'I0817 00:53:01.018280       1 a.go:7] "\"b\"\n\tc" k=1', 1, "a.go:7", '"b"\n\tc', True),
        ('I0817 00:53:01.018280       1 a.go:7] ""', 1, "a.go:7", "", True),
        ('I0817 00:53:01.018280       1 a.go:7] "é\u4e2d" k="é"', 1, "a.go:7", "é\u4e2d", True),
        (f'I0817 00:53:01.018280       1 a.go:8] "{"m" * 500}" k=1', 1, "a.go:8", "m" * 500, True),
        ('I0817 00:53:01.018280       1 a.go:9] "Succ', 1, "a.go:9", "Succ", True),
        # A header cut behind its stamp, and behind its process id.
        ("I0624 06:58:27.951646       1 schedul", 1, None, "schedul", False),
        ("I0624 06:58:27.951646 ", None, None, "", False),
        ("I0427 09:07:15.166039 no caller [x] here", None, None, "no caller [x] here", False),
    ],
)  # fmt: skip
def test_header_layouts(
    line: str, thread: int | None, caller: str | None, message: str, structured: bool
) -> None:
    found = row(line + "\n")
    names = ("severity", "thread", "caller", "message", "structured", "raw")
    assert tuple(found[n] for n in names) == (
        line[0], thread, caller, message, structured, line,
    )  # fmt: skip
    # The same in the middle of others, where columns are read in bulk.
    frame, _, _ = read(f"{BIND}\n{line}\n{BIND}\n")
    assert tuple(frame.row(1, named=True)[n] for n in names) == tuple(found[n] for n in names)
    assert frame["message"].to_list()[::2] == ["Successfully bound pod to node"] * 2


@pytest.mark.parametrize(
    "line",
    [
        "I120 15:59:20.639036   19896 a.go:1] x",
        "I1201 15:59:20.63903   19896 a.go:1] x",
        "D1201 15:59:20.639036   19896 a.go:1] x",
        " I1201 15:59:20.639036   19896 a.go:1] x",
        "I1201 15-59-20.639036   19896 a.go:1] x",
        "I1201 15:59:20.639036",
        "\t/go/src/glog.go:766 +0xa5",
        "",
    ],
)
def test_line_without_header_belongs_to_the_record_before(line: str) -> None:
    frame, damage, _ = read(f"{BIND}\n{line}\n{BIND}\n")
    assert frame["raw"].to_list() == [f"{BIND}\n{line}", BIND]
    assert frame["record_no"].to_list() == [1, 3]
    assert damage == []


def test_goroutine_dump_stays_with_its_fatal_record() -> None:
    # Layout of glog's fatal dump: facts/formats.md 1.2, sample 47.
    dump = (
        "goroutine 157 [running]:\nmain.f(0x1)\n\t/a.go:7 +0xa5\n\ngoroutine 1 [sleep]:\n\t/b.go:1"
    )
    fatal = "F0526 08:15:02.814448       1 cache.go:291] Schedulercache is corrupted"
    frame, _, _ = read(f"{BIND}\n{fatal}\n{dump}\n")
    assert frame["raw"].to_list() == [BIND, f"{fatal}\n{dump}"]
    assert frame["message"].to_list()[1] == "Schedulercache is corrupted"


@pytest.mark.parametrize(
    "clock", ["0230 10:00:00.000000", "1301 10:00:00.000000", "0000 10:00:00.000000",
              "0101 25:00:00.000000", "0101 10:60:00.000000", "0101 10:00:61.000000"],
)  # fmt: skip
def test_impossible_date_is_a_record_without_stamp(clock: str) -> None:
    found = row(f"I{clock}       1 a.go:1] x\n")
    assert (found["stamp_us"], found["severity"], found["message"]) == (None, "I", "x")


def test_leap_day_has_its_place() -> None:
    text = "".join(f"I{d} 00:00:00.000000       1 a.go:1] x\n" for d in ("0228", "0229", "0301"))
    frame, _, _ = read(text)
    assert frame["stamp_us"].to_list() == [
        stamp(f"{d} 00:00:00.000000") for d in ("0228", "0229", "0301")
    ]


@pytest.mark.parametrize("block", [1, 40, 100, 1 << 20])
def test_new_year_counts_once_with_late_lines(block: int) -> None:
    # An out-of-order line is no new year of its own (tstack/lnav#304).
    days = [
        ("1231", 0), ("0101", 1), ("1231", 0), ("0101", 1), ("0102", 1), ("0601", 1),
        ("1101", 1), ("1231", 1), ("0105", 2),
    ]  # fmt: skip
    text = "".join(f"I{d} 23:59:59.999999       1 a.go:1] x\n" for d, _ in days)
    frame, _, _ = read(text, block)
    assert frame["stamp_us"].to_list() == [
        stamp(f"{d} 23:59:59.999999", years=4 * step) for d, step in days
    ]


def test_late_line_at_the_start_goes_before_year_zero() -> None:
    text = "".join(f"I{d} 00:00:00.000000       1 a.go:1] x\n" for d in ("0101", "1231", "0101"))
    frame, _, _ = read(text)
    late = stamp("1231 00:00:00.000000", years=-4)
    assert frame["stamp_us"].to_list() == [0, late, 0]


def test_preamble_lines_are_records_and_facts() -> None:
    # klog_file.go rotateFile; sample 80.
    preamble = [
        "Log file created at: 2019/12/31 23:59:58",
        "Running on machine: node-1",
        "Binary: Built with gc go1.12.12 for linux/amd64",
        "Log line format: [IWEF]mmdd hh:mm:ss.uuuuuu threadid file:line] msg",
    ]
    body = [
        "W1231 23:59:59.999999    4321 authorization.go:47] Authorization is disabled",
        "I0101 00:00:00.000001    4321 scheduler.go:530] Attempting to schedule pod: ns-a/pod-a",
    ]
    text = "\n".join([*preamble, *body]) + "\n"
    frame, damage, facts = read(text)
    assert frame["raw"].to_list() == [*preamble, *body]
    assert frame["message"].to_list()[:4] == preamble
    assert frame["stamp_us"].to_list() == [
        *[None] * 4, stamp("1231 23:59:59.999999"), stamp("0101 00:00:00.000001", years=4),
    ]  # fmt: skip
    for name in ("severity", "thread", "caller"):
        assert frame[name].null_count() == 4
    assert frame["structured"].to_list() == [False] * 6
    assert damage == []
    assert facts["created_year"] == 2019
    assert facts["node"] == "node-1"
    assert KlogDecoder().recognises(text.encode())
    assert KlogDecoder().recognises("\n".join(preamble).encode())


def test_log_that_starts_inside_a_block() -> None:
    frame, damage, _ = read(f'\tlast line\n > pod="a/b"\n{BIND}\n')
    assert frame["raw"].to_list() == ['\tlast line\n > pod="a/b"', BIND]
    assert frame["stamp_us"].to_list()[0] is None
    assert codes(damage) == [("LOG_RECORD_ORPHAN", 1)]


def test_text_before_the_first_header() -> None:
    frame, damage, _ = read(f"Flag --port has been deprecated\n\tsee docs\n{BIND}\n")
    assert frame["record_no"].to_list() == [1, 3]
    assert codes(damage) == [("LOG_LINE_UNSTRUCTURED", 1)]


def test_text_without_any_header_is_kept() -> None:
    frame, damage, _ = read("\nsome\nwords")
    assert frame["raw"].to_list() == ["\nsome\nwords"]
    assert codes(damage) == [("LOG_LINE_UNSTRUCTURED", 1)]


BLOCK = f'{HEADER}"Response Body" body=<\n\t00000000  6b 38\n >'


@pytest.mark.parametrize(
    "text",
    [
        f'{HEADER}"Response Body" body=<\n\t00000000  6b 38\n',
        f'{HEADER}"Response Body" body=<\n\t00000000  6b',
        f'{HEADER}"Response Body" body=<\n',
        f'{HEADER}"Response Body" body=<',
        f"{BLOCK} err=<\n\tfirst\n\tsec",
        f'{BLOCK} pod="a',
        f'{HEADER}"Response Body" body=<\r\n\t00000000  6b 38\r\n',
        f'{HEADER}"Attempting to schedule pod" pod="default/u',
        f'{HEADER}"Attempting to sch',
        f"{BIND}\nI1201 15:59:2",
        "I1201 15:59:20.639036   19896 schedul",
    ],
)
def test_log_cut_in_the_middle(text: str) -> None:
    frame, damage, _ = read(f"{BIND}\n{text}")
    assert [d.code for d in damage] == ["LOG_RECORD_CUT"]
    assert "\n".join(frame["raw"]) == f"{BIND}\n{text}".removesuffix("\n")
    in_header = text.endswith("\nI1201 15:59:2")  # a line of its own, but no record
    assert damage[0].position == frame["record_no"].to_list()[-1] + in_header


@pytest.mark.parametrize(
    "text",
    [
        BIND,
        f"{BLOCK}\n",
        f'{BLOCK} pod="a"\n',
        f"{BLOCK}",
        f'{HEADER}an "open quote in text',
        f"{HEADER}text with =<\n",
        f'{HEADER}"m" k="has \\" escaped"',
        f'{HEADER}"m" k=<\n\t > not the end\n\tfoo=<\n >\n',
    ],
)
def test_log_that_ends_whole(text: str) -> None:
    frame, damage, _ = read(text)
    assert damage == []
    assert frame["raw"].to_list() == [text.removesuffix("\n")]


def test_carriage_returns_stay_in_raw_only() -> None:
    first, second = f"{HEADER}plain words", f'{HEADER}"m" k=<\r\n\tx\r\n >'
    frame, damage, _ = read(f"{first}\r\n{second}\r\n")
    assert frame["raw"].to_list() == [first + "\r", second + "\r"]
    assert frame["message"].to_list() == ["plain words", "m"]
    assert damage == []


def test_bytes_that_are_no_text() -> None:
    # Sample 77: Latin-1 bytes, a byte order mark, a NUL hole left by copytruncate, colours.
    lines = [
        HEADER.encode() + b'"x" err="caf\xe9" pod="a/b"',
        b"\xef\xbb\xbf" + HEADER.encode() + "after a byte order mark 文".encode(),
        b"\0\0\0\0" + HEADER.encode() + b"after a hole",
        b"\x1b[1;31m" + HEADER.encode() + b"in red\x1b[0m",
        HEADER.encode() + b"with \0 inside",
    ]
    text = b"\n".join(lines) + b"\n"
    for block in (1, 50, 1 << 20):
        frame, damage, _ = read(text, block)
        assert frame.height == 5
        assert frame["stamp_us"].to_list() == [stamp("1201 15:59:20.639036")] * 5
        assert frame["raw"].to_list() == [b.decode("utf-8", "replace") for b in lines]
        assert frame["message"].to_list() == [
            "x", "after a byte order mark 文", "after a hole", "in red\x1b[0m", "with \0 inside",
        ]  # fmt: skip
        assert codes(damage) == [("LOG_NOT_UTF8", 1)]
        assert "\\xe9" in damage[0].detail


def test_empty_log() -> None:
    session = KlogSession()
    assert list(session.split(io.BytesIO(b""))) == []
    frame, damage, facts = read("")
    assert frame.is_empty()
    assert damage == []
    assert facts == {"component": None, "node": None, "created_year": None}


def test_record_longer_than_any_block() -> None:
    long = f'{HEADER}"m" k="{"x" * 100_000_000}"'
    frame, damage, _ = read(f"{BIND}\n{long}\n{BIND}\n", 1 << 22)
    assert frame["raw"].str.len_bytes().to_list() == [len(BIND), len(long), len(BIND)]
    assert frame["message"].to_list()[1] == "m"
    assert damage == []


def test_last_chunk_is_flagged_and_lines_are_counted() -> None:
    text = f"{BIND}\n{BLOCK}\n" * 50
    session = KlogSession(500)
    chunks = list(session.split(io.BytesIO(text.encode())))
    assert len(chunks) > 5
    assert [c.last for c in chunks] == [False] * (len(chunks) - 1) + [True]
    assert b"".join(c.data for c in chunks) == text.encode()
    assert all(c.data.startswith(b"I1201 ") for c in chunks)
    before = 0
    for chunk in chunks:
        assert chunk.record_no == before + 1
        before += chunk.data.count(b"\n")


def test_plain_chunk_parses_too() -> None:
    batch = KlogSession().parse(Chunk(f"{BIND}\n".encode(), 7, True))
    assert batch.frame["record_no"].to_list() == [7]


@pytest.mark.parametrize(
    ("head", "is_klog"),
    [
        (BIND, True),
        (f"$ cat log\n{BIND}", True),
        (f"\ufeff{BIND}", True),
        ("", False),
        ("hello\n", False),
        ('{"ts":1796141959935.9812,"caller":"flag/flags.go:64","msg":"x","v":1}\n', False),
        (f'{HEADER}plain\n{{"ts":1.0,"msg":"x"}}\n{{"ts":2.0,"msg":"y"}}\n', False),
        ('{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata"}\n', False),
        ('{"Header":{"revision":2},"Events":null}\nprogress notify: 4\n', False),
        (f"2025-10-15T10:00:00.000000001Z stderr F {BIND}\n", False),
        (json.dumps({"log": f"{BIND}\n", "stream": "stderr", "time": "x"}) + "\n", False),
        (f"Mar 08 12:54:34 node-1 kubelet[735]: {BIND}\n", False),
    ],
)
def test_recognises_by_content(head: str, is_klog: bool) -> None:
    assert KlogDecoder().recognises(head.encode()) is is_klog


def test_open_gives_a_parallel_session() -> None:
    session = KlogDecoder().open(SourceContext(path="x"))
    assert KlogDecoder.name == "klog"
    assert session.parallel


@pytest.mark.parametrize("block", [1, 3, 17, 100, 333, 5000])
def test_rows_do_not_depend_on_the_block_size(block: int) -> None:
    text = (
        f'\torphan\n > k=1\n{BIND}\n{BLOCK} pod="a/b"\n{HEADER}"a \\"b\\"" k=2\n'
        f"I0101 00:00:00.000001       1 a.go:1] é\nTrace[1]: END\n\nW0230 {BIND[6:]}\n"
        * 7
        + f'{HEADER}"m" k="cut'
    )
    whole_frame, whole_damage, _ = read(text)
    frame, damage, _ = read(text, block)
    assert frame.equals(whole_frame)
    assert damage == whole_damage
    frame, damage, _ = read_stream(Trickle(text.encode()), block)
    assert frame.equals(whole_frame)


# On the recordings: truth/*.jsonl and *.log were taken from the logs by another reader.

LOGS = [
    ("seed", "kube-scheduler.log", "kube-scheduler", None),
    ("seed", "kube-controller-manager.log", "kube-controller-manager", None),
    ("seed", "kubelet-master-1.log", "kubelet", "master-1"),
    ("seed", "kubelet-node-124.log", "kubelet", "node-124"),
    ("seed", "kubelet-node-33.log", "kubelet", "node-33"),
    ("seed", "kubelet-node-65.log", "kubelet", "node-65"),
    ("wide", "kube-scheduler.log", "kube-scheduler", None),
    ("mid", "kube-scheduler.log", "kube-scheduler", None),
]


@pytest.mark.parametrize(("folder", "name", "component", "node"), LOGS)
def test_recording_comes_back_byte_for_byte(
    recordings: Recordings, folder: str, name: str, component: str, node: str | None
) -> None:
    path: Path = recordings(folder) / name
    session = KlogSession()
    records = 0
    with path.open("rb") as log, path.open("rb") as again:
        for chunk in session.split(log):
            batch = session.parse(chunk)
            assert batch.diagnostics == []
            back = "\n".join(batch.frame["raw"]).encode() + b"\n"
            assert back == again.read(len(back))
            assert batch.frame["stamp_us"].null_count() == 0
            records += batch.records
        assert again.read(1) == b""
    if folder == "mid":
        assert records == 476_622  # lnav: SELECT count(*) FROM glog_log
    facts = session.facts()
    assert (facts["component"], facts["node"]) == (component, node)


@pytest.mark.parametrize("folder", ["seed", "mid", "wide"])
def test_recording_tells_every_verdict_and_binding(recordings: Recordings, folder: str) -> None:
    recording = recordings(folder)
    session = KlogSession()
    wanted = ["Unable to schedule pod; no fit; waiting", "Successfully bound pod to node"]
    with (recording / "kube-scheduler.log").open("rb") as log:
        kept = [
            session.parse(chunk).frame.filter(pl.col("message").is_in(wanted))
            for chunk in session.split(log)
        ]
    frame = pl.concat(kept)
    refused: Counter[tuple[int, str, str]] = Counter()
    bound: set[tuple[str, str]] = set()
    for at, message, raw in frame.select("stamp_us", "message", "raw").iter_rows():
        fields = parse_fields(raw)
        if message == wanted[0]:
            refused[at, fields["pod"], fields["err"]] += 1
        else:
            bound.add((fields["pod"], fields["node"]))
            assert {type(fields[k]) for k in ("evaluatedNodes", "feasibleNodes")} == {int}
    truth = map(json.loads, (recording / "truth/unschedulable.jsonl").read_text().splitlines())
    assert refused == Counter((stamp(t["t"]), t["pod"], t["err"]) for t in truth)
    rows = (recording / "truth/bindings.tsv").read_text().splitlines()[1:]
    cells = [r.split("\t") for r in rows]
    assert bound == {(f"{c[0]}/{c[1]}", c[3]) for c in cells}
    assert frame.filter(pl.col("message") == wanted[1]).height == len(rows)
