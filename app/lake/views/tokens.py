"""The text of a view cut into tokens. Linear in its length, whatever it says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from app.format.errors import InvalidView

TEXT_BYTES_MAX: Final = 64 * 1024
_NEAR_CHARACTERS: Final = 20


class Kind(Enum):
    """What a token is."""

    WORD = auto()
    QUOTED = auto()
    STRING = auto()
    NUMBER = auto()
    SIGN = auto()
    END = auto()


@dataclass(frozen=True, slots=True)
class Token:
    """`text`: what it stands for: a name without its quotes, a string without its quotes. `word`: in capitals if it
    is a word, else the text of a sign, else empty. `at`: the number of characters before it.
    """

    kind: Kind
    text: str
    word: str
    at: int


_BLANKS: Final = re.compile(r"(?:\s++|--[^\r\n]*+|/\*(?!\+).*?\*/)*+", re.DOTALL)
_TOKEN: Final = re.compile(
    r"(?P<string>'(?:[^']|'')*+')"
    r"|(?P<quoted>`(?:[^`]|``)++`|\"(?:[^\"]|\"\")++\")"
    r"|(?P<number>(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+)"
    r"|(?P<word>[^\W\d]\w*+)"
    r"|(?P<sign><=>|<>|!=|<=|>=|==|\|\||[-+*/%=<>(),.;\[\]])",
    re.DOTALL,
)
_LETTER: Final = re.compile(r"\w")
_UNENDED: Final = {
    "'": "this string has no end",
    "`": "this name has no end",
    '"': "this name has no end",
}


def tokens(text: str) -> list[Token]:
    """The tokens of a text, an END behind them. Raises InvalidView."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > TEXT_BYTES_MAX:
        raise invalid(text, None, f"it has {size:,} bytes", f"at most {TEXT_BYTES_MAX:,} bytes of SQL")
    try:
        text.encode()
    except UnicodeEncodeError as fault:
        raise invalid(text, fault.start, "a lone surrogate is no character", "Unicode text") from None
    found = []
    at = _blanks(text, 0)
    while at < len(text):
        token, end = _token(text, at)
        found.append(token)
        if token.kind is Kind.NUMBER and _LETTER.match(text, end):
            raise invalid(text, at, "a number cannot end with letters", "a number, or CAST(… AS type)")
        at = _blanks(text, end)
    return [*found, Token(kind=Kind.END, text="", word="", at=len(text))]


def invalid(text: str, at: int | None, reason: str, expected: str) -> InvalidView:
    """The error to raise. `at` is the number of characters before the fault."""
    near = "" if at is None else text[at : at + _NEAR_CHARACTERS]
    where = "" if at is None else f" at character {at + 1}"
    return InvalidView(
        f"the SQL of the view is not valid{where}{f', near {near!r}' if near else ''}: {reason}; expected {expected}",
        pointer="/sql",
        position=at,
        expected=expected,
    )


def _blanks(text: str, at: int) -> int:
    blanks = _BLANKS.match(text, at)
    assert blanks is not None  # it matches nothing at all, too
    return blanks.end()


def _token(text: str, at: int) -> tuple[Token, int]:
    """The token that begins there, and where it ends."""
    if text.startswith("/*+", at):
        raise invalid(text, at, "hints are not part of the SQL of views", "SQL without hints")
    if text.startswith("/*", at):
        raise invalid(text, at, "this comment has no end", "`*/`")
    found = _TOKEN.match(text, at)
    if found is None:
        reason = _UNENDED.get(text[at], "this is not part of the SQL of views")
        raise invalid(
            text, at, reason, "names in `backticks` or \"double quotes\", strings in 'single quotes'"
        )
    written, end = found.group(), found.end()
    match found.lastgroup:
        case "string":
            return Token(Kind.STRING, written[1:-1].replace("''", "'"), "", at), end
        case "quoted":
            return Token(Kind.QUOTED, written[1:-1].replace(written[0] * 2, written[0]), "", at), end
        case "number":
            return Token(Kind.NUMBER, written, "", at), end
        case "word":
            # What capitals make of other letters may be a keyword by accident.
            return Token(Kind.WORD, written, written.upper() if written.isascii() else written, at), end
    return Token(Kind.SIGN, written, written, at), end
