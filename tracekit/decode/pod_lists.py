"""The pods that a kubelet's SyncLoop record names, in the five ways it has written them.

Source: kubelet ``kubelet.go`` syncLoopIteration of 1.7 to 1.36, ``util/format/pod.go``;
facts/formats.md 1.3; sample 81.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["named_pods"]

_LIST: Final = re.compile(r"\bpods=(\[[^\n]*|\"[^\n]*)|SyncLoop \([^)]*\): (\"[^\n]*)")
_ONE: Final = re.compile(r'\bpod="([a-z0-9-]+/[a-z0-9.-]+)"')
_OF_FORMAT: Final = re.compile(r"([a-z0-9][a-z0-9.-]*)_([a-z0-9][a-z0-9-]*)\([0-9a-f-]+\)")
_QUOTED: Final = re.compile(r"\"([a-z0-9-]+/[a-z0-9.-]+)\"")
_BARE: Final = re.compile(r"(?<=[\[ ])([a-z0-9-]+/[a-z0-9.-]+)(?=[\] ])")


def named_pods(raw: str) -> list[str]:
    """List the pods of a SyncLoop record as ``namespace/name``; a name cut short is left out.

    Up to 1.22 ``name_namespace(uid)``, from 1.23 ``[ns/name ns/name]``, from 1.28 JSON.
    """
    found = _LIST.search(raw)
    if found is None:
        return _ONE.findall(raw)
    words = found[1] or found[2]
    if old := _OF_FORMAT.findall(words):
        return [f"{namespace}/{name}" for name, namespace in old]
    return _QUOTED.findall(words) or _BARE.findall(words)
