from __future__ import annotations

import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.decode.wire import group, stored, string_map, sub, varint, varint_field
from tests.recordings import ROOT, Recordings
from tracekit.decode import _schema
from tracekit.decode.kubernetes import ValueMeta, decode_value, read_meta
from tracekit.errors import DecodeError

CASES = Path(__file__).parent / "cases" / "kubernetes"
# Each line: a value of the recording `seed` and what its independent decoder gives for it.
SEED = [json.loads(line) for line in (CASES / "seed.jsonl").read_text("utf-8").splitlines()]
META_FIELDS = ("namespace", "name", "uid")


def value_of(case: dict[str, Any]) -> bytes:
    return b64decode(case["value"])


POD = value_of(next(case for case in SEED if case["object"]["kind"] == "Pod"))


def decoded(value: bytes) -> dict[str, Any]:
    found = decode_value(value)
    assert found.object is not None
    return found.object


def meta_of(decoded_object: dict[str, Any]) -> tuple[str, ...]:
    metadata = decoded_object["metadata"]
    head = (decoded_object["apiVersion"], decoded_object["kind"])
    return (*head, *(metadata.get(field, "") for field in META_FIELDS))


@pytest.mark.parametrize("case", SEED, ids=[case["key"] for case in SEED])
def test_value_decodes_to_what_the_api_shows(case: dict[str, Any]) -> None:
    found = decode_value(value_of(case))
    assert found.object == case["object"]
    assert not found.unknown_kind
    assert found.unknown_fields == ()
    assert list(found.object or ())[:2] == ["kind", "apiVersion"]


@pytest.mark.parametrize("name", ["seed", "mid", "wide", "json"])
def test_every_recorded_value_decodes_to_the_truth(recordings: Recordings, name: str) -> None:
    recording = recordings(name)
    truth = {
        (line["key"], line["revision"]): line["object"]
        for line in map(orjson.loads, (recording / "truth/decoded.jsonl").read_bytes().splitlines())
    }
    wrong = []
    for line in (recording / "etcd-watch.json").read_bytes().splitlines():
        for event in orjson.loads(line)["Events"] or []:
            kv = event["kv"]
            expected = truth.pop((b64decode(kv["key"]).decode(), kv["mod_revision"]), None)
            if expected is None:
                continue
            value = b64decode(kv["value"])
            meta = read_meta(value)
            found = (meta.api_version, meta.kind, meta.namespace, meta.name, meta.uid)
            if decode_value(value).object != expected or found != meta_of(expected):
                wrong.append((kv["mod_revision"], expected["kind"]))
    assert wrong == []
    assert truth == {}


def test_schema_has_every_field_of_the_reference_table() -> None:
    table = ROOT.parent / "shared" / "wire" / "k8s_fields.tsv"
    if not table.exists():
        pytest.skip("the reference table is not here: ../shared/wire/k8s_fields.tsv")
    reference: dict[str, dict[int, str]] = {}
    for line in table.read_text("utf-8").splitlines()[1:]:
        message, number, _, _, _, name, _ = line.split("\t")
        short = message.removeprefix("k8s.io.api.").removeprefix("k8s.io.apimachinery.pkg.apis.")
        reference.setdefault(short, {})[int(number)] = "." if name == "<inline>" else name
    # Its one row that says otherwise in words: EphemeralContainerCommon is inline.
    reference["core.v1.EphemeralContainer"][1] = "."
    for message in reachable():
        fields = {number: field.json for number, field in _schema.message_fields(message).items()}
        assert fields == reference.get(message, {}), message


def reachable() -> set[str]:
    todo = [name for kind in _schema.kinds() if (name := _schema.message_of(*kind))]
    found: set[str] = set()
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += [f.type for f in _schema.message_fields(name).values() if f.is_message]
    return found


