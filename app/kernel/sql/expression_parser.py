"""Parses tokens into expressions, by the precedence of their operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from app.kernel.sql.lexer import Token, TokenKind
from app.kernel.sql.reader import QUOTES, TokenReader
from app.kernel.sql.syntax import (
    Between,
    Binary,
    Case,
    Connective,
    Element,
    Exists,
    Expression,
    InList,
    InQuery,
    Interval,
    Is,
    LikePredicate,
    Member,
    Name,
    Null,
    NullTest,
    Number,
    Query,
    Scalar,
    Text,
    Truth,
    TypedText,
    Unary,
)

PATTERN_CHARACTERS_MAX: Final = 1_000
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
_BINDINGS: Final = {
    "OR": _OR,
    "AND": _AND,
    **dict.fromkeys(("IS", "IN", "BETWEEN", "LIKE"), _PREDICATE),
    **dict.fromkeys(_COMPARISONS, _COMPARISON),
    **dict.fromkeys(("+", "-", "||"), _SUM),
    **dict.fromkeys(("*", "/", "%", "DIV"), _PRODUCT),
}
# The operators that may follow NOT behind an operand.
_NEGATED: Final = frozenset({"IN", "BETWEEN", "LIKE", "NULL"})
# The tightest operator that may follow: `a = b = c` and `a IS NULL IS NULL` need parentheses.
_TIGHTEST_AFTER: Final = {_NOT: _AND, _PREDICATE: _AND, _COMPARISON: _PREDICATE}
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
_PATTERN: Final = "a pattern in single quotes, in which % is any text and _ any character"


@dataclass(slots=True)
class _Pending:
    """An operator and its left operands, until its right operand is complete. AND and OR collect operands."""

    start: int
    word: str
    binding: int
    operands: list[Expression]


class ExpressionParser(TokenReader):
    """Reads expressions. Operators of one level do not recurse, so only nesting uses Python's stack.

    Raises the error of the language throughout.
    """

    def expression(self, least: int = _OR) -> Expression:
        """An expression whose operators bind at least as tightly as `least`."""
        pending: list[_Pending] = []
        while True:
            start = self.here.at
            if self.take("NOT"):
                operand: Expression = Unary(start, "NOT", self.expression(_NOT))
                tightest = _TIGHTEST_AFTER[_NOT]
            else:
                operand, tightest = self._signed(), _PRODUCT
            while True:
                word = self.here.word
                binding = self._binding()
                while pending and _is_complete(pending[-1], binding, least):
                    last = pending.pop()
                    start, operand = last.start, _operation(last, operand)
                    tightest = _TIGHTEST_AFTER.get(last.binding, last.binding)
                if binding < least:
                    return operand
                if binding > tightest:
                    self.unexpected("parentheses around what is before it")
                if binding != _PREDICATE:
                    break
                operand, tightest = self._predicate(start, operand), _TIGHTEST_AFTER[_PREDICATE]
            self.advance()
            if pending and pending[-1].binding == binding:
                pending[-1].operands.append(operand)
            else:
                pending.append(_Pending(start, word, binding, [operand]))

    def _binding(self) -> int:
        """The binding strength of the next operator; 0 if there is no operator."""
        if self.here.word == "NOT" and self.ahead().word in _NEGATED:
            return _PREDICATE
        return _BINDINGS.get(self.here.word, 0)

    def _predicate(self, start: int, operand: Expression) -> Expression:
        has_not = self.take("NOT")
        if self.take("IS"):
            return self._is(start, operand)
        if self.take("BETWEEN"):
            low = self.expression(_SUM)
            self.expect("AND")
            return Between(start, operand, low, self.expression(_SUM), has_not)
        if self.take("LIKE"):
            return self._like(start, operand, has_not)
        if self.take("NULL"):
            return NullTest(start, operand, has_not)
        self.expect("IN")
        self.expect("(")
        if self._starts_query():
            predicate: Expression = InQuery(start, operand, self.query(), has_not)
        else:
            predicate = InList(start, operand, self.listed(self.expression), has_not)
        self.expect(")")
        return predicate

    def _is(self, start: int, operand: Expression) -> Expression:
        has_not = self.take("NOT")
        keywords = self.language.is_operands
        keyword = next((keyword for keyword in keywords if self.take(*keyword.split())), None)
        if keyword is None:
            self.unexpected(" or ".join(keywords))
        if keyword == "NULL":
            return NullTest(start, operand, has_not)
        if keyword != "DISTINCT FROM":
            return Is(start, operand, keyword == "TRUE", has_not)
        same = Binary(start, "<=>", operand, self.expression(_SUM))
        return same if has_not else Unary(start, "NOT", same)

    def _like(self, start: int, operand: Expression, has_not: bool) -> Expression:
        literal = self._string(_PATTERN)
        escape = self._string("one character in single quotes") if self.take("ESCAPE") else None
        if escape is not None and len(escape.value) != 1:
            raise self.invalid(escape.at, "ESCAPE takes one character", "one character in single quotes")
        if len(literal.value) > PATTERN_CHARACTERS_MAX:
            expectation = f"at most {PATTERN_CHARACTERS_MAX:,} characters"
            raise self.invalid(literal.at, "the pattern is too long", expectation)
        pattern = self._pattern(literal, None if escape is None else escape.value)
        return LikePredicate(start, operand, Text(literal.at, pattern), has_not)

    def _pattern(self, literal: Text, escape: str | None) -> str:
        """The pattern with a backslash as the escape character. Without ESCAPE there is no escape character, as in the
        standard.
        """
        parts = []
        rest = iter(literal.value)
        for character in rest:
            after_escape = character == escape
            if after_escape:
                character = next(rest, "")
                if character not in {"%", "_", escape}:
                    expectation = f"%, _ or {escape} after it"
                    raise self.invalid(literal.at, f"{escape!r} escapes nothing here", expectation)
            plain = character == "\\" or (after_escape and character in {"%", "_"})
            parts.append(f"\\{character}" if plain else character)
        return "".join(parts)

    def _string(self, expectation: str) -> Text:
        expression = self.expression(_SUM)
        if not isinstance(expression, Text):
            has_double_quotes = self.text[expression.at] == '"'
            reason = QUOTES if has_double_quotes else "this is not a string literal"
            raise self.invalid(expression.at, reason, expectation)
        return expression

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

    def _signed(self) -> Expression:
        """An operand with the signs before it and the members and elements after it."""
        signs = []
        while self.here.word in {"-", "+"}:
            signs.append(self.advance())
        expression = self._postfix()
        for sign in reversed(signs):
            expression = Unary(sign.at, sign.word, expression)
        return expression

    def _starts_query(self) -> bool:
        return self.is_reserved("SELECT", "WITH")

    def _postfix(self) -> Expression:
        expression = self._operand()
        while True:
            at = self.here.at
            if self.take("["):
                expression = Element(at, expression, self.expression())
                self.expect("]")
            elif self.take("."):
                expression = Member(at, expression, self.name("the name of a member"))
            else:
                return expression

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
        expression = Scalar(token.at, self.query()) if self._starts_query() else self.expression()
        self.expect(")")
        return expression

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
        if token.word in self.language.literal_words and following.kind is TokenKind.STRING:
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
        token = self.advance()
        amount, _, unit = token.text.strip().partition(" ")
        if not unit:
            unit = self.advance().text
        unit = unit.strip().upper().removesuffix("S")
        try:
            number = int(amount) if len(amount) < 10 else None
        except ValueError:
            number = None
        if number is None or unit not in _UNITS:
            expectation = f"INTERVAL n unit, with one of the units {', '.join(_UNITS)}"
            raise self.invalid(start, "this is not an interval", expectation)
        return Interval(start, sign * number, unit)


def _is_complete(last: _Pending, binding: int, least: int) -> bool:
    """Whether an operator has all of its operands, given the next operator. Chains of AND and of OR continue."""
    if binding < least or last.binding > binding:
        return True
    return last.binding == binding and binding > _AND


def _operation(operator: _Pending, right: Expression) -> Expression:
    start, word, operands = operator.start, operator.word, operator.operands
    if operator.binding <= _AND:
        return Connective(start, word, (*operands, right))
    return Binary(start, _COMPARISONS.get(word, word), operands[0], right)
