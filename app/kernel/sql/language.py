"""The differences between the languages that the lexer and the parser read: words, signs, limits and errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from app.kernel.format.errors import HeadwaterError

_NEAR_CHARACTERS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """A language of this room. All languages share one grammar of expressions; each accepts a part of it.

    `name`: the language in errors. `subject`: a text in it, in errors. `summary`: its elements. `error`: creates its
    error from message, place and expectation. `length_max`: of a text, in characters, or in bytes of UTF-8 if
    `counts_bytes`. `signs`: its operators and punctuation. `name_quotes`: the quotes around names. `reserved_words`:
    words that are names only in quotes. `literal_words`: words before the string of a typed literal. `is_operands`:
    what may follow IS and IS NOT. `refusals`: words and signs of other dialects, with the reason why they are not part
    of this one.
    """

    name: str
    subject: str
    summary: str
    error: Callable[[str, int | None, str], HeadwaterError]
    length_max: int
    counts_bytes: bool = False
    signs: frozenset[str]
    name_quotes: frozenset[str]
    reserved_words: frozenset[str]
    literal_words: frozenset[str]
    is_operands: tuple[str, ...]
    refusals: Mapping[str, str] = field(default_factory=dict)

    def invalid(self, text: str, at: int | None, reason: str, expectation: str) -> HeadwaterError:
        """The error for a text. `at` is the number of characters before the fault, None if it has no position."""
        near = "" if at is None else text[at : at + _NEAR_CHARACTERS]
        where = "" if at is None else f" at character {at + 1}"
        message = f"{self.subject} is not valid{where}{f', near {near!r}' if near else ''}: {reason}"
        return self.error(f"{message}; expected {expectation}", at, expectation)