@pytest.mark.parametrize("kind", _schema.kinds(), ids="/".join)
def test_every_kind_decodes_when_empty(kind: tuple[str, str]) -> None:
    found = decode_value(stored(*kind, b""))
    assert found.object is not None
    assert (found.object["apiVersion"], found.object["kind"]) == kind
    assert not found.unknown_kind


@pytest.mark.parametrize(
    ("value", "encoding"),
    [
        (b"", "none"),
        (b"\xd9\xd9\xf7\xa1", "cbor"),
        (b"k8s:enc:aescbc:v1:key1:\x00\x01", "encrypted"),
        (b"k8s\x00", "opaque"),
        (b"k8s\x00\x0a\xff", "opaque"),
        (POD[:-5], "opaque"),
        (b"{", "opaque"),
        (b"30", "opaque"),
        (b"\x00\xff", "opaque"),
    ],
)
def test_what_is_not_readable_has_an_encoding_and_no_names(value: bytes, encoding: str) -> None:
    assert read_meta(value) == ValueMeta(encoding, "", "", "", "", "")


def test_meta_of_json_is_read() -> None:
    value = b'{"apiVersion":"a.b/v1","kind":"K","metadata":{"name":"n","uid":"u"}}\n'
    assert read_meta(value) == ValueMeta("json", "a.b/v1", "K", "", "n", "u")
    assert decoded(value)["metadata"] == {"name": "n", "uid": "u"}


def test_meta_of_json_survives_odd_types() -> None:
    assert read_meta(b'{"kind":5,"metadata":[]}') == ValueMeta("json", "", "", "", "", "")


@pytest.mark.parametrize("length", [0, 1, 127, 128, 300])
def test_meta_is_read_in_every_layout(length: int) -> None:
    name = "n" * length
    ordered = sub(1, name) + sub(2, "") + sub(3, "space") + sub(4, "") + sub(5, "id")
    shuffled = sub(11, b"") + sub(5, "id") + sub(3, "space") + sub(1, name)
    expected = ValueMeta("protobuf", "v1", "Pod", "space", name, "id")
    for metadata in (ordered, shuffled):
        value = stored("v1", "Pod", sub(1, metadata))
        assert read_meta(value) == read_meta(value) == expected
        assert read_meta(value[:-4]) == expected


def test_meta_of_a_broken_object_keeps_its_kind() -> None:
    value = stored("v1", "Secret", b"\x0a\xff\x01")
    assert read_meta(value) == ValueMeta("protobuf", "v1", "Secret", "", "", "")


def test_unknown_kind_shows_its_metadata_only() -> None:
    value = stored("example.io/v9", "Thing", sub(1, sub(1, "a") + sub(3, "b")) + sub(2, b"\xff"))
    found = decode_value(value)
    assert found.unknown_kind
    assert found.object == {
        "kind": "Thing",
        "apiVersion": "example.io/v9",
        "metadata": {"name": "a", "namespace": "b"},
    }


def test_unknown_fields_are_named_and_skipped() -> None:
    newer = varint_field(900, 1) + sub(901, "x") + group(902, group(3, b"") + sub(1, "y"))
    fixed = varint(903 << 3 | 1) + bytes(8) + varint(904 << 3 | 5) + bytes(4)
    spec = sub(10, "node-1") + newer + fixed
    found = decode_value(stored("v1", "Pod", sub(2, spec) + varint_field(77, 1)))
    assert found.object is not None
    assert found.object["spec"] == {"containers": None, "nodeName": "node-1"}
    numbers = [f"core.v1.PodSpec.{n}" for n in (900, 901, 902, 903, 904)]
    assert found.unknown_fields == ("core.v1.Pod.77", *numbers)


def test_a_message_stored_twice_is_merged() -> None:
    spec = sub(2, sub(10, "old") + sub(19, "mine")) + sub(2, sub(10, "new"))
    pod = decoded(stored("v1", "Pod", spec))
    assert pod["spec"] == {"containers": None, "nodeName": "new", "schedulerName": "mine"}


