"""``kubectl logs --timestamps`` and ``docker logs -t``: RFC 3339, a space, the line.

Source: kubelet ``kuberuntime/logs/logs.go`` (RFC3339NanoLenient); trailing zeros are trimmed.
"""

from __future__ import annotations

import re
from typing import Final

from tracekit.decode.wrappers.peeled import RFC3339, Peeled, to_us

__all__ = ["peel"]

_LINE: Final = re.compile(rf"({RFC3339})(?: (.*)|$)", re.S)


def peel(line: str) -> Peeled | None:
    """Take the time off a line; None when it has none."""
    match = _LINE.match(line) if line[:1].isdigit() else None
    if match is None or (at_us := to_us(match[1])) is None:
        return None
    return Peeled(text=match[2] or "", at_us=at_us, strong=True)
