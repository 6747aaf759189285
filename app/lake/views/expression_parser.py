"""Tokens to expressions, by the precedence of their operators."""

from __future__ import annotations

from typing import Final

from app.format.schema.types import DataType, Timestamp, TypeSyntaxError, parse_type
from app.lake.views.call_parser import CallParser
from app.lake.views.relation_types import relation_type
from app.lake.views.token_reader import RESERVED
from app.lake.views.tokens import Kind, Token, invalid
from app.lake.views.tree import (
    Between,
    Binary,
    Call,
    Case,
    Cast,
    Connective,
    Element,
    Exists,
    Expression,
    InList,
    InQuery,
    Interval,
    Is,
    IsNull,
    Like,
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

PATTERN_CHARACTERS_MAX: Final = 1_000
# Engines try every way to spread a text over the wildcards: its length to the power of their number.
PATTERN_WILDCARDS_MAX: Final = 4
_OR, _AND, _NOT, _PREDICATE, _COMPARISON, _SUM, _PRODUCT = range(1, 8)
_COMPARISONS: Final = {
    "=": "=",
    "==": "=",
    "<>": "<>",
    "!=": "<>",
    "<": "<",
    "<=": "<=",
    ">": ">",
    ">=": ">=",
    "<=>": "<=>",
}
_SUMS: Final = frozenset({"+", "-", "||"})
_PRODUCTS: Final = frozenset({"*", "/", "%", "DIV"})
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
_TYPED: Final = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "X"})
_TYPE_NAMES: Final = {"tinyint": "int8", "smallint": "int16", "timestamp_ltz": "timestamp", "real": "float"}
_CALLABLE: Final = frozenset({"LEFT", "RIGHT"})


