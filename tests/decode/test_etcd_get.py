"""``etcdctl get -w json`` in, rows of objects out; etcd 3.4 and 3.5 wrote the cases."""

from __future__ import annotations

import base64
import io
import json
import random
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl
import pytest
import zstandard

from tracekit.decode import etcd_get
from tracekit.decode.etcd_get import EtcdGetDecoder
from tracekit.decode.etcd_watch import EtcdWatchDecoder
from tracekit.decode.klog import KlogDecoder
from tracekit.model.batches import SourceContext
from tracekit.model.diagnostics import CODES

CASES: Final = Path(__file__).parent / "cases" / "etcd_snapshot"
COLUMNS: Final = [
    "revision", "key", "operation", "version", "create_revision", "lease", "value",
]  # fmt: skip
HEADER: Final = {"cluster_id": 2**64 - 1, "member_id": 5, "revision": 90, "raft_term": 2}


class Result(NamedTuple):
    frame: pl.DataFrame
    codes: list[tuple[str, int]]
    facts: dict[str, str | int | None]


def read(data: bytes) -> Result:
    session = EtcdGetDecoder().open(SourceContext(path="get.json"))
    batches = [session.parse(chunk) for chunk in session.split(io.BytesIO(data))]
    notes = [d for b in batches for d in b.diagnostics]
    assert all(d.code in CODES for d in notes)
    codes = [(d.code, d.position) for d in notes if not d.code.startswith("VALUE_")]
    return Result(pl.concat(b.frame for b in batches), codes, session.facts())


def case(name: str) -> bytes:
    return zstandard.decompress((CASES / f"{name}.json.zst").read_bytes())


def kv(number: int, **more: Any) -> dict[str, Any]:
    key = base64.b64encode(b"/registry/%d" % number).decode()
    fields = {"key": key, "create_revision": number, "mod_revision": number, "version": 1}
    return fields | {"value": "eA=="} | more


def document(kvs: list[dict[str, Any]], **more: Any) -> bytes:
    return json.dumps({"header": HEADER, "kvs": kvs, "count": len(kvs), **more}).encode() + b"\n"


@pytest.mark.parametrize("name", ["etcd-3.4-get", "etcd-3.5-get", "etcd-3.5-gateway"])
def test_each_key_is_its_last_change(name: str) -> None:
    assert EtcdGetDecoder().recognises(case(name))
    result = read(case(name))
    session = EtcdWatchDecoder().open(SourceContext(path="watch.json"))
    recording = io.BytesIO(case(name[:8] + "-watch"))
    watch = pl.concat(session.parse(chunk).frame for chunk in session.split(recording))
    at = watch.filter(pl.col("revision") <= 49).unique("key", keep="last")
    expected = at.filter(pl.col("operation") == "PUT").sort("key")
    assert result.frame.select(COLUMNS).equals(expected.select(COLUMNS))
    assert result.frame["record_no"].to_list() == list(range(1, 45))
    assert result.codes == []
    assert result.facts["header_revision"] == 49
    assert result.facts["etcd_cluster_id"] == session.facts()["etcd_cluster_id"]


def test_layout_does_not_matter() -> None:
    plain = json.loads(case("etcd-3.5-get"))
    compact = read(case("etcd-3.5-get"))
    for text in (
        json.dumps(plain, indent=4),
        json.dumps(plain, indent=2, sort_keys=True).replace("\n", "\r\n"),
        "\ufeff" + json.dumps(plain),
    ):
        assert EtcdGetDecoder().recognises(text.encode())
        assert read(text.encode()).frame.equals(compact.frame)
        assert read(text.encode()).codes == []


def test_blocks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    data = case("etcd-3.4-get") + document([kv(70), kv(71)], more=True)
    whole = read(data)
    assert whole.codes == [("GET_LIMITED", 46)]
    for size in (7, 100, 1001, 30_000):
        monkeypatch.setattr(etcd_get, "_BLOCK_BYTES", size)
        assert read(data).frame.equals(whole.frame)
        assert read(data).codes == whole.codes


