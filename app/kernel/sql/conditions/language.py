"""The words and signs of conditions, and their errors."""

from __future__ import annotations

from typing import Final

from app.kernel.format.errors import InvalidFilter
from app.kernel.sql.language import Language

TEXT_CHARACTERS_MAX: Final = 10_000
_NAME: Final = "the language of filters"


def _error(message: str, at: int | None, expectation: str) -> InvalidFilter:
    return InvalidFilter(message, position=at, expected=expectation)


CONDITIONS: Final = Language(
    name=_NAME,
    subject="the filter",
    summary="columns, literals, = != <> < <= > >=, IS NULL, IN, BETWEEN, LIKE, AND, OR, NOT and parentheses",
    error=_error,
    length_max=TEXT_CHARACTERS_MAX,
    signs=frozenset("<> != <= >= = < > - ( ) , .".split()),
    name_quotes=frozenset('"'),
    reserved_words=frozenset("AND BETWEEN ESCAPE FALSE IN IS LIKE NOT NULL OR TRUE".split()),
    literal_words=frozenset({"DATE", "TIMESTAMP", "X"}),
    is_operands=("NULL",),
    refusals={
        "==": f"'==' is not part of {_NAME}: use =",
        "&": f"'&' is not part of {_NAME}: use AND",
        "|": f"'|' is not part of {_NAME}: use OR",
        "||": f"'||' is not part of {_NAME}: use OR",
        "!": f"'!' is not part of {_NAME}: use NOT, or != between operands",
        ";": f"';' is not part of {_NAME}: a filter is one condition",
    },
)