class ExpressionParser(CallParser):
    """Reads expressions from tokens. Raises InvalidView throughout."""

    def query(self) -> Query:
        """A query: up to whoever reads more than expressions."""
        raise NotImplementedError

    def expression(self, least: int = _OR) -> Expression:
        """An expression whose operators bind at least as tightly as `least`."""
        self.deeper()
        found = self._operators(least)
        self.deeper(-1)
        return found

    def _operators(self, least: int) -> Expression:
        start = self.here.at
        if self.take("NOT"):
            left: Expression = Unary(start, "NOT", self.expression(_NOT))
            most = _AND
        else:
            left, most = self._signed(), _PRODUCT
        while True:
            word = self.here.word
            binding = self._binding(word)
            if binding is None or binding < least:
                return left
            if binding > most:
                self.unexpected("parentheses around what stands before it")
            left, most = self._operation(start, left, word, binding)

    def _binding(self, word: str) -> int | None:
        if word in _PRODUCTS:
            return _PRODUCT
        if word in _SUMS:
            return _SUM
        if word in _COMPARISONS:
            return _COMPARISON
        if word in {"IS", "IN", "BETWEEN", "LIKE"} or (
            word == "NOT" and self.ahead().word in {"IN", "BETWEEN", "LIKE"}
        ):
            return _PREDICATE
        return {"AND": _AND, "OR": _OR}.get(word)

    def _operation(self, start: int, left: Expression, word: str, binding: int) -> tuple[Expression, int]:
        """What stands at the operator, and how tightly the next operator may bind."""
        if binding == _PREDICATE:
            return self._predicate(start, left), _AND
        if binding <= _AND:
            operands = [left]
            while self.take(word):
                operands.append(self.expression(binding + 1))
            return Connective(start, word, tuple(operands)), binding
        self.advance()
        right = self.expression(binding + 1)
        if binding == _COMPARISON:
            return Binary(start, _COMPARISONS[word], left, right), _PREDICATE
        return Binary(start, word, left, right), binding

    def _predicate(self, start: int, left: Expression) -> Expression:
        negated = self.take("NOT")
        if self.take("IS"):
            return self._is(start, left)
        if self.take("BETWEEN"):
            low = self.expression(_SUM)
            self.expect("AND")
            return Between(start, left, low, self.expression(_SUM), negated)
        if self.take("LIKE"):
            return self._like(start, left, negated)
        self.expect("IN", "(")
        if self.here.word in {"SELECT", "WITH"}:
            found: Expression = InQuery(start, left, self.query(), negated)
        else:
            found = InList(start, left, self.listed(self.expression), negated)
        self.expect(")")
        return found

    def _is(self, start: int, left: Expression) -> Expression:
        negated = self.take("NOT")
        if self.take("NULL"):
            return IsNull(start, left, negated)
        if self.here.word in {"TRUE", "FALSE"}:
            return Is(start, left, self.advance().word == "TRUE", negated)
        if not self.take("DISTINCT", "FROM"):
            self.unexpected("NULL, TRUE, FALSE or DISTINCT FROM")
        same = Binary(start, "<=>", left, self.expression(_SUM))
        return same if negated else Unary(start, "NOT", same)

    def _like(self, start: int, left: Expression, negated: bool) -> Expression:
        written = self.here
        pattern = self._string("a pattern: a 'string', in which % is any text and _ any character")
        escape = self._string("one character, as a 'string'") if self.take("ESCAPE") else None
        if escape is not None and len(escape) != 1:
            raise invalid(self.text, written.at, "this cannot escape", "one character after ESCAPE")
        if len(pattern) > PATTERN_CHARACTERS_MAX:
            expected = f"at most {PATTERN_CHARACTERS_MAX:,} characters"
            raise invalid(self.text, written.at, "the pattern is too long", expected)
        if pattern.count("%") > PATTERN_WILDCARDS_MAX:
            expected = f"at most {PATTERN_WILDCARDS_MAX} of %"
            raise invalid(self.text, written.at, "the pattern has too many wildcards", expected)
        rest = iter(pattern)
        for character in rest:
            if character == escape and next(rest, "") not in {"%", "_", escape}:
                expected = f"%, _ or {escape} behind it"
                raise invalid(self.text, written.at, f"{escape!r} escapes nothing here", expected)
        return Like(start, left, pattern, escape, negated)

    def _string(self, expected: str) -> str:
        if self.here.kind is not Kind.STRING:
            self.unexpected(expected)
        return self.advance().text

    def _signed(self) -> Expression:
        start = self.here.at
        sign = self.here.word
        if sign not in {"-", "+"}:
            return self._postfix()
        self.advance()
        self.deeper()
        operand = self._signed()
        self.deeper(-1)
        return Unary(start, sign, operand)

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
            case Kind.NUMBER:
                return Number(token.at, self.advance().text)
            case Kind.STRING:
                return Text(token.at, self.advance().text)
            case Kind.QUOTED:
                return self._column()
            case Kind.WORD:
                return self._worded(token)
        if not self.take("("):
            self.unexpected("a column, a literal or a function")
        if self.here.word in {"SELECT", "WITH"}:
            found: Expression = Scalar(token.at, self.query())
        else:
            found = self.expression()
        self.expect(")")
        return found

    def _worded(self, token: Token) -> Expression:
        following = self.ahead()
        match token.word:
            case "TRUE" | "FALSE":
                return Truth(token.at, self.advance().word == "TRUE")
            case "NULL":
                self.advance()
                return Null(token.at)
            case "CASE":
                return self._case()
            case "EXISTS":
                self.advance()
                self.expect("(")
                query = self.query()
                self.expect(")")
                return Exists(token.at, query)
            case "INTERVAL" if following.kind in {Kind.NUMBER, Kind.STRING} or following.word == "-":
                return self._interval()
            case "CAST" | "TRY_CAST" if following.word == "(":
                return self._cast()
            case "EXTRACT" if following.word == "(":
                return self._extract()
        if token.word in _TYPED and following.kind is Kind.STRING:
            self.position += 2
            return TypedText(token.at, token.word, following.text)
        if following.word == "(" and (token.word not in RESERVED or token.word in _CALLABLE):
            return self.call()
        if not self.names_something(token):
            self.unexpected("a column, a literal or a function")
        return self._column()

    def _column(self) -> Name:
        start = self.here.at
        parts = [self.advance().text]
        while self.here.word == "." and self.ahead().kind in {Kind.WORD, Kind.QUOTED}:
            self.advance()
            parts.append(self.advance().text)
        return Name(start, tuple(parts))

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
            expected = f"INTERVAL n unit; a unit is one of {', '.join(_UNITS)}"
            raise invalid(self.text, start, "this interval cannot be read", expected)
        return Interval(start, sign * number, unit)

    def _cast(self) -> Expression:
        token = self.advance()
        self.expect("(")
        operand = self.expression()
        self.expect("AS")
        data_type = self._type()
        self.expect(")")
        return Cast(token.at, operand, data_type, token.word == "TRY_CAST")

    def _type(self) -> DataType:
        start = self.here.at
        opened = 0
        while self.here.kind is not Kind.END and (opened or self.here.word != ")"):
            opened += {"(": 1, ")": -1}.get(self.advance().word, 0)
        written = self.text[start : self.here.at].strip()
        try:
            found = parse_type(_TYPE_NAMES.get(written.lower(), written))
        except TypeSyntaxError as error:
            raise invalid(self.text, start, str(error), "a type") from None
        if relation_type(found) != found:
            expected = str(relation_type(found))
            reason = (
                f"the engine has no type {found}"
                if not isinstance(found, Timestamp)
                else "times are in microseconds"
            )
            raise invalid(self.text, start, reason, expected)
        return found

    def _extract(self) -> Expression:
        start = self.advance().at
        self.expect("(")
        part = self.name("a part of a time: YEAR, MONTH, DAY …").lower()
        self.expect("FROM")
        operand = self.expression()
        self.expect(")")
        return Call(start, part, (operand,))
