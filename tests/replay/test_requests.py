"""Requests by the scheduler's rule; values worked out by hand from resource/helpers.go."""

from __future__ import annotations

from typing import Any

from tests.replay.objects import condition, pod
from tracekit.replay.requests import effective_requests

JSON = dict[str, Any]


def container(name: str, *, sidecar: bool = False, **requests: str) -> JSON:
    plain: JSON = {"name": name, "resources": {"requests": requests}}
    return {**plain, "restartPolicy": "Always"} if sidecar else plain


def test_containers_add_up() -> None:
    told = pod(spec={"containers": [container("a", cpu="100m"), container("b", cpu="0.2")]})
    assert effective_requests(told) == {"cpu": 300}


def test_sums_are_rounded_once() -> None:
    told = pod(spec={"containers": [container("a", cpu="500u"), container("b", cpu="500u")]})
    assert effective_requests(told) == {"cpu": 1}


def test_an_init_container_counts_with_the_sidecars_before_it() -> None:
    told = pod(
        spec={
            "containers": [container("app", cpu="100m")],
            "initContainers": [
                container("first", cpu="650m"),
                container("side", sidecar=True, cpu="200m"),
                container("second", cpu="500m"),
            ],
        }
    )
    # app + side = 300; first alone 650; second with side 700
    assert effective_requests(told) == {"cpu": 700}


def test_overhead_is_added_to_everything() -> None:
    told = pod(spec={"containers": [container("a", cpu="1")], "overhead": {"cpu": "250m"}})
    assert effective_requests(told) == {"cpu": 1250}


def test_pod_level_requests_take_the_place_of_the_containers() -> None:
    told = pod(
        spec={
            "containers": [container("a", cpu="1", memory="1Gi", gpu="1")],
            "resources": {"requests": {"cpu": "2", "gpu": "5", "hugepages-2Mi": "4Mi"}},
            "overhead": {"cpu": "1"},
        }
    )
    wanted = {"cpu": 3000, "gpu": 1, "hugepages-2Mi": 2**22, "memory": 2**30}
    assert effective_requests(told) == wanted


def resized(*conditions: JSON) -> JSON:
    status = {
        "name": "a",
        "resources": {"requests": {"cpu": "2"}},
        "allocatedResources": {"cpu": "3"},
    }
    return pod(
        spec={"containers": [container("a", cpu="4")]},
        status={"containerStatuses": [status], "conditions": list(conditions)},
    )


def test_while_a_resize_is_under_way_the_largest_counts() -> None:
    assert effective_requests(resized()) == {"cpu": 4000}


def test_an_infeasible_resize_does_not_count() -> None:
    pending = condition("PodResizePending", "True", "Infeasible")
    assert effective_requests(resized(pending)) == {"cpu": 3000}
