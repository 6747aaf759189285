"""Parses tokens into operands: literals, columns, and syntax with brackets or keywords of its own."""

from __future__ import annotations

from typing import Final

from app.sql.lexer import Token, TokenKind
from app.sql.reader import TokenReader
from app.sql.syntax import (
    Case,
    Element,
    Exists,
    Expression,
    Interval,
    Member,
    Name,
    Null,
    Number,
    Query,
    Scalar,
    Text,
    Truth,
    TypedText,
    Unary,
)

_OPERAND: Final = "a column or a literal"
_UNITS: Final = (
    "MICROSECOND",
    "MILLISECOND",
    "SECOND",
    "MINUTE",
    "HOUR",
    "DAY",
    "WEEK",
    "MONTH",
    "QUARTER",
    "YEAR",
)
# Reserved words that are functions if a parenthesis follows.
_CALLABLE: Final = frozenset({"LEFT", "RIGHT"})


class OperandParser(TokenReader):
    """Reads operands. Raises the error of the language throughout."""

    def expression(self) -> Expression:
        """An expression; implemented by the parser of operators."""
        raise NotImplementedError

    def call(self) -> Expression:
        """A call of a function."""
        raise self.invalid(
            self.here.at, f"functions are not part of {self.language.name}", self.language.summary
        )

    def query(self) -> Query:
        """A query inside an expression."""
        raise self.invalid(
            self.here.at, f"queries are not part of {self.language.name}", self.language.summary
        )

    def signed(self) -> Expression:
        """An operand with the signs before it and the members and elements after it."""
        signs = []
        while self.here.word in {"-", "+"}:
            signs.append(self.advance())
        found = self._postfix()
        for sign in reversed(signs):
            found = Unary(sign.at, sign.word, found)
        return found

    def starts_query(self) -> bool:
        return self.is_reserved("SELECT", "WITH")

    def _postfix(self) -> Expression:
        found = self._operand()
        while True:
            at = self.here.at
            if self.take("["):
                found = Element(at, found, self.expression())
                self.expect("]")
            elif self.take("."):
                found = Member(at, found, self.name("the name of a member"))
            else:
                return found

    def _operand(self) -> Expression:
        token = self.here
        match token.kind:
            case TokenKind.NUMBER:
                return Number(token.at, self.advance().text)
            case TokenKind.STRING:
                return Text(token.at, self.advance().text)
            case TokenKind.QUOTED:
                return self._name_or_call(token)
            case TokenKind.WORD:
                return self._word(token)
        if not self.take("("):
            self.unexpected(_OPERAND)
        found = Scalar(token.at, self.query()) if self.starts_query() else self.expression()
        self.expect(")")
        return found

    def _word(self, token: Token) -> Expression:
        following = self.ahead()
        match token.word:
            case "TRUE" | "FALSE":
                return Truth(token.at, self.advance().word == "TRUE")
            case "NULL":
                self.advance()
                return Null(token.at)
            case "CASE" if self.is_reserved("CASE"):
                return self._case()
            case "EXISTS" if self.is_reserved("EXISTS"):
                return self._exists()
            case "INTERVAL" if (
                following.kind in {TokenKind.NUMBER, TokenKind.STRING} or following.word == "-"
            ):
                return self._interval()
        if token.word in self.language.typed and following.kind is TokenKind.STRING:
            self.position += 2
            return TypedText(token.at, token.word, following.text)
        return self._name_or_call(token)

    def _name_or_call(self, token: Token) -> Expression:
        if self.ahead().word == "(" and (self.is_name(token) or token.word in _CALLABLE):
            return self.call()
        if not self.is_name(token):
            self.unexpected(_OPERAND)
        parts = [self.advance()]
        while self.here.word == "." and self.ahead().kind in {TokenKind.WORD, TokenKind.QUOTED}:
            self.advance()
            parts.append(self.advance())
        return Name(token.at, tuple(part.text for part in parts), tuple(part.at for part in parts))

    def _case(self) -> Expression:
        start = self.advance().at
        operand = None if self.here.word == "WHEN" else self.expression()
        branches = []
        while self.take("WHEN"):
            condition = self.expression()
            self.expect("THEN")
            branches.append((condition, self.expression()))
        if not branches:
            self.unexpected("WHEN")
        default = self.expression() if self.take("ELSE") else None
        self.expect("END")
        return Case(start, operand, tuple(branches), default)

    def _exists(self) -> Expression:
        start = self.advance().at
        self.expect("(")
        query = self.query()
        self.expect(")")
        return Exists(start, query)

    def _interval(self) -> Expression:
        start = self.advance().at
        sign = -1 if self.take("-") else 1
        written = self.advance()
        amount, _, unit = written.text.strip().partition(" ")
        if not unit:
            unit = self.advance().text
        unit = unit.strip().upper().removesuffix("S")
        try:
            number = int(amount) if len(amount) < 10 else None
        except ValueError:
            number = None
        if number is None or unit not in _UNITS:
            expected = f"INTERVAL n unit, with one of the units {', '.join(_UNITS)}"
            raise self.invalid(start, "this is not an interval", expected)
        return Interval(start, sign * number, unit)
