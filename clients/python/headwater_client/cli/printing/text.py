"""Texts on a terminal: no character of the data controls it."""

from __future__ import annotations

import re
from typing import Final

# C0, DEL and C1, and the marks that change the direction of what follows or are not shown.
_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]"
)
_UNSAFE_IN_LINES: Final = re.compile(_UNSAFE.pattern.replace("\x00-\x1f", "\x00-\x09\x0b-\x1f"))
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str, *, lines: bool = False) -> str:
    """The text with each character that controls a terminal as its escape; with `lines`, line ends are kept."""
    return (_UNSAFE_IN_LINES if lines else _UNSAFE).sub(_escape, text)


def visible_json(text: str) -> str:
    """JSON, or lines of JSON, with such characters as the escapes of JSON: the same value."""
    return _UNSAFE_IN_LINES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _escape(found: re.Match[str]) -> str:
    number = ord(found[0])
    return _SHORT.get(found[0], f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}")
