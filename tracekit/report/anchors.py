"""Places inside the page and links to them, from names that may be hostile."""

from __future__ import annotations

import re
from urllib.parse import quote

__all__ = ["link_to", "node_anchor", "pod_anchor", "visible"]

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff"
    "\ud800-\udfff\ufff9-\uffff]"
)


def visible(words: str) -> str:
    r"""Return a text with its unseen characters as codes: U+202E becomes ``\u202e``.

    Source: Unicode Standard Annex 9, explicit directional formatting characters.
    """
    return _UNSEEN.sub(lambda m: f"\\u{ord(m[0]):04x}", words)


def node_anchor(node: str) -> str:
    """Return the id of a node's row."""
    return f"node/{node}"


def pod_anchor(key: str) -> str:
    """Return the id of a pod's page."""
    return f"pod/{key}"


def link_to(anchor: str) -> str:
    """Return a link to an id as it is printed; its slash stays readable."""
    return f"#{quote(visible(anchor), safe='/')}"
