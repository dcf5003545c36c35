"""Kubernetes quantities, exactly: text to whole millicores, bytes or counts.

Amounts are held as integers of 10⁻⁹, the finest step a Kubernetes quantity has, so sums
are exact and only the last step to a whole unit rounds (up, as the scheduler does).

Source: apimachinery pkg/api/resource/quantity.go (ParseQuantity, MilliValue, Value).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

__all__ = ["NANOS", "amounts", "bounded", "parse_nanos", "whole", "whole_units"]

NANOS = 1_000_000_000
_NANOS_PER_MILLICORE = 1_000_000
_LONGEST = 300  # characters; no quantity that means anything is longer
_MOST = 2**63 - 1
_LARGEST = (2**63 - 1) * NANOS

_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_QUANTITY = re.compile(
    r"([+-]?)(\d*)(?:\.(\d*))?(?:(Ki|Mi|Gi|Ti|Pi|Ei)|[eE]([+-]?\d{1,9})|([numkMGTPE]?))"
)


def _ceil_scaled(digits: int, twos: int, tens: int) -> int:
    """Give digits · 2^twos · 10^tens, rounded away from zero."""
    value = digits << twos
    scale: int = 10 ** min(abs(tens), 400)
    return value * scale if tens >= 0 else -(-value // scale)


@lru_cache(maxsize=65536)
def parse_nanos(text: str) -> int | None:
    """Read a quantity as an exact number of 10⁻⁹ units.

    Args:
        text: A quantity such as ``100m``, ``1.5Gi``, ``1e3`` or ``-5``.

    Returns:
        The amount in 10⁻⁹ units, finer fractions rounded away from zero and values
        beyond 2⁶³-1 cut off there; None when the text is no quantity.

    Source: apimachinery pkg/api/resource/quantity.go ParseQuantity.
    """
    match = _QUANTITY.fullmatch(text.strip()) if len(text) <= _LONGEST else None
    if match is None:
        return None
    sign, left, right, binary, exponent, suffix = match.groups()
    fraction = right or ""
    if not left and not fraction:
        return None
    tens = int(exponent) if exponent else _DECIMAL[suffix or ""]
    twos = _BINARY[binary] if binary else 0
    nanos = _ceil_scaled(int(left + fraction), twos, tens + 9 - len(fraction))
    return (-1 if sign == "-" else 1) * min(nanos, _LARGEST)


def whole(resource: str, nanos: int) -> int:
    """Round an amount up to the whole unit of its resource.

    Args:
        resource: Resource name; ``cpu`` counts in millicores, all else in bytes or counts.
        nanos: Amount in 10⁻⁹ units.

    Returns:
        Millicores, bytes or counts.

    Source: scheduler framework Resource.Add: MilliValue for cpu, Value for the others.
    """
    return bounded(-(-nanos // (_NANOS_PER_MILLICORE if resource == "cpu" else NANOS)))


def bounded(amount: int) -> int:
    """Cut an amount off at what 64 bits hold, as the API server's own int64 does."""
    return max(-_MOST, min(amount, _MOST))


def amounts(resources: Mapping[str, Any] | None) -> dict[str, int]:
    """Read a resource list as 10⁻⁹ units, leaving out what is no quantity."""
    read = ((name, parse_nanos(str(text))) for name, text in (resources or {}).items())
    return {name: nanos for name, nanos in read if nanos is not None}


def whole_units(resources: Mapping[str, Any] | None) -> dict[str, int]:
    """Read a resource list as millicores (cpu), bytes or counts, sorted by name.

    Args:
        resources: ``status.allocatable`` or a ``requests`` map; None reads as empty.

    Returns:
        Whole units by resource name.
    """
    return {name: whole(name, nanos) for name, nanos in sorted(amounts(resources).items())}
