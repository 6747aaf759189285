"""Splits a text into tokens, in linear time for any text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from app.kernel.format.errors import HeadwaterError
from app.kernel.sql.language import Language


class TokenKind(Enum):
    """The kind of a token."""

    WORD = auto()
    QUOTED = auto()
    STRING = auto()
    NUMBER = auto()
    SIGN = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """`text`: its value; a name or a string without its quotes. `word`: the text of a sign, or of a word in capitals;
    empty for any other token. `at`: the number of characters before it.
    """

    kind: TokenKind
    text: str
    word: str
    at: int


_BLANKS: Final = re.compile(r"(?:\s++|--[^\r\n]*+|/\*(?!\+).*?\*/)*+", re.DOTALL)
_HINT: Final = re.compile(r"/\*\+.*?\*/", re.DOTALL)
# A letter of a name: a letter for Python, and any character beyond ASCII, such as the marks of Indic scripts.
_TOKEN: Final = re.compile(
    r"(?P<string>'(?:[^']|'')*+')"
    r"|(?P<quoted>`(?:[^`]|``)++`|\"(?:[^\"]|\"\")++\")"
    r"|(?P<number>(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+)"
    r"|(?P<word>(?:[A-Za-z_]|[^\x00-\x7f\s])(?:\w|[^\x00-\x7f\s])*+)"
    r"|(?P<sign><=>|<>|!=|<=|>=|==|\|\||[-+*/%=<>(),.;\[\]])",
    re.DOTALL,
)
_LETTERS: Final = re.compile(r"\w++")
_OPENING: Final = {"'": "this string has no end", "`": "this name has no end", '"': "this name has no end"}
_TYPOGRAPHIC: Final = frozenset("“”„‘’‚«»")


def tokens(text: str, language: Language) -> list[Token]:
    """The tokens of a text, with an END after them. Raises the error of the language."""
    _check_text(text, language)
    token_list = []
    at = _blanks(text, 0, language)
    while at < len(text):
        token, end = _token(text, at, language)
        if token.kind is TokenKind.NUMBER and _ends_with_letters(text, end, language):
            expectation = "a number such as 5, -1.5 or 2e9"
            raise language.invalid(text, at, "a number cannot end with letters", expectation)
        token_list.append(token)
        at = _blanks(text, end, language)
    return [*token_list, Token(kind=TokenKind.END, text="", word="", at=len(text))]


def _ends_with_letters(text: str, end: int, language: Language) -> bool:
    """Whether a number is followed by letters other than a keyword, as in `1AND`."""
    letters = _LETTERS.match(text, end)
    return letters is not None and letters.group().upper() not in language.reserved_words


def _check_text(text: str, language: Language) -> None:
    size = len(text.encode("utf-8", "surrogatepass")) if language.counts_bytes else len(text)
    if size > language.length_max:
        unit = "bytes" if language.counts_bytes else "characters"
        limit = f"at most {language.length_max:,} {unit}"
        raise language.invalid(text, None, f"it has {size:,} {unit}", limit)
    try:
        text.encode()
    except UnicodeEncodeError as fault:
        reason = "a lone surrogate is not a character"
        raise language.invalid(text, fault.start, reason, "Unicode text") from None


def _blanks(text: str, at: int, language: Language) -> int:
    """The end of the blanks and comments that start at `at`."""
    while True:
        blanks = _BLANKS.match(text, at)
        assert blanks is not None  # it also matches the empty text
        hint = _HINT.match(text, blanks.end())
        if hint is None:
            return blanks.end()
        if "/*+" in language.refusals:
            raise language.invalid(text, hint.start(), language.refusals["/*+"], language.summary)
        at = hint.end()


def _token(text: str, at: int, language: Language) -> tuple[Token, int]:
    """The token that starts at `at`, and its end."""
    if text[at] in _TYPOGRAPHIC:
        reason = "a typographic quote encloses nothing"
        raise language.invalid(text, at, reason, "' around strings, \" around names")
    if text.startswith("/*", at):
        raise language.invalid(text, at, "this comment has no end", "`*/`")
    lexeme = _TOKEN.match(text, at)
    if lexeme is None:
        if text[at] in _OPENING:
            expectation = f"its closing {text[at]} (within, {text[at]} is written twice)"
            raise language.invalid(text, at, _OPENING[text[at]], expectation)
        raise _not_part(text, at, text[at], language)
    spelling, end = lexeme.group(), lexeme.end()
    match lexeme.lastgroup:
        case "string":
            return Token(TokenKind.STRING, spelling[1:-1].replace("''", "'"), "", at), end
        case "quoted":
            return _quoted(text, at, spelling, language), end
        case "number":
            return Token(TokenKind.NUMBER, spelling, "", at), end
        case "word":
            # A non-ASCII letter may become a keyword in capitals.
            return Token(
                TokenKind.WORD, spelling, spelling.upper() if spelling.isascii() else spelling, at
            ), end
    if spelling not in language.signs:
        raise _not_part(text, at, spelling, language)
    return Token(TokenKind.SIGN, spelling, spelling, at), end


def _quoted(text: str, at: int, spelling: str, language: Language) -> Token:
    quote = spelling[0]
    if quote not in language.name_quotes:
        quotes = " or ".join(sorted(language.name_quotes))
        reason = f"{quote} does not enclose names in {language.name}"
        raise language.invalid(text, at, reason, f"{quotes} around names, ' around strings")
    return Token(TokenKind.QUOTED, spelling[1:-1].replace(quote * 2, quote), "", at)


def _not_part(text: str, at: int, sign: str, language: Language) -> HeadwaterError:
    reason = language.refusals.get(sign, f"{sign!r} is not part of {language.name}")
    return language.invalid(text, at, reason, language.summary)
