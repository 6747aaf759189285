"""The grammar of filters: a dialect of sqlglot that knows conditions on columns and nothing else.

What is cut away from sqlglot's own grammar (functions, types, subqueries, arithmetic, aliases) is also what makes a
parser of hostile text slow or deep, so nothing of it is left to be refused later. `AND`, `OR`, `NOT` and the
predicates between operands are sqlglot's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, ClassVar, Final, NoReturn

from sqlglot import Token, TokenType, exp, generator, parser, tokens
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError, TokenError

from app.format.errors import InvalidFilter

TEXT_CHARACTERS_MAX: Final = 10_000
DEPTH_MAX: Final = 50
_NEAR_CHARACTERS: Final = 20
# Written before a string, these make it a literal of another type: DATE '2026-11-21', X'00FF'.
DATE: Final = exp.DType.DATE
TIMESTAMP: Final = exp.DType.TIMESTAMP
BINARY: Final = exp.DType.BINARY
_TYPED: Final = {"DATE": DATE, "TIMESTAMP": TIMESTAMP, "X": BINARY}
_WORDS: Final = {
    "AND": TokenType.AND,
    "BETWEEN": TokenType.BETWEEN,
    "ESCAPE": TokenType.ESCAPE,
    "FALSE": TokenType.FALSE,
    "IN": TokenType.IN,
    "IS": TokenType.IS,
    "LIKE": TokenType.LIKE,
    "NOT": TokenType.NOT,
    "NULL": TokenType.NULL,
    "OR": TokenType.OR,
    "TRUE": TokenType.TRUE,
}
_SIGNS: Final = {
    "!=": TokenType.NEQ,
    "(": TokenType.L_PAREN,
    ")": TokenType.R_PAREN,
    ",": TokenType.COMMA,
    "-": TokenType.DASH,
    ".": TokenType.DOT,
    "<": TokenType.LT,
    "<=": TokenType.LTE,
    "<>": TokenType.NEQ,
    "=": TokenType.EQ,
    ">": TokenType.GT,
    ">=": TokenType.GTE,
}
_NAMES: Final = frozenset({TokenType.VAR, TokenType.IDENTIFIER})
_KNOWN: Final = frozenset({*_WORDS.values(), *_SIGNS.values(), *_NAMES, TokenType.STRING, TokenType.NUMBER})
_BLANKS: Final = re.compile(r"(?:\s++|--[^\r\n]*+|/\*.*?\*/)*+", re.DOTALL)
_LANGUAGE: Final = (
    "columns, literals, = != <> < <= > >=, IS NULL, IN, BETWEEN, LIKE, AND, OR, NOT and parentheses"
)


class HeadwaterFilter(Dialect):
    """sqlglot registers a dialect by the name of its class, hence one that no other package has."""

    class Tokenizer(tokens.Tokenizer):
        NESTED_COMMENTS = False
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **_WORDS,
            **{sign: kind for sign, kind in _SIGNS.items() if len(sign) > 1},
        }

    class Parser(parser.Parser):
        # Words such as CASE are names of columns here.
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {}

        def _parse_bitwise(self) -> exp.Expr:
            # An operand, straight away: sqlglot's way through every level of arithmetic takes 22 frames a
            # parenthesis, and Python's stack would end before DEPTH_MAX.
            operand = self._parse_unary()
            if operand is None:
                raise self._unexpected("a column or a literal")
            return operand

        def _parse_type(
            self,
            parse_interval: bool = True,  # noqa: ARG002 # the signature of what it overrides
            fallback_to_identifier: bool = False,  # noqa: ARG002
        ) -> exp.Expr | None:
            if self._next.token_type == TokenType.STRING and (kind := _typed(self._curr)):
                self._advance(2)
                text = self.expression(exp.Literal.string(self._prev.text), self._prev)
                return self.expression(exp.Cast(this=text, to=exp.DataType(this=kind)))
            return self._parse_atom() or self._parse_paren()

        def _parse_column(self) -> exp.Expr | None:
            return self._parse_column_parts_fast()

        def _parse_paren(self) -> exp.Expr | None:
            if not self._match(TokenType.L_PAREN):
                return None
            inner = self.expression(exp.Paren(this=self._parse_disjunction()))
            self._match_r_paren(inner)
            return inner

        def _parse_between(self, this: exp.Expr | None) -> exp.Between:
            low = self._parse_bitwise()
            if not self._match(TokenType.AND):
                raise self._unexpected("AND and the upper bound")
            return self.expression(exp.Between(this=this, low=low, high=self._parse_bitwise()))

        def raise_error(self, message: str, token: Token | None = None) -> NoReturn:  # noqa: ARG002
            # sqlglot's own message speaks of its classes.
            raise self._unexpected(_LANGUAGE)

        def _unexpected(self, expected: str) -> InvalidFilter:
            if not self._curr:
                return invalid(self.sql, len(self.sql), "the filter ends too early", expected)
            found = self._curr.text[:_NEAR_CHARACTERS]
            return invalid(self.sql, self._curr.start, f"{found!r} cannot stand here", expected)

    class Generator(generator.Generator):
        def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:  # noqa: ARG002
            word = next(word for word, kind in _TYPED.items() if kind == expression.to.this)
            return f"{word}{'' if word == 'X' else ' '}{self.sql(expression, 'this')}"


def parse_condition(text: str) -> exp.Expr:
    """The syntax tree of a filter's text: operands and predicates of SQL, not yet what they mean here.

    Raises InvalidFilter.
    """
    _check_text(text)
    dialect = HeadwaterFilter()
    try:
        written = dialect.tokenize(text)
        _check_tokens(text, written)
        if not written:
            raise invalid(text, 0, "the filter is empty", "a condition")
        [tree] = dialect.parser().parse_into(exp.Condition, written, text)
    except TokenError:
        reason = "the text ends inside of a string, a quoted name or a comment"
        raise invalid(text, len(text), reason, "its end") from None
    except (SqlglotError, RecursionError) as fault:
        raise invalid(text, 0, "it is too intricate", "a simpler condition") from fault
    assert tree is not None  # only of no tokens there is no tree
    return tree


def canonical_text(tree: exp.Expr) -> str:
    """The text that reads back as the same tree: keywords in capitals, single blanks, no comments."""
    return HeadwaterFilter().generate(tree, copy=False, comments=False)


def place(node: exp.Expr) -> int | None:
    """How many characters stand before a part of a tree; TRUE and NULL, which do not say, are looked for around."""
    starts: list[int] = [part.meta["start"] for part in node.walk() if "start" in part.meta]
    if starts:
        return min(starts)
    return None if node.parent is None else place(node.parent)


def invalid(text: str, position: int | None, reason: str, expected: str) -> InvalidFilter:
    """The error to raise. `position` is the number of characters before the fault."""
    near = "" if position is None else text[position : position + _NEAR_CHARACTERS]
    where = "" if position is None else f" at character {position + 1}"
    return InvalidFilter(
        f"the filter is not valid{where}{f', near {near!r}' if near else ''}: {reason}; expected {expected}",
        position=position,
        expected=expected,
    )


def _typed(token: Token) -> exp.DType | None:
    return _TYPED.get(token.text.upper()) if token.token_type == TokenType.VAR else None


def _check_text(text: str) -> None:
    if len(text) > TEXT_CHARACTERS_MAX:
        limit = f"at most {TEXT_CHARACTERS_MAX:,} characters"
        raise invalid(text, None, f"it has {len(text):,} characters", limit)
    try:
        text.encode()
    except UnicodeEncodeError as fault:
        raise invalid(text, fault.start, "a lone surrogate is no character", "Unicode text") from None


def _check_tokens(text: str, written: Sequence[Token]) -> None:
    """Refuses what no filter has, by its own name: the parser would only say that it cannot stand here."""
    end = 0
    previous = None
    for token in written:
        _check_blanks(text, end, token.start)
        if token.token_type not in _KNOWN:
            raise invalid(
                text, token.start, f"{token.text!r} is not part of the language of filters", _LANGUAGE
            )
        if token.token_type == TokenType.L_PAREN and previous is not None and previous.token_type in _NAMES:
            raise invalid(
                text, previous.start, "functions are not part of the language of filters", _LANGUAGE
            )
        end, previous = token.end + 1, token
    _check_blanks(text, end, len(text))
    _check_nesting(text, written)


def _check_blanks(text: str, start: int, end: int) -> None:
    """Refuses anything but blanks and whole comments: the tokenizer takes other things for comments, too."""
    blanks = _BLANKS.match(text, start, end)
    if blanks is not None and blanks.end() != end:
        raise invalid(text, blanks.end(), "this is not part of the language of filters", _LANGUAGE)


def _check_nesting(text: str, written: Sequence[Token]) -> None:
    """Refuses parentheses without their partners, and more than DEPTH_MAX levels of them, of NOT and of signs."""
    opened: list[tuple[int, int]] = []
    inside = depth = 0
    for token in written:
        match token.token_type:
            case TokenType.NOT | TokenType.DASH:
                depth += 1
            case TokenType.L_PAREN:
                opened.append((inside, token.start))
                inside = depth = depth + 1
            case TokenType.R_PAREN if not opened:
                raise invalid(text, token.start, "this parenthesis was not opened", "as many `(` as `)`")
            case TokenType.R_PAREN:
                inside = depth = opened.pop()[0]
            case _:
                depth = inside
        if depth > DEPTH_MAX:
            raise invalid(text, token.start, "the filter nests too deeply", f"at most {DEPTH_MAX} levels")
    if opened:
        raise invalid(text, opened[-1][1], "this parenthesis is not closed", "as many `(` as `)`")