def test_zero_is_shown_where_go_has_a_pointer() -> None:
    spec = varint_field(4, 0) + varint_field(11, 0) + varint_field(25, 0) + sub(19, "")
    pod = decoded(stored("v1", "Pod", sub(2, spec)))
    assert pod["spec"] == {"containers": None, "terminationGracePeriodSeconds": 0, "priority": 0}


def test_negative_numbers_are_read() -> None:
    spec = varint_field(25, -5) + varint_field(5, -(1 << 40))
    pod = decoded(stored("v1", "Pod", sub(2, spec)))
    assert pod["spec"]["priority"] == -5
    assert pod["spec"]["activeDeadlineSeconds"] == -(1 << 40)


@pytest.mark.parametrize(
    "groups",
    [varint_field(4, 1) + varint_field(4, 300), sub(4, varint(1) + varint(300))],
    ids=["unpacked", "packed"],
)
def test_repeated_numbers_are_read(groups: bytes) -> None:
    pod = decoded(stored("v1", "Pod", sub(2, sub(14, groups))))
    assert pod["spec"]["securityContext"] == {"supplementalGroups": [1, 300]}


@pytest.mark.parametrize("size", [0, 1, 127, 128, 300])
def test_map_entries_of_every_length_are_read(size: int) -> None:
    labels = {"k" * size: b"v", "k": b"v" * size, "": b""}
    pod = decoded(stored("v1", "Pod", sub(1, string_map(11, labels))))
    assert pod["metadata"]["labels"] == {k: v.decode() for k, v in labels.items()}


def test_map_entry_without_value_or_in_odd_order_is_read() -> None:
    entries = sub(11, sub(1, "a")) + sub(11, sub(2, "v") + varint_field(9, 1) + sub(1, "b"))
    pod = decoded(stored("v1", "Pod", sub(1, entries)))
    assert pod["metadata"]["labels"] == {"a": "", "b": "v"}


@pytest.mark.parametrize(
    ("stamp", "text"),
    [
        (varint_field(1, 1_764_604_742) + varint_field(2, 0), "2025-12-01T15:59:02Z"),
        (varint_field(1, 0) + varint_field(2, 0), "1970-01-01T00:00:00Z"),
        (varint_field(1, -1), "1969-12-31T23:59:59Z"),
        (varint_field(1, 253_402_300_800), "10000-01-01T00:00:00Z"),
    ],
)
def test_time_is_rfc_3339_seconds(stamp: bytes, text: str) -> None:
    pod = decoded(stored("v1", "Pod", sub(1, sub(8, stamp) + sub(9, stamp))))
    assert pod["metadata"] == {"creationTimestamp": text, "deletionTimestamp": text}


def test_micro_time_has_six_digits_and_zero_is_null() -> None:
    stamp = varint_field(1, 1_764_604_742) + varint_field(2, 1_234_000)
    event = decoded(stored("events.k8s.io/v1", "Event", sub(2, stamp)))
    assert event["eventTime"] == "2025-12-01T15:59:02.001234Z"
    assert decoded(stored("events.k8s.io/v1", "Event", sub(2, b"")))["eventTime"] is None


# Texts as Go's time.Duration.String documents and prints them.
@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0s"),
        (1, "1ns"),
        (1_100, "1.1µs"),
        (2_200_000, "2.2ms"),
        (1_500_000_000, "1.5s"),
        (90_000_000_000, "1m30s"),
        (3_600_000_000_000, "1h0m0s"),
        (4_530_918_000_000, "1h15m30.918s"),
        (-90_000_000_000, "-1m30s"),
    ],
)
def test_duration_is_printed_as_go_does(ns: int, text: str) -> None:
    from tracekit.decode._forms import duration_text

    assert duration_text(varint_field(1, ns)) == text


