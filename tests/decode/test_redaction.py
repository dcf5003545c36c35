from __future__ import annotations

import hashlib
import hmac
import json
from base64 import b64decode, b64encode
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.decode.wire import stored, string_map, sub, varint, varint_field
from tests.recordings import Recordings
from tracekit.decode.kubernetes import (
    decode_value,
    make_redactor,
    read_meta,
    redact_json_object,
)
from tracekit.errors import DecodeError

KEY = b"a key of the test's own"
PASSWORD = b"correct horse battery staple"
BINARY = b"\x00\xffnot text\xfe"
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
APPLIED_TEXT = json.dumps({"data": {"password": b64encode(PASSWORD).decode()}}).encode()
REDACT = make_redactor(KEY)


def hashed(payload: bytes) -> str:
    digest = hmac.new(KEY, payload, hashlib.sha256).hexdigest()
    return f"redacted:hmac-sha256:{digest[:32]}"


def base64_text(payload: bytes) -> str:
    return b64encode(payload).decode()


def metadata(annotations: dict[str, bytes]) -> bytes:
    names = sub(1, "db") + sub(2, "") + sub(3, "shop") + sub(4, "") + sub(5, "u-1")
    return names + string_map(12, annotations) + sub(999, "newer")


def secret(payload: bytes = PASSWORD, applied: bytes = APPLIED_TEXT) -> bytes:
    raw = sub(1, metadata({"team": b"blue", APPLIED: applied}))
    raw += string_map(2, {"password": payload, "blob": BINARY}) + sub(3, "Opaque")
    raw += string_map(4, {"plain": payload}) + varint_field(5, 1) + varint_field(900, 7)
    return stored("v1", "Secret", raw)


def config_map() -> bytes:
    raw = sub(1, metadata({APPLIED: APPLIED_TEXT}))
    raw += string_map(2, {"file.conf": PASSWORD}) + string_map(3, {"blob": BINARY})
    return stored("v1", "ConfigMap", raw)


def leaks(value: bytes) -> list[bytes]:
    """Return the forms of the payloads that are still in the value."""
    forms = []
    for payload in (PASSWORD, BINARY, APPLIED_TEXT):
        # Base64 of a part of a longer text starts at any of three places.
        forms += [b64encode(b"x" * shift + payload)[4:-4] for shift in range(3)]
        forms += [payload, payload.hex().encode(), json.dumps(payload.decode("latin-1")).encode()]
    return [form for form in forms if form in value]


def decoded(value: bytes) -> dict[str, Any]:
    found = decode_value(value).object
    assert found is not None
    return found


def test_secret_keeps_its_shape_and_loses_its_payloads() -> None:
    before = secret()
    assert leaks(before)
    after, changed = REDACT("Secret", before, "protobuf")
    assert changed
    assert leaks(after) == []
    expected = decoded(before)
    expected["metadata"]["annotations"][APPLIED] = hashed(APPLIED_TEXT)
    expected["data"] = {
        "password": base64_text(hashed(PASSWORD).encode()),
        "blob": base64_text(hashed(BINARY).encode()),
    }
    expected["stringData"] = {"plain": hashed(PASSWORD)}
    assert decoded(after) == expected
    assert read_meta(after) == read_meta(before)


def test_all_but_the_payloads_is_kept_byte_for_byte() -> None:
    after, _ = REDACT("Secret", secret(), "protobuf")
    raw = sub(1, metadata({"team": b"blue", APPLIED: hashed(APPLIED_TEXT).encode()}))
    data = {"password": hashed(PASSWORD).encode(), "blob": hashed(BINARY).encode()}
    raw += string_map(2, data) + sub(3, "Opaque")
    raw += string_map(4, {"plain": hashed(PASSWORD).encode()})
    raw += varint_field(5, 1) + varint_field(900, 7)
    assert after == stored("v1", "Secret", raw)


def test_config_map_loses_text_and_binary_payloads() -> None:
    after, changed = REDACT("ConfigMap", config_map(), "protobuf")
    assert changed
    assert leaks(after) == []
    found = decoded(after)
    assert found["data"] == {"file.conf": hashed(PASSWORD)}
    assert found["binaryData"] == {"blob": base64_text(hashed(BINARY).encode())}
    assert found["metadata"]["annotations"] == {APPLIED: hashed(APPLIED_TEXT)}