def test_documents_may_follow_each_other() -> None:
    result = read(document([kv(3)], more=True) + document([kv(4), kv(5)]))
    assert result.frame["revision"].to_list() == [3, 4, 5]
    assert result.codes == []


def test_no_keys() -> None:
    data = json.dumps({"header": HEADER}).encode()
    assert EtcdGetDecoder().recognises(data)
    assert (read(data).frame.height, read(data).codes) == (0, [])
    assert read(data).facts["etcd_cluster_id"] == str(2**64 - 1)


def test_keys_only_are_left_out_and_told() -> None:
    bare = [{k: v for k, v in kv(n).items() if k != "value"} for n in (3, 4)]
    assert read(document(bare)).codes == [("GET_WITHOUT_VALUES", 1)]
    assert read(document(bare)).frame.height == 0


def test_one_empty_value_is_a_value() -> None:
    empty = {k: v for k, v in kv(4).items() if k != "value"}
    frame = read(document([kv(3), empty])).frame
    assert frame["value"].to_list() == [b"x", b""]


@pytest.mark.parametrize("at", [0.3, 0.5, 0.9, 0.999])
def test_a_cut_document_is_told(at: float) -> None:
    data = document([kv(n) for n in range(3, 40)])
    result = read(data[: int(len(data) * at)])
    assert [code for code, _ in result.codes] == ["GET_CUT"]
    assert result.frame["revision"].to_list() == list(range(3, 3 + result.frame.height))
    assert result.frame.height >= int(37 * at) - 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"key": "not base64!"},
        {"key": None},
        {"value": "eA="},
        {"mod_revision": 2**63},
        {"mod_revision": "many"},
        {"version": -(10**30)},
        {"lease": []},
    ],
)
def test_a_broken_kv_costs_itself(wrong: dict[str, Any]) -> None:
    result = read(document([kv(3), kv(4, **wrong), kv(5)]))
    assert result.frame["revision"].to_list() == [3, 5]
    assert result.codes == [("GET_RECORD_UNREADABLE", 2)]


def test_text_between_is_told() -> None:
    data = document([kv(3), kv(4)]).replace(b"}, {", b"}, oops {")
    assert read(data).codes == [("GET_RECORD_UNREADABLE", 2)]
    assert read(data).frame.height == 2


def test_pieces_join() -> None:
    data = document([kv(n) for n in range(3, 9)])
    lead = EtcdGetDecoder().lead
    for at in range(1, len(data) - 2):
        count = lead(data[:at][-64:], data[at:] + document([kv(20)]))
        assert count == len(data) - at, at
        assert lead(data[:at][-64:], data[at : at + 1]) in (None, 1)
    assert lead(data[-64:], document([kv(20)])) == 0
    assert lead(data[-64:], b"I1201 15:59:20.639036   19896 x.go:481] y\n") == 0


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"{}",
        b'{"Header":{"cluster_id":1,"revision":2},"Events":[]}\n',
        b'{"header":{"cluster_id":1},"succeeded":true,"responses":[]}\n',
        b'{"kind":"PodList","items":[]}\n',
        b'[{"Endpoint":"a","Status":{"header":{"cluster_id":1}}}]',
        b"I1201 15:59:20.639036   19896 x.go:481] y\n",
    ],
)
def test_other_files_are_refused(head: bytes) -> None:
    assert not EtcdGetDecoder().recognises(head)


def test_others_refuse_it() -> None:
    data = document([kv(3)])
    assert not EtcdWatchDecoder().recognises(data)
    assert not KlogDecoder().recognises(data)


def test_mutated_documents_give_diagnostics() -> None:
    whole, random_ = document([kv(n) for n in range(3, 30)]), random.Random(7)
    for _ in range(500):
        mutant = bytearray(whole)
        for _ in range(random_.choice((1, 1, 3, 20))):
            mutant[random_.randrange(len(mutant))] = random_.randrange(256)
        result = read(bytes(mutant[: random_.randrange(1, len(mutant) + 1)]))
        assert result.frame.height <= 27
