"""The key=value pairs of one structured klog record, read from its raw text.

Nothing is lost and nothing raises: what cannot be read stands raw under the key ``""``.

Source: klog v2 ``klog.go`` printS and ``internal/serialize/keyvalues.go``; Go ``strconv.Quote``.
"""

from __future__ import annotations

import json
import re
from typing import Final

from tracekit.decode.json_fields import parse_json_fields
from tracekit.model.objects import JSON

__all__ = ["ends_open", "has_open_quote", "is_cut_header", "parse_fields", "unquote"]

# The header up to the message's opening quote; NULs, a byte order mark and colours may stand
# before it (copytruncate holes, editors, terminals).
_HEAD: Final = re.compile(
    r'(?:[\x00\ufeff]|\x1b\[[0-9;]*m)*[IWEF]\d{4} [^\]\n]*\] "((?:[^"\\\n]++|\\.)*+)("?)'
)
# One pair. The key is not escaped and may hold spaces ("unschedulable plugins"). The two
# commonest values are read on the spot, all others by ``_read_value``.
_END: Final = r"(?![^ \r\n])"
_PAIR: Final = re.compile(
    r' +([^ ="\r\n][^="\r\n]*)='
    rf'(?:"([^"\\\n]*)"{_END}|(-?(?:0|[1-9][0-9]{{0,17}})){_END})?'
)
_QUOTED_SO_FAR: Final = re.compile(r'"(?:[^"\\\n]++|\\.)*+("?)')
_QUOTED: Final = re.compile(r'"((?:[^"\\\n]++|\\.)*+)"')
_TOKEN: Final = re.compile(r'"(?:[^"\\\n]++|\\.)*+"|[^\s"\[\]{}()]++|[\s\S]')
_NEXT_PAIR: Final = re.compile(r" [A-Za-z_][\w.\-/]*=")
# A float as Go writes it: shortest form, so "1.10" is a text that looks like a number.
_FLOAT: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d*[1-9])?(?:e[+-]?\d+)?")
_WORDS: Final[dict[str, JSON]] = {"true": True, "false": False, "null": None}
_JSON: Final = json.JSONDecoder()

_CLOSED: Final = {"", "]", "}", ")", ">"}
_MOULD: Final = "I0000 00:00:00.000000 "
_CUT_CALLER: Final = re.compile(r" *\d* ?[^\s\]]*")  # thread and caller up to the ]
_HEADER_BEGUN: Final = 5  # a line that ends behind Lmmdd

_ESCAPE: Final = re.compile(
    r"(?:\\x[0-9a-fA-F]{2}|\\[0-3][0-7]{2})+|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|\\."
)
_BYTE: Final = re.compile(r"\\(?:x([0-9a-fA-F]{2})|([0-7]{3}))")
_SIMPLE: Final = {
    '"': '"', "\\": "\\", "'": "'", "n": "\n", "t": "\t", "r": "\r",
    "a": "\a", "b": "\b", "f": "\f", "v": "\v",
}  # fmt: skip


def parse_fields(raw: str) -> dict[str, JSON]:
    """Read all key=value pairs of a record; a record that is not structured has none.

    Go-quoted strings and ``=<`` blocks become text, JSON values are decoded, numbers and
    booleans typed, Go ``%+v`` values (``map[a:1]``, ``&{ID:x}``, ``<nil>``) stay raw text.
    A key that comes twice keeps its first place and its last value. A record in JSON has the
    pairs that its text form would have.

    Args:
        raw: The whole record, header and continuation lines included.

    Returns:
        Values by key in the order of the record; text that is no pair stands under ``""``.

    Source: klog ``serialize.FormatKVs``; value rendering by version in facts/formats.md 1.3.
    """
    if raw.startswith("{"):
        return parse_json_fields(raw)
    head = _HEAD.match(raw)
    if head is None:
        return {}
    fields: dict[str, JSON] = {}
    if not head[2]:
        return {"": raw[head.start(1) - 1 :]}
    place, loose, match = head.end(), "", _PAIR.match
    while (pair := match(raw, place)) is not None:
        place = pair.end()
        key = pair[1]
        if " " in key:
            key = _settle_key(fields, key, loose)
        loose = ""
        kind = pair.lastindex
        if kind == 2:
            fields[key] = pair[2]
        elif kind == 3:
            fields[key] = int(pair[3])
        else:
            start = place
            value, place = _read_value(raw, start)
            fields[key] = value
            if isinstance(value, str) and value == raw[start:place] and value[-1:] not in _CLOSED:
                loose = key
    return _keep_rest(fields, raw[place:], loose)


def unquote(text: str) -> str:
    r"""Undo Go quoting of the text between two quotes.

    Bytes that are no UTF-8 (``\xff``) stay written as escapes, unknown escapes as they are.

    Source: Go ``strconv.Unquote``.
    """
    return _ESCAPE.sub(_unescape, text) if "\\" in text else text


