"""etcd snapshots in, rows of objects out; right are the same server's watch, and etcd's words."""

from __future__ import annotations

import hashlib
import io
import random
from collections import Counter
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import polars as pl
import pytest
import zstandard

from tests.decode.bbolt_pages import PAGE_BYTES, branch, bucket_entry, file_of, inline_bucket, leaf
from tests.decode.wire import sub, varint_field
from tests.recordings import Recordings
from tracekit.decode.etcd_snapshot import EtcdSnapshotDecoder
from tracekit.decode.etcd_watch import EtcdWatchDecoder
from tracekit.errors import DecodeError, FormatError
from tracekit.model.batches import Chunk, Decoder, Gap, SourceContext
from tracekit.model.diagnostics import CODES, Diagnostic
from tracekit.model.tables import TABLES

CASES: Final = Path(__file__).parent / "cases" / "etcd_snapshot"
SAME: Final = ["revision", "sub", "key", "operation", "version", "create_revision", "lease"]
SERVERS: Final = ["etcd-3.4", "etcd-3.5"]


class Trickle(io.BytesIO):
    """A stream that gives at most 1000 bytes at once, as a pipe may."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(size if size is not None and size >= 0 else 1000, 1000))


class Result(NamedTuple):
    frame: pl.DataFrame
    damage: list[Diagnostic]
    gaps: list[Gap]
    facts: dict[str, str | int | None]

    def codes(self) -> Counter[str]:
        """Count the codes, but those about the values, which are no Kubernetes objects here."""
        assert all(d.code in CODES for d in self.damage)
        return Counter(d.code for d in self.damage if not d.code.startswith("VALUE_"))


def read(stream: BinaryIO, decoder: Decoder | None = None) -> Result:
    session = (decoder or EtcdSnapshotDecoder()).open(SourceContext(path="some.db"))
    batches = [session.parse(chunk) for chunk in session.split(stream)]
    assert all(b.table == "objects" and b.records == b.frame.height for b in batches)
    return Result(
        pl.concat(b.frame for b in batches),
        [d for b in batches for d in b.diagnostics],
        [g for b in batches for g in b.gaps],
        session.facts(),
    )


def case(name: str) -> bytes:
    return zstandard.decompress((CASES / f"{name}.zst").read_bytes())


def watched(name: str) -> pl.DataFrame:
    return read(io.BytesIO(case(f"{name}-watch.json")), EtcdWatchDecoder()).frame


def revision(main: int, place: int = 0, *, deleted: bool = False) -> bytes:
    return main.to_bytes(8, "big") + b"_" + place.to_bytes(8, "big") + b"t" * deleted


def put(main: int, key: str = "/registry/a", value: str = "x") -> tuple[bytes, bytes]:
    numbers = varint_field(2, main) + varint_field(3, main) + varint_field(4, 1)
    return revision(main), sub(1, key) + numbers + sub(5, value)


def with_checksum(data: bytes) -> bytes:
    return data + hashlib.sha256(data).digest()


def small(records: list[tuple[bytes, bytes]]) -> bytes:
    root = [(b"key", inline_bucket(records)), (b"meta", inline_bucket([]))]
    return with_checksum(file_of([leaf(2, root, flags=1)]))


@pytest.mark.parametrize("name", ["seed", "mid", "wide"])
def test_snapshot_equals_the_watch_of_the_same_run(recordings: Recordings, name: str) -> None:
    with (recordings(name) / "snapshot.db").open("rb") as stream:
        snapshot = read(stream)
    with (recordings(name) / "etcd-watch.json").open("rb") as stream:
        watch = read(stream, EtcdWatchDecoder())
    last = snapshot.frame["revision"].max()
    # The watch ran on while the API server ended: a few revisions behind the snapshot's last.
    until = watch.frame.filter(pl.col("revision") <= last)
    assert watch.frame.height - until.height <= 8
    assert snapshot.frame.drop("record_no").equals(until.drop("record_no"))
    assert (snapshot.codes(), snapshot.gaps) == (Counter(), [])
    assert snapshot.facts["cluster_uid"] == watch.facts["cluster_uid"] is not None
    assert snapshot.frame["record_no"].to_list() == list(range(1, snapshot.frame.height + 1))


@pytest.mark.parametrize("server", SERVERS)
def test_history_of_another_etcd_equals_its_watch(server: str) -> None:
    snapshot = read(Trickle(case(f"{server}-before.db")))
    watch = watched(server)
    until = watch.filter(pl.col("revision") <= 49)
    assert snapshot.frame.select(*SAME, "value").equals(until.select(*SAME, "value"))
    assert (snapshot.codes(), snapshot.gaps) == (Counter(), [])
    transaction = snapshot.frame.filter(pl.col("revision") == 6)
    assert transaction.select("sub", "key", "operation").rows() == [
        (0, "/registry/t1", "PUT"),
        (1, "/registry/t2", "PUT"),
        (2, "/registry/b", "DELETE"),
    ]


@pytest.mark.parametrize("server", SERVERS)
def test_compaction_is_a_gap_and_leaves_the_state_at_it(server: str) -> None:
    snapshot = read(io.BytesIO(case(f"{server}-after.db")))
    watch = watched(server)
    at = watch.filter(pl.col("revision") <= 20).unique("key", keep="last", maintain_order=True)
    state = at.filter(pl.col("operation") == "PUT")
    expected = pl.concat([state, watch.filter(pl.col("revision") > 20)]).sort("revision", "sub")
    assert snapshot.frame.select(*SAME, "value").equals(expected.select(*SAME, "value"))
    assert [(g.from_revision, g.to_revision) for g in snapshot.gaps] == [(1, 20)]
    assert "compacted" in snapshot.gaps[0].cause


def test_a_scheduled_compaction_counts_too() -> None:
    notes = [(b"finishedCompactRev", revision(3)), (b"scheduledCompactRev", revision(9))]
    root = [(b"key", inline_bucket([put(12)])), (b"meta", inline_bucket(notes))]
    result = read(io.BytesIO(with_checksum(file_of([leaf(2, root, flags=1)]))))
    assert [(g.from_revision, g.to_revision) for g in result.gaps] == [(1, 9)]


def test_columns_are_those_of_the_schema() -> None:
    frame = read(io.BytesIO(small([]))).frame
    elsewhere = {"cluster", "source_id", "received_at"}  # the pipeline's and a live source's
    columns = [c.name for c in TABLES["objects"].columns if c.name not in elsewhere]
    assert frame.columns == columns


def test_a_delete_has_its_key_only() -> None:
    records = [put(2), (revision(3, deleted=True), sub(1, "/registry/a"))]
    row = read(io.BytesIO(small(records))).frame.row(1, named=True)
    told = {name: row[name] for name in (*SAME, "value")}
    assert told == {
        "revision": 3, "sub": 0, "key": "/registry/a", "operation": "DELETE", "version": 0,
        "create_revision": 0, "lease": 0, "value": None,
    }  # fmt: skip


def test_a_wrong_checksum_is_told_and_the_rest_read() -> None:
    data = small([put(2)])
    result = read(io.BytesIO(data[:-1] + bytes([data[-1] ^ 1])))
    assert result.codes() == {"SNAPSHOT_CHECKSUM": 1}
    assert result.frame["revision"].to_list() == [2]


def test_a_copy_of_the_db_has_no_checksum() -> None:
    result = read(io.BytesIO(small([put(2)])[:-32]))
    assert (result.frame.height, result.codes()) == (1, Counter())


@pytest.mark.parametrize(
    "record",
    [
        (b"short", sub(1, "/registry/b")),
        (revision(3).replace(b"_", b"-"), put(3)[1]),
        (revision(3) + b"x", put(3)[1]),
        (revision(2**63), put(2**63)[1]),
        (revision(3), put(4)[1]),  # the value says another revision than its key
        (revision(3), put(3)[1][:-1]),
        (revision(3), b"\x0a\xff"),
        (revision(3), varint_field(3, 3)),  # no key
        (revision(3), b"\x0f" + put(3)[1]),  # no such wire type
    ],
)
def test_a_broken_record_costs_itself(record: tuple[bytes, bytes]) -> None:
    # Keys that sort elsewhere are no matter here, so the page's order may be told as well.
    result = read(io.BytesIO(small([put(2), record, put(5)])))
    assert result.frame["revision"].to_list() == [2, 5]
    unreadable = [d for d in result.damage if d.code == "SNAPSHOT_RECORD_UNREADABLE"]
    assert [d.position for d in unreadable] == [2]


def test_unknown_fields_of_a_record_are_passed_over() -> None:
    place, value = put(2)
    frame = read(io.BytesIO(small([(place, varint_field(900, 5) + value + sub(15, "new"))]))).frame
    assert frame.select("key", "value").rows() == [("/registry/a", b"x")]


def test_a_damaged_page_is_named_and_the_others_read() -> None:
    pages = [
        leaf(2, [(b"key", bucket_entry(3)), (b"meta", inline_bucket([]))], flags=1),
        branch(3, [(revision(2), 4), (revision(4), 5), (revision(6), 6)]),
        *(leaf(4 + i, [put(2 + i * 2), put(3 + i * 2)]) for i in range(3)),
    ]
    data = bytearray(file_of(pages))
    data[5 * PAGE_BYTES] ^= 0xFF
    result = read(io.BytesIO(data))
    assert result.frame["revision"].to_list() == [2, 3, 6, 7]
    assert [(d.code, d.position) for d in result.damage if "PAGE" in d.code] == [
        ("SNAPSHOT_PAGE_DAMAGED", 5)
    ]
    assert any(d.detail.startswith("page 5: ") for d in result.damage)


def test_damage_is_listed_up_to_a_number() -> None:
    wrong = [(revision(i), 4) for i in range(80)]
    pages = [leaf(2, [(b"key", bucket_entry(3))], flags=1)]
    pages.append(branch(3, [(revision(i), 4 + i) for i in range(60)]))
    pages += [branch(4 + i, wrong) for i in range(60)]
    result = read(io.BytesIO(file_of(pages)))
    assert result.codes() == {"SNAPSHOT_PAGE_DAMAGED": 1001}
    assert result.damage[-1].detail == "only the first 1000 damaged pages are listed"


def test_another_programs_bbolt_file_is_refused() -> None:
    data = file_of([leaf(2, [(b"v1", inline_bucket([]))], flags=1)])
    assert EtcdSnapshotDecoder().recognises(data)
    with pytest.raises(FormatError, match="without etcd's key bucket"):
        read(io.BytesIO(data))


def test_a_broken_root_is_named() -> None:
    data = bytearray(small([put(2)]))
    data[2 * PAGE_BYTES + 8] = 0x40
    with pytest.raises(DecodeError, match="broken at page 2"):
        read(io.BytesIO(data))


def test_an_empty_stream_is_refused() -> None:
    with pytest.raises(FormatError, match="empty"):
        read(io.BytesIO())


def test_a_chunk_of_no_records_gives_no_rows() -> None:
    session = EtcdSnapshotDecoder().open(SourceContext(path="some.db"))
    assert session.parse(Chunk(b"", 1, True)).frame.height == 0


def test_no_piece_is_led_on() -> None:
    assert EtcdSnapshotDecoder().lead(b"\0" * 64, b"\0" * 100) == 0


@pytest.mark.parametrize("seed", range(4))
def test_mutated_snapshots_give_diagnostics_or_refusals(seed: int) -> None:
    whole, random_ = case(f"{SERVERS[seed % 2]}-before.db"), random.Random(seed)
    for _ in range(100):
        mutant = bytearray(whole)
        for _ in range(random_.choice((1, 1, 3, 20))):
            mutant[random_.randrange(len(mutant))] ^= 1 << random_.randrange(8)
        if random_.random() < 0.3:
            del mutant[random_.randrange(len(mutant)) :]
        try:
            result = read(io.BytesIO(mutant))
        except (DecodeError, FormatError):
            continue
        assert result.frame.height <= 52
        assert set(result.codes()) <= {
            "SNAPSHOT_CHECKSUM", "SNAPSHOT_PAGE_DAMAGED", "SNAPSHOT_RECORD_UNREADABLE",
        }  # fmt: skip
        assert result.codes() or mutant == whole[: len(mutant)] or len(mutant) % 512 != 32
