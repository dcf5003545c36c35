"""Geometry, with paths worked out by hand."""

from __future__ import annotations

import pytest

from tracekit.report.legends import apart
from tracekit.report.marks import (
    band_marks,
    cut_out,
    line_path,
    merge_runs,
    nice_ceiling,
    step_area,
    y_ticks,
)
from tracekit.report.page import Line, Mark


def test_equal_neighbours_are_one_run() -> None:
    assert merge_runs([(0, 5, "a"), (5, 9, "a"), (9, 12, "b")]) == [(0, 9, "a"), (9, 12, "b")]


def test_a_later_run_covers_an_earlier_one() -> None:
    assert merge_runs([(0, 10, "a"), (4, 8, "b")]) == [(0, 4, "a"), (4, 8, "b")]


def test_nothing_is_drawn_across_a_hole() -> None:
    assert cut_out([(0, 10, "a"), (20, 30, "a")], [(4, 22)]) == [(0, 4, "a"), (22, 30, "a")]


def test_bands_stand_on_the_base_line() -> None:
    assert band_marks([(0, 10, "a"), (20, 25, "a"), (10, 20, "b")], 9, {"b": 3}) == (
        Mark("a", "M0 9v-9h10v9zM20 9v-9h5v9z"),
        Mark("b", "M10 9v-3h10v3z"),
    )


def test_an_area_is_a_step_and_leaves_out_holes() -> None:
    xs, low, high = [0, 10, 20, 30], [100.0, 100.0, 100.0], [80.0, 60.0, 60.0]
    assert step_area(xs, low, high, []) == "M0 100V80H10V60H20V60H30V100H20V100H10V100H0z"
    assert step_area(xs, low, high, [(12, 14)]) == "M0 100V80H10V100H0zM20 100V60H30V100H20z"


def test_an_area_without_height_is_not_drawn() -> None:
    assert step_area([0, 10], [50.0], [50.0], []) == ""


def test_a_line_breaks_where_nothing_is_known() -> None:
    points = [(0, 10, 5.0), (10, 20, 7.5), (20, 30, None), (30, 40, 1.0)]
    assert line_path(points, []) == "M0 5H10V7.5H20M30 1H40"


@pytest.mark.parametrize(
    ("value", "ceiling"), [(0, 1), (0.9, 1), (1.5, 2), (3, 4), (478, 500), (80, 80), (0.03, 0.04)]
)
def test_an_axis_ends_on_a_round_number(value: float, ceiling: float) -> None:
    assert nice_ceiling(value) == pytest.approx(ceiling)


def test_pods_are_counted_in_whole_ticks() -> None:
    assert [t.label for t in y_ticks(2, whole=True)] == ["0", "1", "2"]
    assert [t.top for t in y_ticks(400, whole=True)] == [100, 75, 50, 25, 0]


def test_direct_labels_make_room_for_each_other() -> None:
    lines = [
        Line("a", "", "5", "low", 90),
        Line("b", "", "", "none", 88),
        Line("c", "", "6", "high", 87),
    ]
    assert [x.top for x in apart(lines, 8)] == [90, 88, 82]
