"""Numbers as the page prints them: one rule a unit, zero printed, unknown a dash."""

from __future__ import annotations

__all__ = [
    "UNKNOWN",
    "amount",
    "cores",
    "count",
    "error_bound",
    "gibibytes",
    "percent",
    "plural",
    "ratio",
    "seconds",
]

UNKNOWN = "–"
_THIN = "\u2009"


def count(value: float | None) -> str:
    """Return a whole number with thin spaces between thousands."""
    return UNKNOWN if value is None else f"{round(value):,}".replace(",", _THIN)


def plural(value: int, one: str, many: str = "") -> str:
    """Return ``1 pod`` or ``2 pods``."""
    return f"{count(value)} {one if value == 1 else many or one + 's'}"


def percent(value: float | None, sign: bool = True) -> str:
    """Return a ratio in percent: 0.523 is ``52 %``; a trace of something is ``<1 %``."""
    if value is None:
        return UNKNOWN
    shown = "<1" if 0 < value < 0.005 else count(value * 100)
    return f"{shown}{_THIN}%" if sign else shown


def ratio(value: float | None) -> str:
    """Return a ratio with two decimals."""
    return UNKNOWN if value is None else f"{value:.2f}"


def cores(millicores: float | None) -> str:
    """Return millicores as cores with one decimal; below one core as ``250 m``."""
    if millicores is None:
        return UNKNOWN
    if 0 < millicores < 1000:
        return f"{millicores:.0f}{_THIN}m"
    return f"{millicores / 1000:,.1f}".replace(",", _THIN)


def gibibytes(size_bytes: float | None) -> str:
    """Return bytes as GiB with one decimal."""
    if size_bytes is None:
        return UNKNOWN
    return f"{size_bytes / 2**30:,.1f}".replace(",", _THIN)


def amount(resource: str, value: float | None, unit: bool = True) -> str:
    """Return an amount of a resource: cpu in cores, memory and storage in GiB."""
    if value is None:
        return UNKNOWN
    if resource == "cpu":
        shown = cores(value)
        return f"{shown} cores" if unit and not shown.endswith("m") else shown
    if resource == "memory" or resource.endswith("storage") or resource.startswith("hugepages"):
        return gibibytes(value) + (" GiB" if unit else "")
    return count(value)


def seconds(value: float | None) -> str:
    """Return a span: ``403 ms``, ``12.0 s``, ``2 min 43 s``, ``3 h 02 min``, ``2 d 3 h``."""
    if value is None:
        return UNKNOWN
    if value < 0:
        return f"−{seconds(-value)}"
    if value < 0.9995:
        return "0 s" if value == 0 else f"{value * 1000:.0f} ms" if value >= 0.001 else "<1 ms"
    if value < 59.95:
        return f"{value:.1f} s"
    return _long_span(round(value))


def _long_span(whole: int) -> str:
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    minutes = round(whole / 60)
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60:02d} min"
    return f"{minutes // 1440} d {minutes % 1440 // 60} h"


def error_bound(value: float | None) -> str:
    """Return ``± 20 ms``; a bound nobody knows is ``± ?``."""
    return "±\u2009?" if value is None else f"±\u2009{seconds(value)}"
