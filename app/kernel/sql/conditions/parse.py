"""Parses the text of a filter: its syntax, then its meaning for one schema."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from app.kernel.format.schema.schema import Schema
from app.kernel.sql.conditions.bind import ConditionBinder
from app.kernel.sql.conditions.language import CONDITIONS
from app.kernel.sql.conditions.tree import Filter
from app.kernel.sql.expression_parser import ExpressionParser
from app.kernel.sql.lexer import Token, TokenKind
from app.kernel.sql.syntax import Expression

_TIGHT_BEFORE: Final = frozenset({")", ",", "."})
_TIGHT_AFTER: Final = frozenset({"(", ".", "-", "X"})


def parse_filter(text: str, schema: Schema) -> Filter:
    """The filter that `text` describes for rows of `schema`. Raises InvalidFilter."""
    parser, expression = _parsed(text)
    return Filter(root=ConditionBinder(text, schema).condition(expression), text=_canonical(parser.tokens))


def check_syntax(text: str) -> None:
    """Raises InvalidFilter for a text that is not a condition, whatever the schema."""
    _parsed(text)


def _parsed(text: str) -> tuple[ExpressionParser, Expression]:
    parser = ExpressionParser(text, CONDITIONS)
    if parser.here.kind is TokenKind.END:
        raise CONDITIONS.invalid(text, 0, "the filter is empty", "a condition")
    expression = parser.expression()
    parser.end("AND, OR or the end of the filter")
    return parser, expression


def _canonical(tokens: Sequence[Token]) -> str:
    """The canonical text, which parses to the same filter: keywords in capitals, single blanks, no comments."""
    parts: list[str] = []
    tight = True
    for token, following in pairwise(tokens):
        opens_literal = token.word in CONDITIONS.literal_words and following.kind is TokenKind.STRING
        keyword = opens_literal or (token.word in CONDITIONS.reserved_words and parts[-1:] != ["."])
        if not tight and token.word not in _TIGHT_BEFORE:
            parts.append(" ")
        parts.append(token.word if keyword else _spelling(token))
        tight = token.word in _TIGHT_AFTER and (opens_literal or token.kind is TokenKind.SIGN)
    return "".join(parts)


def _spelling(token: Token) -> str:
    match token.kind:
        case TokenKind.QUOTED:
            return '"' + token.text.replace('"', '""') + '"'
        case TokenKind.STRING:
            return "'" + token.text.replace("'", "''") + "'"
    return "<>" if token.word == "!=" else token.text