def json_secret() -> dict[str, Any]:
    return {
        "kind": "Secret",
        "apiVersion": "v1",
        "metadata": {"name": "db", "annotations": {"team": "b", APPLIED: APPLIED_TEXT.decode()}},
        "data": {"password": base64_text(PASSWORD), "blob": base64_text(BINARY)},
        "stringData": {"plain": PASSWORD.decode()},
        "type": "Opaque",
    }


def test_json_secret_gets_the_same_hashes_as_protobuf() -> None:
    before = json_secret()
    after, changed = REDACT("Secret", orjson.dumps(before) + b"\n", "json")
    assert changed
    assert after.endswith(b"}\n")
    assert leaks(after) == []
    found = orjson.loads(after)
    assert b64decode(found["data"]["password"]).decode() == hashed(PASSWORD)
    assert b64decode(found["data"]["blob"]).decode() == hashed(BINARY)
    assert found["stringData"] == {"plain": hashed(PASSWORD)}
    assert found["metadata"]["annotations"] == {"team": "b", APPLIED: hashed(APPLIED_TEXT)}
    assert {**found, "data": 0, "stringData": 0, "metadata": 0} == {
        **before, "data": 0, "stringData": 0, "metadata": 0,
    }  # fmt: skip


def test_json_object_itself_is_not_changed() -> None:
    before = json_secret()
    after, changed = redact_json_object(before, KEY)
    assert changed
    assert before == json_secret()
    assert after != before


def test_json_inside_a_protobuf_envelope_becomes_a_marker() -> None:
    raw = orjson.dumps(json_secret())
    value = stored("v1", "Secret", raw, content_type="application/json")
    is_marker(*REDACT("Secret", value, "protobuf"))


def test_another_key_gives_another_hash() -> None:
    other, _ = make_redactor(b"another")("Secret", secret(), "protobuf")
    assert other != REDACT("Secret", secret(), "protobuf")[0]
    assert REDACT("Secret", secret(), "protobuf") == REDACT("Secret", secret(), "protobuf")


@pytest.mark.parametrize(
    ("kind", "value", "encoding"),
    [
        ("Pod", stored("v1", "Pod", sub(1, metadata({APPLIED: APPLIED_TEXT}))), "protobuf"),
        ("Secret", stored("example.io/v1", "Secret", string_map(2, {"a": b"b"})), "protobuf"),
        ("Secret", stored("v1", "Secret", sub(1, metadata({"a": b"b"}))), "protobuf"),
        ("Secret", b'{"kind":"Secret","apiVersion":"x.io/v1","data":{"a":"b"}}', "json"),
        ("ConfigMap", b'{"kind":"ConfigMap", "apiVersion":"v1"}', "json"),
        ("", b"k8s:enc:aescbc:v1:key:\x00", "encrypted"),
        ("", b"\xd9\xd9\xf7\xa1\x64kind\x6bSecretStore", "cbor"),
        ("", b"30", "opaque"),
        ("", b"", "none"),
        ("", stored("v1", "Pod", b"")[:-3], "opaque"),
    ],
)
def test_what_holds_no_payload_is_the_same_bytes(kind: str, value: bytes, encoding: str) -> None:
    assert REDACT(kind, value, encoding) == (value, False)


def is_marker(value: bytes, changed: bool) -> None:
    assert changed
    assert value.startswith(b"k8s:redacted:")
    assert len(value) == len(b"k8s:redacted:") + 32
    assert read_meta(value).encoding == "opaque"


@pytest.mark.parametrize(
    ("kind", "value", "encoding"),
    [
        ("Secret", stored("v1", "Secret", string_map(2, {"p": PASSWORD})[:-1]), "protobuf"),
        ("Secret", stored("v1", "Secret", varint_field(2, 1) + PASSWORD), "protobuf"),
        ("Secret", stored("v1", "Secret", PASSWORD, encoding="gzip"), "protobuf"),
        ("", stored("v1", "Secret", PASSWORD, encoding="gzip"), "opaque"),
        ("", b"k8s\x00\xff" + PASSWORD, "opaque"),
        ("", stored("v1", "", string_map(2, {"a": PASSWORD})), "protobuf"),
        ("Secret", b"whatever " + PASSWORD, "opaque"),
        ("", b'{"kind":"Secret","data":{"a":"' + PASSWORD, "opaque"),
        ("Secret", b'{"kind":"Secret","apiVersion":"v1","data":["x"]}', "json"),
        ("Secret", b'{"kind":"Secret","apiVersion":"v1","data":"x"}', "json"),
        ("", b"\xd9\xd9\xf7\xa2\x64kind\x66Secret" + PASSWORD, "cbor"),
    ],
)
def test_unreadable_payloads_become_a_marker(kind: str, value: bytes, encoding: str) -> None:
    is_marker(*REDACT(kind, value, encoding))


