"""Quantities: the right values are those of apimachinery pkg/api/resource/quantity_test.go."""

from __future__ import annotations

import pytest

from tracekit.replay.quantity import NANOS, amounts, parse_nanos, whole, whole_units


@pytest.mark.parametrize(
    ("text", "nanos"),
    [
        ("0", 0),
        ("1", NANOS),
        ("+5", 5 * NANOS),
        ("-5", -5 * NANOS),
        ("100m", NANOS // 10),
        ("0.1", NANOS // 10),
        (".5", NANOS // 2),
        ("5.", 5 * NANOS),
        ("1e3", 1000 * NANOS),
        ("1E3", 1000 * NANOS),
        ("12e-3", 12 * NANOS // 1000),
        ("1k", 1000 * NANOS),
        ("1Ki", 1024 * NANOS),
        ("1.5Gi", 3 * 2**29 * NANOS),
        ("3M", 3_000_000 * NANOS),
        ("5n", 5),
        ("5u", 5000),
        ("0.1n", 1),  # rounded up to the finest step
        ("1Ei", 2**60 * NANOS),
        ("8E", 8 * 10**18 * NANOS),
        ("12E", (2**63 - 1) * NANOS),  # cut off at the largest int64
        ("-12E", -(2**63 - 1) * NANOS),
    ],
)
def test_quantity_reads_exactly(text: str, nanos: int) -> None:
    assert parse_nanos(text) == nanos


@pytest.mark.parametrize("text", ["", ".", "m", "1 G", "1ki", "1.2.3", "0x10", "1e", "--1", "NaN"])
def test_other_text_is_no_quantity(text: str) -> None:
    assert parse_nanos(text) is None


def test_whole_units_round_up() -> None:
    assert whole("cpu", 1) == 1
    assert whole("cpu", NANOS) == 1000
    assert whole("memory", NANOS + 1) == 2
    assert whole_units({"memory": "1Ki", "cpu": "1500u", "pods": 110}) == {
        "cpu": 2,
        "memory": 1024,
        "pods": 110,
    }


def test_amounts_leave_out_what_is_no_quantity() -> None:
    assert amounts({"cpu": "1", "odd": "lots"}) == {"cpu": NANOS}
    assert amounts(None) == {}
