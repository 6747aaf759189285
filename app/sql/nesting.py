"""Limits the nesting of a text before a parser recurses into it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from app.sql.language import Language
from app.sql.lexer import Token

DEPTH_MAX: Final = 50
_CLOSING: Final = {"(": ")", "[": "]", "CASE": "END"}


def check_nesting(text: str, tokens: Sequence[Token], language: Language) -> None:
    """Rejects unmatched brackets, and more than DEPTH_MAX levels of brackets, CASE, NOT and signs.

    Raises the error of the language.
    """
    opened: list[tuple[Token, int]] = []  # with the level around each
    level = depth = 0
    previous = ""
    for token in tokens:
        word = "" if previous == "." else token.word  # after a dot, each word is a name
        previous = token.word
        if word in {"NOT", "-", "+"}:
            depth += 1
        elif word in {"(", "["} or (word == "CASE" and word in language.reserved):
            opened.append((token, level))
            level = depth = depth + 1
        elif word in {")", "]"} or (word == "END" and opened and opened[-1][0].word == "CASE"):
            _check_partner(text, token, opened, language)
            level = depth = opened.pop()[1]
        else:
            depth = level
        if depth > DEPTH_MAX:
            raise language.invalid(text, token.at, "it nests too deeply", f"at most {DEPTH_MAX} levels")
    for token, _ in opened:
        if token.word != "CASE":  # the parser reports a missing END better
            reason = f"this {token.word!r} is not closed"
            raise language.invalid(text, token.at, reason, f"{_CLOSING[token.word]!r} after it")


def _check_partner(text: str, token: Token, opened: Sequence[tuple[Token, int]], language: Language) -> None:
    if not opened:
        reason = f"this {token.word!r} has no opening bracket"
        raise language.invalid(text, token.at, reason, "as many closing brackets as opening ones")
    expected = _CLOSING[opened[-1][0].word]
    if token.word != expected:
        raise language.invalid(text, token.at, f"unexpected {token.word!r}", repr(expected))
