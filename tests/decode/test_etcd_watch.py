"""``etcdctl watch -w json`` with all its oddities.

Source: etcd's ``etcdctl/ctlv3/command/watch_command.go`` and ``printer_json.go``.
"""

from __future__ import annotations

import base64
import io
from typing import Any

import orjson
import polars as pl
import pytest

from tracekit.decode.etcd_watch import EtcdWatchDecoder
from tracekit.model.batches import Batch, SourceContext

POD = orjson.dumps(
    {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p", "namespace": "n", "uid": "u"}}
)


def _b64(text: bytes) -> str:
    return base64.b64encode(text).decode()


def _put(key: str, revision: int, value: bytes = POD, **kv: Any) -> dict[str, Any]:
    return {
        "kv": {
            "key": _b64(key.encode()),
            "mod_revision": revision,
            "create_revision": 1,
            "version": 1,
            "value": _b64(value),
            **kv,
        }
    }


def _delete(key: str, revision: int, previous: bytes | None = None) -> dict[str, Any]:
    event: dict[str, Any] = {
        "type": 1, "kv": {"key": _b64(key.encode()), "mod_revision": revision},
    }  # fmt: skip
    if previous is not None:
        event["prev_kv"] = {"key": _b64(key.encode()), "value": _b64(previous)}
    return event


def _line(*events: dict[str, Any], **response: Any) -> bytes:
    header = {"cluster_id": 14443903163313418560, "member_id": 1, "revision": 9}
    plain = {
        "Header": header,
        "Events": list(events) or None,
        "CompactRevision": 0,
        "Canceled": False,
        "Created": False,
    }
    return orjson.dumps({**plain, **response}) + b"\n"


def _decode(text: bytes) -> Batch:
    session = EtcdWatchDecoder().open(SourceContext(path="w"))
    batches = [session.parse(chunk) for chunk in session.split(io.BytesIO(text))]
    return Batch(
        table="objects",
        frame=pl.concat([b.frame for b in batches]),
        records=sum(b.records for b in batches),
        diagnostics=[note for b in batches for note in b.diagnostics],
        gaps=[gap for b in batches for gap in b.gaps],
    )


def _codes(batch: Batch) -> list[tuple[str, int]]:
    return [(note.code, note.position) for note in batch.diagnostics]


def test_a_put_has_no_type_and_a_delete_has_type_one() -> None:
    batch = _decode(_line(_put("/r/pods/n/p", 5)) + _line(_delete("/r/pods/n/p", 6)))
    rows = batch.frame.to_dicts()
    assert [(r["operation"], r["revision"], r["version"]) for r in rows] == [
        ("PUT", 5, 1), ("DELETE", 6, 0),
    ]  # fmt: skip
    assert (rows[0]["kind"], rows[0]["namespace"], rows[0]["name"], rows[0]["uid"]) == (
        "Pod", "n", "p", "u",
    )  # fmt: skip
    assert (rows[0]["value"], rows[1]["value"]) == (POD, None)


def test_events_of_one_revision_keep_their_place_over_lines() -> None:
    text = _line(_put("/a", 5), _put("/b", 5), _put("/c", 6)) + _line(_put("/d", 6))
    frame = _decode(text).frame
    assert frame.select("revision", "sub").rows() == [(5, 0), (5, 1), (6, 0), (6, 1)]


def test_identity_is_read_from_the_value_not_from_the_key() -> None:
    (row,) = _decode(_line(_put("/registry/nonsense/x/y", 5))).frame.to_dicts()
    assert (row["kind"], row["name"]) == ("Pod", "p")


def test_a_previous_value_names_what_was_deleted() -> None:
    (row,) = _decode(_line(_delete("/a", 5, POD))).frame.to_dicts()
    assert (row["kind"], row["uid"], row["prev_value"], row["value"]) == ("Pod", "u", POD, None)


def test_progress_lines_are_no_events_and_no_damage() -> None:
    batch = _decode(b"progress notify: 7\n" + _line() + _line(_put("/a", 5)))
    assert (batch.records, _codes(batch)) == (1, [])


def test_compaction_is_a_gap() -> None:
    batch = _decode(_line(_put("/a", 5)) + _line(Canceled=True, CompactRevision=90))
    (gap,) = batch.gaps
    assert (gap.from_revision, gap.to_revision) == (6, 89)
    assert _codes(batch) == [("WATCH_COMPACTED", 2)]


def test_a_canceled_watch_is_told() -> None:
    text = _line(_put("/a", 5)) + _line(Canceled=True) + b"watch was canceled (no leader)\n"
    assert _codes(_decode(text)) == [("WATCH_CANCELED", 2), ("WATCH_CANCELED", 3)]


def test_a_cut_last_line_loses_only_itself() -> None:
    batch = _decode(_line(_put("/a", 5)) + _line(_put("/b", 6))[:60])
    assert batch.frame["key"].to_list() == ["/a"]
    assert _codes(batch) == [("WATCH_LINE_CUT", 2)]


@pytest.mark.parametrize(
    "line", [b"garbage\n", b'{"Header":{"cluster_id":1},"Events":[{"kv":{}}]}\n',
             b'{"Header":{"cluster_id":1},"Events":[{"kv":{"key":"!","mod_revision":1}}]}\n',
             b"[1,2]\n", b"17\n", b'{"Header":3,"Events":7}\n']
)  # fmt: skip
def test_an_unreadable_line_is_noted_and_the_rest_goes_on(line: bytes) -> None:
    batch = _decode(line + _line(_put("/a", 5)))
    assert batch.frame["key"].to_list() == ["/a"]
    assert [code for code, _ in _codes(batch)] == ["WATCH_LINE_UNREADABLE"]


@pytest.mark.parametrize(
    ("value", "encoding", "code"),
    [
        (b"k8s:enc:aescbc:v1:key1:\x00\x01", "encrypted", "VALUE_ENCRYPTED"),
        (b"\xd9\xd9\xf7\xa1akaV", "cbor", "VALUE_CBOR"),
        (b"\x00\x01\x02", "opaque", "VALUE_UNREADABLE"),
    ],
)
def test_opaque_values_are_kept_and_told(value: bytes, encoding: str, code: str) -> None:
    batch = _decode(_line(_put("/registry/things/x", 5, value)))
    (row,) = batch.frame.to_dicts()
    assert (row["encoding"], row["value"], row["kind"]) == (encoding, value, "")
    assert _codes(batch) == [(code, 1)]


def test_the_api_servers_own_note_is_no_damage() -> None:
    assert _codes(_decode(_line(_put("compact_rev_key", 5, b"4711")))) == []


def test_facts_tell_the_cluster() -> None:
    system = orjson.dumps(
        {"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "kube-system", "uid": "k"}}
    )
    session = EtcdWatchDecoder().open(SourceContext(path="w"))
    for chunk in session.split(io.BytesIO(_line(_put("/a", 5, system)))):
        session.parse(chunk)
    assert session.facts() == {"cluster_uid": "k", "etcd_cluster_id": "14443903163313418560"}


def test_recognises_a_watch_and_nothing_else() -> None:
    recognises = EtcdWatchDecoder().recognises
    assert recognises(_line(_put("/a", 5)))
    assert recognises(b"progress notify: 7\n" + _line(_put("/a", 5)))
    assert not recognises(b"I1201 16:00:00.000001       1 a.go:1] x\n")
    assert not recognises(b'{"kind":"Event","apiVersion":"audit.k8s.io/v1"}\n')
    assert not recognises(b'{"header":{"cluster_id":1},"kvs":[]}\n')
    assert not recognises(b"")
