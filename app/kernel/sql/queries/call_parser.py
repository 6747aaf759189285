"""Parses tokens into calls of functions, with their FILTER and OVER, and into casts."""

from __future__ import annotations

from typing import Final

from app.kernel.format.schema.types import DataType, Timestamp, TypeSyntaxError, parse_type
from app.kernel.sql.expression_parser import ExpressionParser
from app.kernel.sql.lexer import TokenKind
from app.kernel.sql.queries.relation_types import relation_type
from app.kernel.sql.syntax import Call, Cast, Expression, FrameBound, Order, Window

_ROWS_DIGITS_MAX: Final = 9
_TYPE_NAMES: Final = {"tinyint": "int8", "smallint": "int16", "timestamp_ltz": "timestamp", "real": "float"}


class CallParser(ExpressionParser):
    """Reads calls. Raises InvalidView throughout."""

    def call(self) -> Expression:
        if self.here.kind is TokenKind.QUOTED:
            raise self.invalid(self.here.at, "names of functions cannot be quoted", "a function")
        match self.here.word:
            case "CAST" | "TRY_CAST":
                return self._cast()
            case "EXTRACT":
                return self._extract()
        return self._function()

    def _function(self) -> Expression:
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

    def _frame(self) -> tuple[FrameBound, FrameBound] | None:
        kind = self.advance()
        if self.take("BETWEEN"):
            low = self._bound("PRECEDING")
            self.expect("AND")
            high = self._bound("FOLLOWING")
        else:
            low, high = self._bound("PRECEDING"), FrameBound(kind.at, 0)
        if kind.word == "ROWS":
            if low.rows is not None and high.rows is not None and low.rows > high.rows:
                raise self.invalid(kind.at, "the frame ends before it begins", "the earlier bound first")
            return low, high
        if low.rows is None and high.rows is None:
            return low, high
        if low.rows is None and high.rows == 0:
            return None
        expectation = "ROWS BETWEEN …, or RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        raise self.invalid(kind.at, "a RANGE of values is not part of the SQL of views", expectation)

    def _bound(self, direction: str) -> FrameBound:
        start = self.here.at
        if self.take("UNBOUNDED", direction):
            return FrameBound(start, None)
        if self.take("CURRENT", "ROW"):
            return FrameBound(start, 0)
        if (
            self.here.kind is not TokenKind.NUMBER
            or not self.here.text.isdecimal()
            or len(self.here.text) > _ROWS_DIGITS_MAX
        ):
            self.unexpected(f"UNBOUNDED {direction}, CURRENT ROW, or a number of rows PRECEDING or FOLLOWING")
        rows = int(self.advance().text)
        if self.take("PRECEDING"):
            return FrameBound(start, -rows)
        self.expect("FOLLOWING")
        return FrameBound(start, rows)

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
        depth = 0
        while self.here.kind is not TokenKind.END and (depth or self.here.word != ")"):
            depth += {"(": 1, ")": -1}.get(self.advance().word, 0)
        spelling = self.text[start : self.here.at].strip()
        try:
            data_type = parse_type(_TYPE_NAMES.get(spelling.lower(), spelling))
        except TypeSyntaxError as error:
            raise self.invalid(start, str(error), "a type") from None
        if relation_type(data_type) != data_type:
            expectation = str(relation_type(data_type))
            reason = (
                f"the engine has no type {data_type}"
                if not isinstance(data_type, Timestamp)
                else "times are in microseconds"
            )
            raise self.invalid(start, reason, expectation)
        return data_type

    def _extract(self) -> Expression:
        start = self.advance().at
        self.expect("(")
        part = self.name("a part of a time: YEAR, MONTH, DAY …").lower()
        self.expect("FROM")
        operand = self.expression()
        self.expect(")")
        return Call(start, part, (operand,))
