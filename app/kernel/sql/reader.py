"""A position among the tokens of a text, whose nesting is limited before a parser recurses into it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NoReturn, TypeVar

from app.kernel.format.errors import HeadwaterError
from app.kernel.sql.language import Language
from app.kernel.sql.lexer import Token, TokenKind, tokens

QUOTES: Final = "double quotes enclose names, single quotes strings"
DEPTH_MAX: Final = 50
_SHOWN_CHARACTERS: Final = 40
_CLOSING: Final = {"(": ")", "[": "]", "CASE": "END"}
_T = TypeVar("_T")


class TokenReader:
    """Reads tokens one after the other. Raises the error of the language throughout."""

    def __init__(self, text: str, language: Language) -> None:
        self.text = text
        self.language = language
        self.tokens = tokens(text, language)
        _check_nesting(text, self.tokens, language)
        self.position = 0

    @property
    def here(self) -> Token:
        return self.tokens[self.position]

    def ahead(self, count: int = 1) -> Token:
        return self.tokens[min(self.position + count, len(self.tokens) - 1)]

    def advance(self) -> Token:
        token = self.here
        self.position = min(self.position + 1, len(self.tokens) - 1)
        return token

    def take(self, *words: str) -> bool:
        """Advances over these words or signs if all of them follow."""
        if any(self.ahead(number).word != word for number, word in enumerate(words)):
            return False
        self.position += len(words)
        return True

    def expect(self, *words: str) -> None:
        if not self.take(*words):
            self.unexpected(" ".join(words))

    def end(self, expectation: str) -> None:
        if self.here.kind is not TokenKind.END:
            self.unexpected(expectation)

    def unexpected(self, expectation: str) -> NoReturn:
        token = self.here
        if token.kind is TokenKind.END:
            raise self.invalid(token.at, "it ends too early", expectation)
        reason = f"unexpected {token.text[:_SHOWN_CHARACTERS]!r}"
        if token.kind is TokenKind.QUOTED and self.text[token.at] == '"':
            reason += f" ({QUOTES})"
        raise self.invalid(token.at, self.language.refusals.get(token.word, reason), expectation)

    def invalid(self, at: int | None, reason: str, expectation: str) -> HeadwaterError:
        return self.language.invalid(self.text, at, reason, expectation)

    def is_reserved(self, *words: str) -> bool:
        """Whether the next token is one of these words, and the language reserves it."""
        return self.here.word in words and self.here.word in self.language.reserved_words

    def is_name(self, token: Token) -> bool:
        return token.kind is TokenKind.QUOTED or (
            token.kind is TokenKind.WORD and token.word not in self.language.reserved_words
        )

    def name(self, expectation: str) -> str:
        if not self.is_name(self.here):
            self.unexpected(expectation)
        return self.advance().text

    def listed(self, part: Callable[[], _T]) -> tuple[_T, ...]:
        parts = [part()]
        while self.take(","):
            parts.append(part())
        return tuple(parts)


def _check_nesting(text: str, tokens: Sequence[Token], language: Language) -> None:
    """Rejects unmatched brackets, and more than DEPTH_MAX levels of brackets, CASE, NOT and signs.

    Raises the error of the language.
    """
    openings: list[tuple[Token, int]] = []  # with the level around each
    level = depth = 0
    previous = ""
    for token in tokens:
        word = "" if previous == "." else token.word  # after a dot, each word is a name
        previous = token.word
        if word in {"NOT", "-", "+"}:
            depth += 1
        elif word in {"(", "["} or (word == "CASE" and word in language.reserved_words):
            openings.append((token, level))
            level = depth = depth + 1
        elif word in {")", "]"} or (word == "END" and openings and openings[-1][0].word == "CASE"):
            _check_partner(text, token, openings, language)
            level = depth = openings.pop()[1]
        else:
            depth = level
        if depth > DEPTH_MAX:
            raise language.invalid(text, token.at, "it nests too deeply", f"at most {DEPTH_MAX} levels")
    for token, _ in openings:
        if token.word != "CASE":  # the parser reports a missing END better
            reason = f"this {token.word!r} is not closed"
            raise language.invalid(text, token.at, reason, f"{_CLOSING[token.word]!r} after it")


def _check_partner(
    text: str, token: Token, openings: Sequence[tuple[Token, int]], language: Language
) -> None:
    if not openings:
        reason = f"this {token.word!r} has no opening bracket"
        raise language.invalid(text, token.at, reason, "as many closing brackets as opening ones")
    closing = _CLOSING[openings[-1][0].word]
    if token.word != closing:
        raise language.invalid(text, token.at, f"unexpected {token.word!r}", repr(closing))
