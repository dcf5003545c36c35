"""Who wrote a log and where: told by its callers, its first lines, its path or a prefix.

Source: klog v2 ``klog_file.go`` (file preamble and name); kubelet ``kuberuntime`` log paths
(``/var/log/pods/NS_POD_UID/CONTAINER/N.log``); static pods are called COMPONENT-NODE.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

__all__ = ["Origin", "component_of_caller", "origin_of_head", "origin_of_words"]

Origin = tuple[str | None, str | None]
"""Component and node; None where not told."""

_CREATED: Final = re.compile(rb"^Log file created at: (\d{4})/\d\d/\d\d ", re.MULTILINE)
_MACHINE: Final = re.compile(rb"^Running on machine: (\S+)", re.MULTILINE)
_KUBELET_NODE: Final = re.compile(
    rb'\] (?:"(?:Attempting to register|Successfully registered) node" node="'
    rb'|FLAG: --hostname-override="'
    rb"|(?:Attempting to register|Successfully registered) node )"
    rb'([^"\s]+)'
)
# Files that only one component has; the caller of a header names them.
_WRITERS: Final[dict[str, tuple[str, ...]]] = {
    "kube-scheduler": (
        "schedule_one.go", "scheduling_queue.go", "default_binder.go", "generic_scheduler.go",
    ),
    "kubelet": (
        "kubelet.go", "pod_workers.go", "kuberuntime_manager.go", "kubelet_node_status.go",
    ),
    "kube-controller-manager": (
        "controllermanager.go", "replica_set.go", "garbagecollector.go",
        "node_lifecycle_controller.go", "taint_eviction.go", "taint_controller.go",
    ),
    "kube-apiserver": ("apf_controller.go", "available_controller.go", "crd_finalizer.go"),
}  # fmt: skip
_COMPONENT_OF: Final = {file: name for name, files in _WRITERS.items() for file in files}
_UNITS: Final = {
    "microk8s.daemon-scheduler": "kube-scheduler",
    "microk8s.daemon-controller-manager": "kube-controller-manager",
    "microk8s.daemon-apiserver": "kube-apiserver",
    "microk8s.daemon-kubelet": "kubelet",
    "microk8s.daemon-proxy": "kube-proxy",
}
_STATIC: Final = "kube-scheduler|kube-controller-manager|kube-apiserver|etcd"
_NAMES: Final = rf"(?:{_STATIC}|kubelet|kube-proxy|cloud-controller-manager|cluster-autoscaler)"
_COMPONENT: Final = re.compile(rf"(?<![\w.-])({_NAMES})(?![\w])")
_STATIC_POD: Final = re.compile(
    rf"(?<![A-Za-z0-9.-])(?:{_STATIC})-([a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)"
)
# The hash and suffix of a Deployment's or DaemonSet's pod, which are no node name.
_GENERATED: Final = re.compile(r"(?:[0-9a-f]{8,10}-)?[bcdfghjklmnpqrstvwxz2456789]{5}")
_GLOG_FILE: Final = re.compile(
    rf"({_NAMES})\.(.+)\.[^.]+\.log\.(?:INFO|WARNING|ERROR|FATAL)\.\d{{8}}-\d{{6}}\.\d+"
)


def component_of_caller(caller: str) -> str | None:
    """Name the component by the file of a caller such as ``schedule_one.go:83``."""
    return _COMPONENT_OF.get(caller.rpartition("/")[2].partition(":")[0])


@lru_cache(maxsize=4096)
def origin_of_words(words: str) -> Origin:
    """Read component and node from a unit, a pod and container name, or a path."""
    if words in _UNITS:
        return _UNITS[words], None
    if (file := _GLOG_FILE.search(words)) is not None:
        return file[1], file[2]
    component = _COMPONENT.search(words)
    pod = _STATIC_POD.search(words.replace("_", " "))
    node = pod[1] if pod is not None and not _GENERATED.fullmatch(pod[1]) else None
    if node is not None and (node.endswith(".log") or node.split(".")[0].isdigit()):
        node = None
    return (component[1] if component else None), node


def origin_of_head(head: bytes, path: str) -> dict[str, str | int | None]:
    """Tell component and node as far as a log's beginning, or else its path, shows them.

    ``created_year`` is the year of a file's "Log file created at" line.
    """
    found = {
        component
        for file, component in _COMPONENT_OF.items()
        if b" " + file.encode() + b":" in head or b"/" + file.encode() + b":" in head
    }
    named, host = _origin_of_path(path)
    component = found.pop() if len(found) == 1 else named
    machine = _MACHINE.search(head)
    if machine is None and component == "kubelet":
        machine = _KUBELET_NODE.search(head)
    created = _CREATED.search(head)
    return {
        "component": component,
        "node": machine[1].decode("utf-8", "replace") if machine else host,
        "created_year": int(created[1]) if created else None,
    }


def _origin_of_path(path: str) -> Origin:
    """Read the container log's folder or the file's own name; other folders say nothing."""
    parts = path.replace("\\", "/").split("/")
    if "pods" in parts[:-3] and parts[-3].count("_") == 2:
        return origin_of_words(parts[-3])
    if _GLOG_FILE.search(parts[-1]):
        return origin_of_words(parts[-1])
    if parts[-1].count("_") == 2:
        return origin_of_words(parts[-1].partition("_")[0])
    return None, None