def ends_open(raw: str, *, terminated: bool) -> bool:
    """Tell whether a file's last record was cut: an open block, quote or header at its end.

    Args:
        raw: The record without its last newline.
        terminated: The file ends with a newline.
    """
    raw = raw.replace("\r\n", "\n").removesuffix("\r")
    opened = len(raw) if raw.endswith("=<") else raw.rfind("=<\n")
    last = raw[raw.rfind("\n") + 1 :]
    head = _HEAD.match(raw)
    if head is not None and opened > raw.rfind("\n >"):
        return True
    if is_cut_header(last) and (not terminated or len(last) >= _HEADER_BEGUN):
        return True
    if terminated:
        return has_open_quote(raw)
    on_pair_line = last.startswith(" >") or len(last) == len(raw)
    return head is not None and on_pair_line and _leaves_open(last)


def has_open_quote(raw: str) -> bool:
    """Tell whether a structured record's only line ends inside a Go-quoted text.

    klog quotes whatever it prints, so a quote without its end is a cut.
    """
    head = _HEAD.match(raw)
    if head is None or "\n" in raw:
        return False
    return not head[2] or _leaves_open(raw[head.end() :])


def _leaves_open(text: str) -> bool:
    """Tell whether a quote in the text has no end; in one pass, however many there are."""
    return any(not match[1] for match in _QUOTED_SO_FAR.finditer(text))


def is_cut_header(line: str) -> bool:
    """Tell a last line that stops inside its header, before the ``]``."""
    mould = "I" + re.sub(r"\d", "0", line[1 : len(_MOULD)])
    begun = line[:1] in {"I", "W", "E", "F"} and _MOULD.startswith(mould)
    return begun and _CUT_CALLER.fullmatch(line, min(len(line), len(_MOULD))) is not None


def _settle_key(fields: dict[str, JSON], key: str, loose: str) -> str:
    """Strip a key; behind a bare word, all its words but the last belong to that value.

    klog up to 2.90 prints named strings unquoted, so a space there is part of the value.
    """
    key = key.rstrip()
    if loose and " " in key:
        words, _, key = key.rpartition(" ")
        fields[loose] = f"{fields[loose]} {words}"
    return key


def _keep_rest(fields: dict[str, JSON], rest: str, loose: str) -> dict[str, JSON]:
    if not rest or not rest.strip():
        return fields
    line, newline, more = rest.partition("\n")
    if loose and line.strip() and "=" not in line:
        fields[loose] = f"{fields[loose]}{line.rstrip()}"
        rest = more if newline else ""
    if rest.strip():
        fields[""] = rest.strip(" \r\n")
    return fields


def _read_value(raw: str, place: int) -> tuple[JSON, int]:
    """Read the value at ``place``; return it and the place behind it."""
    first = raw[place : place + 1]
    if first == '"' and (quoted := _QUOTED.match(raw, place)) is not None:
        return unquote(quoted[1]), quoted.end()
    if first == "<" and raw[place + 1 : place + 3].lstrip("\r")[:1] in {"\n", ""}:
        return _read_block(raw, place)
    if first in {"{", "["}:
        try:
            value, end = _JSON.raw_decode(raw, place)
        except (ValueError, RecursionError):
            pass  # Go's %+v, or nested too deep: kept as text below
        else:
            if raw[end : end + 1] in {"", " ", "\n", "\r"}:
                return value, end
    end = _end_of_bare(raw, place)
    return _typed(raw[place:end]), end


def _read_block(raw: str, place: int) -> tuple[str, int]:
    start = raw.find("\n", place) + 1 or len(raw)
    stop = raw.find("\n >", place)
    end = stop + 3 if stop >= 0 else len(raw)
    text = raw[start : max(stop, start)] if stop >= 0 else raw[start:]
    if "\r\n" in raw[place:start]:
        text = text.replace("\r\n", "\n").removesuffix("\r")
    return text.removeprefix("\t").replace("\n\t", "\n"), end


def _end_of_bare(raw: str, place: int) -> int:
    """Return where an unquoted value ends: at the first space outside all brackets."""
    depth, at = 0, place
    while (token := _TOKEN.match(raw, at)) is not None:
        text = token[0]
        if text == "\n" or (text == " " and not depth):
            break
        depth += (text in {"[", "{", "("}) - (text in {"]", "}", ")"})
        at = token.end()
    if depth <= 0:
        return at - (raw[at - 1 : at] == "\r")
    # Brackets that never close: the value goes as far as the next thing that looks like a pair.
    following = _NEXT_PAIR.search(raw, place, at)
    return following.start() if following else at


def _typed(text: str) -> JSON:
    if text in _WORDS:
        return _WORDS[text]
    if _FLOAT.fullmatch(text) is None:
        return text
    if text.lstrip("-").isdigit():
        number = int(text) if len(text) <= 20 else 0
        return number if -(2**63) <= number < 2**64 and len(text) <= 20 else text
    return float(text)


def _unescape(match: re.Match[str]) -> str:
    text = match[0]
    kind = text[1]
    if kind in _SIMPLE:
        return _SIMPLE[kind]
    if kind in "uU" and len(text) > 2:
        code = int(text[2:], 16)
        return chr(code) if code < 0xD800 or 0xDFFF < code < 0x110000 else "\ufffd"
    numbers = [int(h, 16) if h else int(o, 8) for h, o in _BYTE.findall(text)]
    return bytes(numbers).decode("utf-8", "backslashreplace") if numbers else text
