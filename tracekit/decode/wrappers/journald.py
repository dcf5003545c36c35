"""journald's text outputs: time, host, unit and process id before each line.

``short`` and ``short-precise`` name the month in the reader's language and no year;
``short-iso``, ``short-iso-precise`` and ``short-full`` tell the year.

Source: systemd ``shared/logs-show.c``; month names of glibc locales (LC_TIME abmon).
"""

from __future__ import annotations

import re
from typing import Final

from tracekit.decode.log_origin import origin_of_words
from tracekit.decode.wrappers.peeled import YEARLESS, Peeled, to_us

__all__ = ["peel"]

_WRITER: Final = r"(\S+) ([A-Za-z_(][^\s\[\]]*?)(?:\[(\d+)\])?: ?(.*)"
_NUMBERED: Final = r"(\S+) ([A-Za-z_(][^\s\[\]]*?)(?:\[(\d+)\]|(?<=kernel)): ?(.*)"
_SHORT: Final = re.compile(
    r"(?:<\d{1,3}>)?(\d{1,2}\s?[月월]|[^\W\d_][^\s\d]{0,8}) {1,2}(\d{1,2})[日일]? "
    rf"(\d\d):(\d\d):(\d\d)(?:\.(\d{{1,6}}))? {_WRITER}",
    re.S,
)
_ISO: Final = re.compile(
    r"(?:\w{2,4} )?(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)"
    rf" ?(UTC|GMT|Z|[+-]\d\d:?\d\d|[A-Z]{{2,5}}) {_NUMBERED}",
    re.S,
)
_MONTHS: Final = {
    name: number
    for number, names in enumerate(
        (
            "jan janv jän ene gen янв sty ian led oca",
            "feb févr fév fev фев lut úno şub febr",
            "mar mars mär mrt mär März marz мар bře",
            "apr avr abr апр kwi dub nis",
            "may mai mei maj mag май мая maj kvě",
            "jun juin juni giu июн cze čer haz",
            "jul juil juli lug июл lip čec tem",
            "aug août ago авг sie srp ağu",
            "sep sept set сен wrz zář eyl",
            "oct oct out okt ott окт paź říj eki",
            "nov nov нояб ноя lis kas",
            "dec déc dic dez des дек gru pro ara",
        ),
        1,
    )
    for name in names.casefold().split()
}


def peel(line: str) -> Peeled | None:
    """Take a journald line apart; None when it is none."""
    match = _SHORT.match(line)
    if match is not None:
        month, day, hour, minute, second, fraction, *writer = match.groups()
        stamp = _stamp(month, int(day), (int(hour), int(minute), int(second)), fraction)
        return _peeled(writer, None, stamp)
    match = _ISO.match(line)
    if match is None:
        return None
    date, time, zone, *writer = match.groups()
    zone = "+00:00" if zone in {"UTC", "GMT", "Z"} else zone
    return _peeled(writer, to_us(f"{date}T{time}{zone}"), None)


def _peeled(writer: list[str | None], at_us: int | None, stamp: YEARLESS | None) -> Peeled:
    host, unit, process, text = writer
    component, _ = origin_of_words(str(unit))
    return Peeled(
        text=text or "",
        at_us=at_us,
        stamp=stamp,
        stream=f"{host} {unit} {process}",
        component=component,
        node=host,
        strong=True,
    )


def _stamp(
    month: str, day: int, clock: tuple[int, int, int], fraction: str | None
) -> YEARLESS | None:
    """Return the time of day and date; None where the month's name is not known."""
    name = month.rstrip("月월. ").casefold()
    number = int(name) if name.isdigit() else _MONTHS.get(name, _MONTHS.get(name[:3], 0))
    if not 1 <= number <= 12:
        return None
    seconds = (clock[0] * 60 + clock[1]) * 60 + clock[2]
    return number, day, seconds * 1_000_000 + int((fraction or "").ljust(6, "0"))
