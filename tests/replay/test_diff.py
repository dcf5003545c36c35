"""Patches: applying one to the old value gives the new one, whatever the two are."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracekit.replay.diff import (
    apply,
    changed_pointers,
    diff,
    split_heartbeats,
    without_managed_fields,
)

scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(0, 2) | st.sampled_from("ab/~")
names = st.sampled_from(["a", "b", "type", "name", "x/y", "m~n", ""])
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)
named = st.lists(
    st.fixed_dictionaries({"type": st.sampled_from("ABCDE"), "value": values}), max_size=5
)


def text(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


@given(values, values)
def test_patch_turns_old_into_new(old: Any, new: Any) -> None:
    assert text(apply(diff(old, new), old)) == text(new)


@given(named, named)
def test_patch_turns_a_list_of_named_items_into_another(old: Any, new: Any) -> None:
    assert text(apply(diff({"c": old}, {"c": new}), {"c": old})) == text({"c": new})


@given(values)
def test_equal_values_have_no_patch(value: Any) -> None:
    assert diff(value, orjson.loads(orjson.dumps(value))) == []


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        ({}, {"a": 1}, [{"op": "add", "path": "/a", "value": 1}]),
        ({"a": 1}, {}, [{"op": "remove", "path": "/a"}]),
        ({"a": 1}, {"a": 2}, [{"op": "replace", "path": "/a", "value": 2}]),
        ({"a": 1}, {"a": True}, [{"op": "replace", "path": "/a", "value": True}]),
        ({"a/b": {"c~d": 1}}, {"a/b": {}}, [{"op": "remove", "path": "/a~1b/c~0d"}]),
        ([1, 2], [1, 2, 3], [{"op": "add", "path": "/2", "value": 3}]),
        ([1, 2, 3], [1], [{"op": "remove", "path": "/2"}, {"op": "remove", "path": "/1"}]),
        ([1, 2], [3, 1, 2], [{"op": "add", "path": "/0", "value": 3}]),
        (
            [{"type": "A", "s": 1}, {"type": "B", "s": 1}],
            [{"type": "N"}, {"type": "A", "s": 1}, {"type": "B", "s": 2}],
            [
                {"op": "add", "path": "/0", "value": {"type": "N"}},
                {"op": "replace", "path": "/2/s", "value": 2},
            ],
        ),
        (1, {"a": 1}, [{"op": "replace", "path": "", "value": {"a": 1}}]),
    ],
)
def test_patch_is_small(old: Any, new: Any, patch: list[dict[str, Any]]) -> None:
    assert diff(old, new) == patch


def test_pointers_come_once_in_order() -> None:
    patch: list[dict[str, Any]] = [
        {"op": "remove", "path": "/b"},
        {"op": "add", "path": "/a", "value": 1},
    ]
    assert changed_pointers([*patch, {"op": "replace", "path": "/b", "value": 2}]) == ["/b", "/a"]


def test_heartbeats_are_set_apart() -> None:
    beats = ["/status/conditions/0/lastHeartbeatTime", "/spec/renewTime"]
    other = ["/status/conditions/0/status", "/spec/renewTimes", "/metadata/labels/lastProbeTime"]
    assert split_heartbeats([*beats, *other]) == (other, beats)


def test_managed_fields_are_left_out_without_touching_the_object() -> None:
    document = {"metadata": {"name": "a", "managedFields": [1]}, "spec": {}}
    assert without_managed_fields(document) == {"metadata": {"name": "a"}, "spec": {}}
    assert document["metadata"] == {"name": "a", "managedFields": [1]}
