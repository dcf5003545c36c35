"""``get`` shows each stored object as an independent decoder does (issue 2, row 1)."""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

import tracekit
from tests.acceptance.stores import STREAM, Stores, build
from tests.decode.wire import stored, string_map, sub, varint_field
from tests.recordings import Recording, Recordings
from tracekit.model.options import CollectOptions
from tracekit.pipeline.trace import Trace

DECODED = {"seed": 303, "mid": 510, "wide": 552, "json": 498}
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
PAYLOADS = {"ConfigMap": ("data", "binaryData"), "Secret": ("data", "stringData")}
PASSWORD = b"correct horse battery staple"
RSA_KEY = b"\x30\x82\xff\x00 a key's bytes \xfe\xfd\xfc"

JSON = dict[str, Any]


def truth(recording: Recording) -> list[JSON]:
    with (recording / "truth/decoded.jsonl").open("rb") as lines:
        return [orjson.loads(line) for line in lines]


def canonical(value: object) -> bytes:
    # Python's == takes 1, 1.0 and true for one value; JSON has three.
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def without_payload(found: JSON) -> JSON:
    """Leave out what is redacted: the payload maps and the last-applied annotation."""
    maps = PAYLOADS.get(found["kind"])
    if maps is None or found["apiVersion"] != "v1":
        return found
    metadata = dict(found["metadata"])
    if APPLIED in metadata.get("annotations", {}):
        metadata["annotations"] = {**metadata["annotations"], APPLIED: None}
    kept = {key: value for key, value in found.items() if key not in maps}
    return kept | {key: sorted(found[key]) for key in maps if key in found} | {"metadata": metadata}


def payloads(found: JSON) -> Iterator[str]:
    """Yield each payload text of a ConfigMap or Secret."""
    for name in PAYLOADS.get(found["kind"], ()):
        yield from found.get(name, {}).values()
    if found["kind"] in PAYLOADS and APPLIED in found["metadata"].get("annotations", {}):
        yield found["metadata"]["annotations"][APPLIED]


def test_every_decoded_object_is_told(name: str, stores: Stores) -> None:
    store = stores(name)
    lines = truth(store.recording)
    assert len(lines) == DECODED[name]
    hidden = 0
    for line in lines:
        found = store.trace.get(line["key"], revision=line["revision"])
        shown: JSON = orjson.loads(orjson.dumps(found.object))
        assert (found.revision, found.version) == (line["revision"], line["version"])
        assert canonical(without_payload(shown)) == canonical(without_payload(line["object"]))
        for before, after in zip(payloads(line["object"]), payloads(shown), strict=True):
            hidden += 1
            assert after != before
            assert after.startswith(("redacted:hmac-sha256:", b64encode(b"redacted:").decode()))
    assert hidden > 0


def test_every_decoded_object_is_whole_without_redaction(
    name: str, recordings: Recordings, tmp_path: Path
) -> None:
    recording = recordings(name)
    options = CollectOptions(redact="none")
    trace = build(tmp_path / "store", [recording / STREAM], options, replay=False)
    lines = truth(recording)
    hidden = [line for line in lines if any(payloads(line["object"]))]
    assert hidden
    # What has no payload is the same with and without redaction: some of it will do.
    for line in [*hidden, *lines[::10]]:
        found = trace.get(line["key"], revision=line["revision"])
        assert canonical(found.object) == canonical(line["object"]), line["key"]


@pytest.mark.parametrize("kind", ["Pod", "Node", "Lease", "APIService", "PriorityClass"])
def test_command_line_prints_the_object(kind: str, stores: Stores) -> None:
    store = stores("seed")
    line = next(line for line in truth(store.recording) if line["object"]["kind"] == kind)
    command = ["get", line["key"], "--revision", str(line["revision"])]
    done = subprocess.run(
        [sys.executable, "-m", "tracekit", *command, "--store", store.trace.folder],
        capture_output=True,
        check=True,
    )
    assert canonical(orjson.loads(done.stdout)) == canonical(line["object"])
    assert done.stderr == b""