@pytest.mark.parametrize(
    ("stored_port", "port"),
    [
        (varint_field(1, 0) + varint_field(2, 8080) + sub(3, ""), 8080),
        (varint_field(1, 1) + varint_field(2, 0) + sub(3, "http"), "http"),
        (b"", 0),
    ],
)
def test_int_or_string_is_one_of_both(stored_port: bytes, port: int | str) -> None:
    service = decoded(stored("v1", "Service", sub(2, sub(1, sub(4, stored_port)))))
    assert service["spec"]["ports"][0]["targetPort"] == port


def test_bytes_are_base64() -> None:
    secret = decoded(stored("v1", "Secret", string_map(2, {"a": b"\x00\xff", "b": b""})))
    assert secret["data"] == {"a": "AP8=", "b": ""}


def test_text_that_is_not_utf_8_keeps_its_rest() -> None:
    pod = decoded(stored("v1", "Pod", sub(1, sub(1, b"a\xffb"))))
    assert pod["metadata"] == {"name": "a\ufffdb"}


def test_json_inside_the_envelope_is_read() -> None:
    raw = b'{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"}}'
    value = stored("v1", "Pod", raw, content_type="application/json")
    assert decoded(value)["metadata"] == {"name": "a"}
    assert read_meta(value) == ValueMeta("protobuf", "v1", "Pod", "", "a", "")


def test_compressed_object_is_not_guessed_at() -> None:
    value = stored("v1", "Pod", b"\x1f\x8b", encoding="gzip")
    assert read_meta(value).encoding == "opaque"
    with pytest.raises(DecodeError, match="gzip"):
        decode_value(value)


@pytest.mark.parametrize("value", [b"", b"30", b"\xd9\xd9\xf7", b"k8s:enc:aesgcm:v1:k:x"])
def test_opaque_values_have_no_object(value: bytes) -> None:
    assert decode_value(value).object is None


@pytest.mark.parametrize(
    "raw",
    [
        sub(2, b"\x0a\x05ab"),  # a string longer than its message
        varint_field(2, 1),  # a known field of another wire type
        sub(2, varint(4 << 3) + b"\xff" * 11),  # a varint that does not end
        sub(9, b"") + b"\x00",  # field number 0
        varint(99 << 3 | 3) + varint(98 << 3 | 4),  # a group closed by another
        varint(99 << 3 | 7),  # a wire type that does not exist
        varint(99 << 3 | 2) + b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f",  # a length beyond memory
        sub(2, sub(14, sub(4, b"\xff"))),  # a packed number cut short
    ],
)
def test_broken_object_raises(raw: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_value(stored("v1", "Pod", raw))


def test_truncation_at_every_byte_raises() -> None:
    for cut in range(4, len(POD) - 4):
        assert read_meta(POD[:cut]).encoding == "opaque"
        with pytest.raises(DecodeError):
            decode_value(POD[:cut])


def survives(value: bytes) -> None:
    meta = read_meta(value)
    assert meta.encoding in {"protobuf", "json", "cbor", "encrypted", "opaque", "none"}
    try:
        decode_value(value)
    except DecodeError:
        return


@given(st.binary(max_size=200))
def test_any_bytes_decode_or_raise_decode_error(noise: bytes) -> None:
    survives(noise)
    survives(b"k8s\x00" + noise)
    survives(b"{" + noise)
    survives(stored("v1", "Pod", noise))
    survives(stored("apps/v1", "Deployment", sub(2, noise)))


@given(st.integers(4, len(POD) - 1), st.binary(min_size=1, max_size=4))
def test_a_damaged_pod_decodes_or_raises_decode_error(at: int, noise: bytes) -> None:
    survives(POD[:at] + noise + POD[at + len(noise) :])
    survives(POD[:at] + noise + POD[at:])


def test_deep_groups_do_not_exhaust_the_stack() -> None:
    survives(stored("v1", "Pod", varint(99 << 3 | 3) * 50_000))
