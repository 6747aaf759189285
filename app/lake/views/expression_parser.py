"""Tokens to expressions, by the precedence of their operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NoReturn, TypeVar

from app.lake.types import DataType, Timestamp, TypeSyntaxError, parse_type
from app.lake.views.relation_types import relation_type
from app.lake.views.tokens import Kind, Token, invalid
from app.lake.views.tree import (
    Between,
    Binary,
    Bound,
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
    Order,
    Query,
    Scalar,
    Text,
    Truth,
    TypedText,
    Unary,
    Window,
)

DEPTH_MAX: Final = 50
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
# Words that are no names unless they stand in backticks.
RESERVED: Final = frozenset(
    "ALL AND ANTI AS BETWEEN BY CASE CLUSTER CROSS DISTINCT DISTRIBUTE DIV ELSE END ESCAPE EXCEPT EXISTS FALSE FETCH "
    "FROM FULL GROUP HAVING ILIKE IN INNER INTERSECT IS JOIN LATERAL LEFT LIKE LIMIT MINUS NATURAL NOT NULL ON OR "
    "ORDER OUTER OVER PIVOT QUALIFY REGEXP RIGHT RLIKE SELECT SEMI SORT TABLESAMPLE THEN TRUE UNION UNPIVOT USING WHEN "
    "WHERE WINDOW WITH".split()
)
_CALLABLE: Final = frozenset({"LEFT", "RIGHT"})
_NO_ORDER: Final = "the rows of a view have no order, and no first one"
_ONE_SELECT: Final = "a view is one SELECT"
# Why some of what SQL has elsewhere is not part of views.
REFUSED: Final = {
    **dict.fromkeys(("LIMIT", "FETCH", "OFFSET"), f"{_NO_ORDER}: filter by ROW_NUMBER() OVER (ORDER BY …)"),
    **dict.fromkeys(("ORDER", "SORT"), f"{_NO_ORDER}: ORDER BY belongs into OVER (…)"),
    "CLUSTER": "how rows are spread is the engine's business",
    "DISTRIBUTE": "how rows are spread is the engine's business",
    "LATERAL": "LATERAL is not part of the SQL of views",
    "PIVOT": "PIVOT is not part of the SQL of views: use an aggregate with FILTER (WHERE …) for each column",
    "UNPIVOT": "UNPIVOT is not part of the SQL of views: use UNION ALL",
    "TABLESAMPLE": "a sample is another one each time",
    "NATURAL": "what a NATURAL join compares changes with the schemas: use ON or USING",
    "WINDOW": "named windows are not part of the SQL of views: write them out behind OVER",
    "VALUES": "VALUES is not part of the SQL of views: register a dataset for it",
    "RLIKE": "regular expressions may take time without bound: use LIKE, instr, substring or split_part",
    "REGEXP": "regular expressions may take time without bound: use LIKE, instr, substring or split_part",
    "ILIKE": "ILIKE is not part of the SQL of views: compare lower(…) LIKE",
    ";": f"{_ONE_SELECT}, and this is a second statement",
    **dict.fromkeys(
        "ALTER ANALYZE CACHE CALL CREATE DELETE DESCRIBE DROP EXECUTE EXPLAIN GRANT INSERT MERGE OPTIMIZE REFRESH "
        "REPLACE SET SHOW TABLE TRUNCATE UPDATE USE VACUUM".split(),
        _ONE_SELECT,
    ),
}
_T = TypeVar("_T")


class ExpressionParser:
    """Reads expressions from tokens. Raises InvalidView throughout."""

    def __init__(self, text: str, tokens: Sequence[Token]) -> None:
        self.text = text
        self.tokens = tokens
        self.position = 0
        self.depth = 0

    def query(self) -> Query:
        """A query: up to whoever reads more than expressions."""
        raise NotImplementedError

    # Tokens

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
        """Goes past these words or signs, if all of them are next."""
        if any(self.ahead(number).word != word for number, word in enumerate(words)):
            return False
        self.position += len(words)
        return True

    def expect(self, *words: str) -> None:
        if not self.take(*words):
            self.unexpected(" ".join(words))

    def unexpected(self, expected: str) -> NoReturn:
        token = self.here
        if token.kind is Kind.END:
            raise invalid(self.text, token.at, "it ends too early", expected)
        reason = REFUSED.get(token.word, f"{token.text[:40]!r} cannot stand here")
        raise invalid(self.text, token.at, reason, expected)

    def names_something(self, token: Token) -> bool:
        return token.kind is Kind.QUOTED or (token.kind is Kind.WORD and token.word not in RESERVED)

    def name(self, expected: str) -> str:
        if not self.names_something(self.here):
            self.unexpected(expected)
        return self.advance().text

    def listed(self, part: Callable[[], _T]) -> tuple[_T, ...]:
        found = [part()]
        while self.take(","):
            found.append(part())
        return tuple(found)

    # Operators

    def expression(self, least: int = _OR) -> Expression:
        """An expression whose operators bind at least as tightly as `least`."""
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise invalid(self.text, self.here.at, "it nests too deeply", f"at most {DEPTH_MAX} levels")
        try:
            return self._operators(least)
        finally:
            self.depth -= 1

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

    # Operands

    def _signed(self) -> Expression:
        start = self.here.at
        sign = self.here.word
        if sign not in {"-", "+"}:
            return self._postfix()
        self.advance()
        self.depth += 1
        if self.depth > DEPTH_MAX:
            raise invalid(self.text, start, "it nests too deeply", f"at most {DEPTH_MAX} levels")
        operand = self._signed()
        self.depth -= 1
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
            return self._call()
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

    # Calls

    def _call(self) -> Expression:
        token = self.advance()
        self.expect("(")
        star = self.here.word == "*" and self.take("*")
        distinct = not star and self.take("DISTINCT")
        arguments = () if star or self.here.word == ")" else self.listed(self.expression)
        self.expect(")")
        condition = None
        if self.here.word == "FILTER" and self.take("FILTER", "(", "WHERE"):
            condition = self.expression()
            self.expect(")")
        over = self._over() if self.take("OVER") else None
        return Call(token.at, token.text.lower(), arguments, star, distinct, condition, over)

    def _over(self) -> Window:
        start = self.here.at
        self.expect("(")
        partition = self.listed(self.expression) if self.take("PARTITION", "BY") else ()
        order = self.listed(self._order) if self.take("ORDER", "BY") else ()
        frame = self._frame() if self.here.word in {"ROWS", "RANGE"} else None
        self.expect(")")
        return Window(start, partition, order, frame)

    def _order(self) -> Order:
        start = self.here.at
        key = self.expression()
        descending = not self.take("ASC") and self.take("DESC")
        nulls_first = None
        if self.take("NULLS"):
            nulls_first = self.take("FIRST")
            if not nulls_first:
                self.expect("LAST")
        return Order(start, key, descending, nulls_first)

    def _frame(self) -> tuple[Bound, Bound] | None:
        kind = self.advance()
        if self.take("BETWEEN"):
            low = self._bound("PRECEDING")
            self.expect("AND")
            high = self._bound("FOLLOWING")
        else:
            low, high = self._bound("PRECEDING"), Bound(kind.at, 0)
        if kind.word == "ROWS":
            if low.rows is not None and high.rows is not None and low.rows > high.rows:
                raise invalid(
                    self.text, kind.at, "the frame ends before it begins", "the earlier bound first"
                )
            return low, high
        if low.rows is None and high.rows is None:
            return low, high
        if low.rows is None and high.rows == 0:
            return None
        expected = "ROWS BETWEEN …, or RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        raise invalid(self.text, kind.at, "a RANGE of values is not part of the SQL of views", expected)

    def _bound(self, unbounded: str) -> Bound:
        start = self.here.at
        if self.take("UNBOUNDED", unbounded):
            return Bound(start, None)
        if self.take("CURRENT", "ROW"):
            return Bound(start, 0)
        if self.here.kind is not Kind.NUMBER or not self.here.text.isdecimal() or len(self.here.text) > 9:
            self.unexpected(f"UNBOUNDED {unbounded}, CURRENT ROW, or a number of rows PRECEDING or FOLLOWING")
        rows = int(self.advance().text)
        if self.take("PRECEDING"):
            return Bound(start, -rows)
        self.expect("FOLLOWING")
        return Bound(start, rows)