def secret() -> tuple[bytes, JSON]:
    """Make a Secret that kubectl applied, as etcd has it and as the API shows it."""
    data = {"password": b64encode(PASSWORD).decode(), "tls.key": b64encode(RSA_KEY).decode()}
    applied = json.dumps({"apiVersion": "v1", "kind": "Secret", "data": data})
    annotations = {"team": "blue", APPLIED: applied}
    metadata = sub(1, "db") + sub(2, "") + sub(3, "shop") + sub(4, "") + sub(5, "s-1")
    metadata += sub(8, varint_field(1, 1_800_000_000))
    metadata += string_map(12, {key: text.encode() for key, text in annotations.items()})
    raw = sub(1, metadata) + string_map(2, {"password": PASSWORD, "tls.key": RSA_KEY})
    shown = {
        "kind": "Secret",
        "apiVersion": "v1",
        "metadata": {
            "name": "db",
            "namespace": "shop",
            "uid": "s-1",
            "creationTimestamp": "2027-01-15T08:00:00Z",
            "annotations": annotations,
        },
        "data": data,
        "type": "Opaque",
    }
    return stored("v1", "Secret", raw + sub(3, "Opaque")), shown


def secret_stream(folder: Path, key: str) -> Path:
    """Write the Secret at revision 7, once more at 9 beside its old value, and its end at 11."""

    def line(revision: int, version: int, **event: object) -> bytes:
        kv = {"key": b64encode(key.encode()).decode(), "mod_revision": revision}
        value = b64encode(secret()[0]).decode()
        if version:
            kv |= {"create_revision": 7, "version": version, "value": value}
        header = {"cluster_id": 1, "member_id": 2, "revision": revision, "raft_term": 2}
        return orjson.dumps({"Header": header, "Events": [{"kv": kv, **event}]}) + b"\n"

    before = {"key": b64encode(key.encode()).decode(), "create_revision": 7, "mod_revision": 7,
              "version": 1, "value": b64encode(secret()[0]).decode()}  # fmt: skip
    path = folder / "watch.json"
    path.write_bytes(line(7, 1) + line(9, 2, prev_kv=before) + line(11, 0, type=1, prev_kv=before))
    return path


def leaks(folder: Path) -> list[str]:
    """Name every file of a store in which a payload stands in any form."""
    forms: set[bytes] = set()
    for payload in (PASSWORD, RSA_KEY):
        forms |= {payload, payload.hex().encode()}
        # Base64 of a part of a longer text starts at any of three places.
        forms |= {b64encode(b"x" * shift + payload)[4:-4] for shift in range(3)}
    found = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        content = path.read_bytes()
        if path.suffix == ".parquet":
            for column in pl.read_parquet(path).get_columns():
                if column.dtype in (pl.String, pl.Binary):
                    values = column.cast(pl.Binary).drop_nulls().to_list()
                    content += b"\n".join(values)
        found += [f"{path.name}: {form!r}" for form in forms if form in content]
    return found


@pytest.fixture
def secret_store(tmp_path: Path) -> Trace:
    key = "/registry/secrets/shop/db"
    return build(tmp_path / "store", [secret_stream(tmp_path, key)])


def test_secret_is_shown_without_its_payload(secret_store: Trace) -> None:
    _, expected = secret()
    for revision in (7, 9):
        shown = secret_store.get("/registry/secrets/shop/db", revision=revision).object
        assert canonical(without_payload(dict(shown))) == canonical(without_payload(expected))
        assert set(payloads(dict(shown))).isdisjoint(payloads(expected))
        assert len(list(payloads(dict(shown)))) == 3
    with pytest.raises(tracekit.TracekitError, match="deleted at revision 11"):
        secret_store.get("/registry/secrets/shop/db", revision=11)


def test_secret_is_nowhere_in_the_store(secret_store: Trace) -> None:
    assert leaks(secret_store.folder) == []


def test_secret_is_nowhere_in_the_store_under_any_key(tmp_path: Path) -> None:
    # The kind is read from the value: a key that says nothing hides nothing.
    trace = build(tmp_path / "store", [secret_stream(tmp_path, "/registry/x/shop/db")])
    assert leaks(trace.folder) == []


def test_secret_is_whole_without_redaction(tmp_path: Path) -> None:
    source = secret_stream(tmp_path, "/registry/secrets/shop/db")
    trace = build(tmp_path / "store", [source], CollectOptions(redact="none"))
    shown = trace.get("/registry/secrets/shop/db", revision=7).object
    assert canonical(shown) == canonical(secret()[1])
    # Which also shows that the search finds what is there.
    assert leaks(trace.folder) != []