def test_state_before_of_a_value_gone_bad_is_redacted_too() -> None:
    # The caller's kind and encoding are those of the new value, which is unreadable.
    after, changed = REDACT("", secret(), "opaque")
    assert changed
    assert leaks(after) == []
    assert decoded(after)["kind"] == "Secret"


def test_map_entry_stored_twice_or_oddly_hides_nothing() -> None:
    odd = sub(2, sub(2, PASSWORD) + sub(1, "a") + sub(2, PASSWORD)) + sub(2, sub(2, PASSWORD))
    noted = sub(12, sub(2, APPLIED_TEXT) + sub(1, "other") + sub(1, APPLIED))
    value = stored("v1", "Secret", odd + sub(1, noted) + sub(1, noted))
    after, changed = REDACT("Secret", value, "protobuf")
    assert changed
    assert leaks(after) == []


def test_secret_cut_at_every_byte_leaks_nothing() -> None:
    whole = secret()
    for cut in range(len(whole)):
        value = whole[:cut]
        meta = read_meta(value)
        after, _ = REDACT(meta.kind, value, meta.encoding)
        assert leaks(after) == [], cut


@given(st.integers(0, 400), st.binary(min_size=1, max_size=3))
def test_damaged_secret_leaks_nothing_or_keeps_no_kind(at: int, noise: bytes) -> None:
    whole = secret()
    start = whole.index(b"\x12", 14)  # behind typeMeta: what it says is what decides
    at = start + at % (len(whole) - start)
    value = whole[:at] + noise + whole[at + len(noise) :]
    meta = read_meta(value)
    after, changed = REDACT(meta.kind, value, meta.encoding)
    assert changed
    # Noise inside a payload's own field number or length may move its bytes elsewhere, so the
    # promise is about what the object shows as payloads.
    shown_payloads_are_hashes(after)


def shown_payloads_are_hashes(value: bytes) -> None:
    try:
        found = decode_value(value).object or {}
    except DecodeError:
        return
    for payload in found.get("data", {}).values():
        assert b64decode(payload).startswith(b"redacted:hmac-sha256:") or payload == ""
    for payload in found.get("stringData", {}).values():
        assert payload.startswith("redacted:hmac-sha256:") or payload == ""


@given(st.binary(max_size=100))
def test_any_bytes_are_redacted_without_an_error(noise: bytes) -> None:
    for kind in ("Secret", ""):
        for value in (noise, b"k8s\x00" + noise, b"{" + noise, stored("v1", "Secret", noise)):
            for encoding in ("protobuf", "json", "cbor", "opaque"):
                REDACT(kind, value, encoding)


def test_long_payloads_get_their_lengths_right() -> None:
    value = secret(payload=b"x" * 100_000, applied=b"")
    after, _ = REDACT("Secret", value, "protobuf")
    assert decoded(after)["stringData"] == {"plain": hashed(b"x" * 100_000)}
    assert varint(100_000) not in after


def test_recorded_config_maps_keep_all_but_payloads(recordings: Recordings) -> None:
    found = 0
    for line in (recordings("seed") / "etcd-watch.json").read_bytes().splitlines():
        for event in orjson.loads(line)["Events"] or []:
            value = b64decode(event["kv"].get("value", ""))
            meta = read_meta(value)
            after, changed = REDACT(meta.kind, value, meta.encoding)
            assert changed == (meta.kind == "ConfigMap" and "data" in decoded(value))
            assert read_meta(after) == meta
            if changed:
                before, found = decoded(value), found + 1
                data = {name: hashed(text.encode()) for name, text in before["data"].items()}
                assert decoded(after) == {**before, "data": data}
    assert found > 0
