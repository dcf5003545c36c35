"""One change of one object, as the replay folds see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["JSON", "ObjectRevision", "Operation"]

JSON = Any
Operation = Literal["PUT", "DELETE"]


@dataclass(frozen=True, slots=True)
class ObjectRevision:
    """One row of ``objects`` with its value decoded, in (revision, sub) order.

    Attributes:
        object: Kubernetes JSON of the value; for a DELETE the state before it. None when
            the value is opaque or the state before is not in the record.
        previous: State of the same key before this revision; None when the key was
            created here, or when it is not known (then ``version`` is above 1).
        kind, namespace, name, uid: Read from the value; for a DELETE from the state before.
    """

    revision: int
    sub: int
    key: str
    operation: Operation
    version: int
    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    object: Mapping[str, JSON] | None
    previous: Mapping[str, JSON] | None
