"""CRI container logs: ``RFC3339Nano stream TAG text``; a ``P`` line goes on in its stream.

Source: kubelet ``kuberuntime/logs/logs.go`` parseCRILog; containerd writes at most 16 KiB a
line, conmon 8 KiB. Before 1.10 there was no tag.
"""

from __future__ import annotations

import re
from typing import Final

from tracekit.decode.wrappers.peeled import RFC3339, Peeled, to_us

__all__ = ["peel"]

_LINE: Final = re.compile(
    rf"({RFC3339}) (stdout|stderr)(?: ([PF](?::[^ ]*)?)(?= |$))?(?: |$)(.*)", re.DOTALL
)


def peel(line: str) -> Peeled | None:
    """Take a CRI line apart; None when it is none."""
    match = _LINE.match(line) if line[:1].isdigit() else None
    if match is None:
        return None
    partial = match[3] is not None and match[3].startswith("P")
    return Peeled(
        text=match[4], at_us=to_us(match[1]), stream=match[2], partial=partial, strong=True
    )
