"""The table of built-in kinds: which message a stored value is, and the fields of each message.

``kubernetes_fields.tsv`` says in its head what its columns mean. It is read once; a message's
lines are parsed when its first value arrives.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Final, Literal, cast

__all__ = ["FieldSpec", "Presence", "Shape", "kinds", "message_fields", "message_of"]

Presence = Literal["set", "nonzero", "null", "always"]
Shape = Literal["one", "list", "map"]

_FILE: Final = "kubernetes_fields.tsv"
_PLAIN: Final = frozenset(
    (
        "string bytes bool int32 int64 quantity int_or_string time micro_time duration json strings"
    ).split()
)


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field of one message.

    Attributes:
        json: Name in JSON; ``.`` puts the sub-message's fields into the parent.
        shape: A single value, a list of them, or a map from string to them.
        type: A plain type of the table's head, or the full name of a message.
        presence: When JSON shows it.
    """

    number: int
    json: str
    shape: Shape
    type: str
    presence: Presence

    @property
    def is_message(self) -> bool:
        """Tell whether the value is a message with fields of its own."""
        return self.type not in _PLAIN


@dataclass(frozen=True, slots=True)
class _Table:
    kinds: dict[tuple[str, str], str]
    messages: dict[str, tuple[str, ...]]


def kinds() -> tuple[tuple[str, str], ...]:
    """Return every known (apiVersion, kind), in the table's order."""
    return tuple(_table().kinds)


def message_of(api_version: str, kind: str) -> str | None:
    """Return the full name of a kind's message, or None for a kind the table lacks."""
    return _table().kinds.get((api_version, kind))


def message_fields(name: str) -> dict[int, FieldSpec]:
    """Return a message's fields by number."""
    package = name.rpartition(".")[0]
    return {f.number: f for f in (_field(line, package) for line in _table().messages[name])}


@lru_cache(maxsize=1)
def _table() -> _Table:
    text = files("tracekit.decode").joinpath(_FILE).read_text(encoding="utf-8")
    found: dict[tuple[str, str], str] = {}
    head, *blocks = text.split("\nmessage\t")
    for line in head.splitlines():
        if line.startswith("kind\t"):
            _, api_version, kind, message = line.split("\t")
            found[api_version, kind] = message
    messages = {name: tuple(rest) for name, *rest in (block.splitlines() for block in blocks)}
    return _Table(found, messages)


def _field(line: str, package: str) -> FieldSpec:
    number, json, written, presence = line.split("\t")
    shape: Shape = "list" if written[0] == "[" else "map" if written[0] == "{" else "one"
    type_ = written.strip("[]{}")
    if type_ not in _PLAIN and "." not in type_:
        type_ = f"{package}.{type_}"
    return FieldSpec(int(number), json, shape, type_, cast(Presence, presence))
