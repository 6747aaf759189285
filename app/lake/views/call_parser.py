"""Tokens to calls of functions, with their FILTER and OVER."""

from __future__ import annotations

from typing import Final

from app.lake.views.token_reader import TokenReader
from app.lake.views.tokens import Kind, invalid
from app.lake.views.tree import Bound, Call, Expression, Order, Window

_ROWS_DIGITS_MAX: Final = 9


class CallParser(TokenReader):
    """Reads calls from tokens. Raises InvalidView throughout."""

    def expression(self) -> Expression:
        """Any expression: up to whoever reads more than calls."""
        raise NotImplementedError

    def call(self) -> Expression:
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
        if (
            self.here.kind is not Kind.NUMBER
            or not self.here.text.isdecimal()
            or len(self.here.text) > _ROWS_DIGITS_MAX
        ):
            self.unexpected(f"UNBOUNDED {unbounded}, CURRENT ROW, or a number of rows PRECEDING or FOLLOWING")
        rows = int(self.advance().text)
        if self.take("PRECEDING"):
            return Bound(start, -rows)
        self.expect("FOLLOWING")
        return Bound(start, rows)
