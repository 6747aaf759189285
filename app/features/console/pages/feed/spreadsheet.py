"""CSV for people, who open it in a spreadsheet: no cell is a formula there."""

from __future__ import annotations

import re
from typing import Final

# A field of CSV from its first character on. In quotes it may have commas and line ends.
_FIELD: Final = re.compile(r'(?:(?<=[,\n])|\A)(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<plain>[^",\r\n][^,\r\n]*))')
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,4})?")


def without_formulas(csv: str) -> str:
    """The same CSV with an apostrophe before each text that a spreadsheet would compute. Numbers stay as they are."""
    return _FIELD.sub(_as_text, csv)


def _as_text(match: re.Match[str]) -> str:
    text = match["plain"] if match["quoted"] is None else match["quoted"]
    if not text.startswith(_FORMULA) or _NUMBER.fullmatch(text):
        return match[0]
    return f"'{text}" if match["quoted"] is None else f'"\'{text}"'
