"""A damaged event costs itself, a sound neighbour nothing."""

from __future__ import annotations

import base64
import io
from typing import Any

import orjson
import pytest

from tracekit.decode.etcd_watch import BLOCK_BYTES, EtcdWatchDecoder
from tracekit.model.batches import Batch, SourceContext


def _line(revision: Any, value: Any = "", **more: Any) -> bytes:
    key = base64.b64encode(f"/k{revision}".encode()).decode()
    event = {"kv": {"key": key, "mod_revision": revision, "value": value, **more.pop("kv", {})}}
    return orjson.dumps({"Header": {"cluster_id": 1}, "Events": [event | more]}) + b"\n"


def _parse(data: bytes) -> list[Batch]:
    session = EtcdWatchDecoder().open(SourceContext(path="w"))
    return [session.parse(chunk) for chunk in session.split(io.BytesIO(data))]


@pytest.mark.parametrize(
    "damaged",
    [
        _line(2, "no base64!"),
        _line(2, "AAA"),
        _line(2, None),
        _line(2, 7),
        _line(2, ["AAAA"]),
        _line(2, "AAAA", prev_kv={"value": "?"}),
        _line(2, "AAAA", prev_kv=[1]),
        _line("2"),
        _line(None),
        _line(2.5),
        _line(2**63),
        _line(2, kv={"version": "1"}),
        _line(2, kv={"lease": 2**63}),
        _line(2, kv={"lease": None}),
    ],
)
def test_one_event_is_left_out_and_told(damaged: bytes) -> None:
    (batch,) = _parse(_line(1, "AAAA") + damaged + _line(3, "AQID"))
    assert batch.frame["revision"].to_list() == [1, 3]
    assert batch.frame["value"].to_list() == [b"\0\0\0", b"\1\2\3"]
    assert batch.frame["record_no"].to_list() == [1, 3]
    assert batch.records == 2
    told = [n.position for n in batch.diagnostics if n.code == "WATCH_LINE_UNREADABLE"]
    assert told == [2]


def test_trailing_bits_that_mean_nothing_are_no_damage() -> None:
    (batch,) = _parse(_line(1, "AR=="))
    assert batch.frame["value"].to_list() == [b"\1"]


def test_an_empty_value_is_a_value() -> None:
    (batch,) = _parse(_line(1, "") + _line(2, "AAAA", type=1))
    assert batch.frame.select("operation", "value", "encoding").rows() == [
        ("PUT", b"", "none"),
        ("DELETE", None, "none"),
    ]


def test_a_line_may_be_longer_than_a_block() -> None:
    big = base64.b64encode(bytes(BLOCK_BYTES)).decode()
    batches = _parse(_line(1) + _line(2, big) + _line(3) + _line(4)[:-1])
    rows = [row for b in batches for row in b.frame.select("revision", "record_no").rows()]
    assert rows == [(1, 1), (2, 2), (3, 3), (4, 4)]
    assert max(len(v) for b in batches for v in b.frame["value"]) == BLOCK_BYTES


def test_a_pipe_gives_the_same_rows_as_a_file() -> None:
    data = b"".join(_line(revision, "AAAA") for revision in range(1, 50))

    class Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self.rest = data

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
            part, self.rest = self.rest[:100], self.rest[100:]
            buffer[: len(part)] = part
            return len(part)

    session = EtcdWatchDecoder().open(SourceContext(path="-"))
    (piped,) = [session.parse(chunk) for chunk in session.split(Pipe())]  # type: ignore[arg-type]
    (whole,) = _parse(data)
    assert piped.frame.equals(whole.frame)
