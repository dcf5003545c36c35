"""Numbers, instants and causes: one value in, one text out."""

from __future__ import annotations

import pytest

from tracekit.report import numbers
from tracekit.report.causes import CAUSES, cause_of, has_no_node, present_causes
from tracekit.report.instants import Window, format_clock, format_instant, parse_instant

MINUTE = 60_000_000


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "–"),
        (0, "0 s"),
        (0.0004, "<1 ms"),
        (0.4034, "403 ms"),
        (12, "12.0 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 00 s"),
        (163, "2 min 43 s"),
        (10920, "3 h 02 min"),
        (183600, "2 d 3 h"),
        (-2, "−2.0 s"),
    ],
)
def test_spans_have_the_unit_that_fits(seconds: float | None, words: str) -> None:
    assert numbers.seconds(seconds) == words


@pytest.mark.parametrize(
    ("resource", "value", "words"),
    [
        ("cpu", 250, "250\u2009m"),
        ("cpu", 0, "0.0 cores"),
        ("cpu", 108_000, "108.0 cores"),
        ("memory", 3 << 29, "1.5 GiB"),
        ("ephemeral-storage", 1 << 30, "1.0 GiB"),
        ("nvidia.com/gpu", 2, "2"),
        ("pods", 12_345, "12\u2009345"),
        ("cpu", None, "–"),
    ],
)
def test_amounts_are_cores_gibibytes_or_counts(
    resource: str, value: float | None, words: str
) -> None:
    assert numbers.amount(resource, value) == words


@pytest.mark.parametrize(
    ("ratio", "words"), [(None, "–"), (0, "0"), (0.001, "<1"), (0.523, "52"), (1.2, "120")]
)
def test_percent_tells_zero_from_little_and_from_unknown(ratio: float | None, words: str) -> None:
    assert numbers.percent(ratio, sign=False) == words


@pytest.mark.parametrize(
    ("written", "us"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:01.000002Z", 1_000_002),
        ("2000-02-29T12:00:00+02:00", 951_818_400_000_000),
        ("2026-13-01T00:00:00Z", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_instants_are_read_from_rfc_3339(written: str, us: int | None) -> None:
    assert parse_instant(written) == us


def test_instants_are_printed_in_utc() -> None:
    at = parse_instant("2026-12-01T16:03:04.729686Z")
    assert at is not None
    assert format_clock(at) == "16:03:04.729"
    assert format_instant(at) == "2026-12-01 16:03:04"


def test_a_window_places_instants_and_clips_what_is_outside() -> None:
    window = Window(0, 10 * MINUTE)
    assert [window.x(at) for at in (0, 5 * MINUTE, 10 * MINUTE, 99 * MINUTE, None)] == [
        0,
        1000,
        2000,
        2000,
        2000,
    ]
    assert [t.label for t in window.ticks()] == [
        "00:00",
        "00:02",
        "00:04",
        "00:06",
        "00:08",
        "00:10",
    ]


def test_a_window_over_midnight_prints_days() -> None:
    begin = parse_instant("2026-12-31T23:59:00Z")
    assert begin is not None
    window = Window(begin, begin + 2 * MINUTE)
    assert window.label(begin, 0) == "2026-12-31 23:59:00"
    assert window.ticks()[-1].label == "01-01 00:01:00"


# Source: reason texts of facts/formats.md §3.2, from the plugins' own source.
@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("node(s) were unschedulable", "cordon"),
        ("node(s) had untolerated taint {node.kubernetes.io/volume-thing: }", "taint"),
        ("node(s) had taint {k: v}, that the pod didn't tolerate", "taint"),
        ("Insufficient cpu", "cpu"),
        ("Insufficient memory", "memory"),
        ("Too many pods", "slots"),
        ("Insufficient pods", "slots"),
        ("Insufficient nvidia.com/gpu", "device"),
        ("Insufficient ephemeral-storage", "device"),
        ("node(s) didn't have free ports for the requested pod ports", "ports"),
        ("node(s) didn't match Pod's node affinity/selector", "affinity"),
        ("node(s) didn't satisfy plugin(s) [NodeAffinity]", "affinity"),
        ("pod affinity terms conflict", "affinity"),
        ("node(s) didn't match pod anti-affinity rules", "podaff"),
        ("node(s) didn't satisfy existing pods anti-affinity rules", "podaff"),
        ("node(s) didn't match pod topology spread constraints (missing required label)", "spread"),
        ("node(s) didn't match PersistentVolume's node affinity", "volume"),
        ('persistentvolumeclaim "x" not found', "volume"),
        ("gated", "gated"),
        ("not_tried", "waiting"),
        ("error", "other"),
        ("out-of-tree plugin said no", "other"),
        ("", "other"),
    ],
)
def test_reasons_belong_to_a_cause_or_stay_other(reason: str, cause: str) -> None:
    assert cause_of(reason).id == cause


def test_causes_keep_their_stacking_order() -> None:
    assert [c.id for c in present_causes(["volume", "cpu", "cpu", "cordon"])] == [
        "cordon",
        "cpu",
        "volume",
    ]
    families = [c.family for c in CAUSES]
    assert families == sorted(families, key=families.index), "a family is in one piece"


def test_a_bound_pod_that_starts_is_not_waiting_for_a_node() -> None:
    assert has_no_node({"kind": "unschedulable", "cause": "Insufficient cpu"})
    assert not has_no_node({"kind": "starting", "cause": "starting"})
    assert not has_no_node({"cause": "starting"})
