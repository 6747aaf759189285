"""Calls of functions, aggregates and window functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from app.kernel.format.similar_names import similar_names
from app.kernel.sql.names import listed, no_such
from app.kernel.sql.queries.clause import Clause
from app.kernel.sql.queries.coercion import Untyped, common_type, is_flat
from app.kernel.sql.queries.functions.functions import FUNCTIONS, REFUSED_FUNCTIONS, Function, Role
from app.kernel.sql.queries.values import (
    NOTHING,
    Binding,
    Misfit,
    Value,
    as_condition,
    common_numbers,
    converted,
    made,
)
from app.kernel.sql.syntax import Call, Expression, FrameBound, Order, Window

# The result depends on the order of rows that ORDER BY leaves equal.
_BY_POSITION: Final = frozenset({"row_number", "ntile", "lag", "lead"})
_FRAMED: Final = frozenset({"first_value", "last_value"})


class CallBinder:
    """Binds the calls of one clause. `value` binds an expression of a clause. Raises InvalidView throughout."""

    def __init__(
        self, clause: Clause, binding: Binding, value: Callable[[Clause, Expression], Value]
    ) -> None:
        self.clause = clause
        self.binding = binding
        self._value_in = value

    def call(self, node: Call) -> Value:
        """The value of a call."""
        function = self._function(node)
        at = node.at
        if node.star and node.name != "count":
            raise self.binding.at(at, "only COUNT takes *", "a column")
        if node.over is None and function.role is Role.WINDOW:
            raise self.binding.at(at, f"{node.name} needs a window", "OVER (…) after it")
        if node.over is not None and function.role is Role.SCALAR:
            raise self.binding.at(at, f"{node.name} supports no window", "an aggregate or a window function")
        if function.role is not Role.AGGREGATE and (node.distinct or node.condition is not None):
            raise self.binding.at(at, "DISTINCT and FILTER belong to aggregates", "an aggregate")
        if function.role is Role.SCALAR:
            return self._called(node, function)
        if node.over is None:
            return self._aggregate(node, function)
        return self._windowed(node, function, node.over)

    def _function(self, node: Call) -> Function:
        function = FUNCTIONS.get(node.name)
        if function is not None:
            return function
        if node.name in REFUSED_FUNCTIONS:
            reason = f"{node.name} is not part of the SQL of views: {REFUSED_FUNCTIONS[node.name]}"
            raise self.binding.at(node.at, reason, "another function")
        similar = similar_names(node.name, FUNCTIONS)
        expectation = listed(similar) or "a function that the documentation lists"
        raise self.binding.at(node.at, no_such("function", node.name, similar), expectation)

    def _aggregate(self, node: Call, function: Function) -> Value:
        if self.clause.aggregates is not None:
            expectation = "HAVING, or a query in FROM that aggregates"
            raise self.binding.at(node.at, self.clause.aggregates, expectation)
        inner = self._inside("an aggregate", after_grouping=False)
        filter_clause = "" if node.condition is None else _filter(inner._condition(node.condition))
        call = inner._called(node, function, filter_clause)
        return replace(call, columns=NOTHING, aggregates=True)

    def _windowed(self, node: Call, function: Function, window: Window) -> Value:
        if self.clause.windows is not None:
            expectation = "QUALIFY, or a query in FROM that computes it"
            raise self.binding.at(node.at, self.clause.windows, expectation)
        self._check_window(node, function, window)
        inner = self._inside("a window function", after_grouping=True)
        partition = [inner._ordered(part) for part in window.partition]
        order = [inner._ordered(key.key) for key in window.order]
        keys = [_key(key, value) for key, value in zip(window.order, order, strict=True)]
        if node.name in _BY_POSITION or window.frame is not None:
            keys += self._tie_breakers(node.at, {value.sql for value in (*partition, *order)})
        clauses = []
        if partition:
            clauses.append("PARTITION BY " + ", ".join(part.sql for part in partition))
        if keys:
            clauses.append("ORDER BY " + ", ".join(keys))
        if window.frame is not None:
            low, high = window.frame
            clauses.append(f"ROWS BETWEEN {_bound(low, 'PRECEDING')} AND {_bound(high, 'FOLLOWING')}")
        rows = self._of(replace(inner.clause, aggregates="there are no aggregates in FILTER"))
        conditions = [] if node.condition is None else [rows._condition(node.condition)]
        filter_clause = "".join(map(_filter, conditions))
        call = inner._called(node, function, f"{filter_clause} OVER ({' '.join(clauses)})")
        operands = [call, *partition, *order, *conditions]
        return replace(made(node.at, call.sql, call.type, operands, nullable=call.nullable), windows=True)

    def _check_window(self, node: Call, function: Function, window: Window) -> None:
        if node.distinct:
            expectation = "an aggregate in a query in FROM"
            raise self.binding.at(node.at, "a window function cannot be DISTINCT", expectation)
        if (function.role is Role.WINDOW or window.frame is not None) and not window.order:
            raise self.binding.at(window.at, f"{node.name} depends on an order here", "OVER (… ORDER BY …)")
        if node.name in _FRAMED and window.frame is None:
            expectation = "… ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING, for one"
            raise self.binding.at(window.at, f"{node.name} needs a frame of rows", expectation)
        if window.frame is not None and function.role is Role.WINDOW and node.name not in _FRAMED:
            raise self.binding.at(window.at, f"{node.name} supports no frame", "OVER (… ORDER BY …)")

    def _inside(self, what: str, *, after_grouping: bool) -> CallBinder:
        """A binder for arguments. An aggregate reads rows before they are grouped, a window function those after."""
        clause = self.clause.inside(what)
        if not after_grouping:
            clause = replace(clause, groups=None, aggregates="aggregates cannot be nested")
        return self._of(clause)

    def _of(self, clause: Clause) -> CallBinder:
        return CallBinder(clause, self.binding, self._value_in)

    def _value(self, node: Expression) -> Value:
        return self._value_in(self.clause, node)

    def _condition(self, node: Expression) -> Value:
        return as_condition(self._value(node), self.binding)

    def _called(self, node: Call, function: Function, behind: str = "") -> Value:
        """The call. `behind`: its FILTER and OVER."""
        if node.star:
            return made(node.at, f"count(*){behind}", function.type_of(()), (), nullable=False)
        values = self._arguments(node, function)
        try:
            return _spelled(function, node.name, node.at, values, distinct=node.distinct, behind=behind)
        except Misfit as misfit:
            reason = f"the arguments of {node.name} do not match each other"
            raise self.binding.at(node.at, reason, str(misfit)) from None

    def _arguments(self, node: Call, function: Function) -> list[Value]:
        if not function.takes(len(node.arguments)):
            least, most = len(function.parameters) - function.optional, len(function.parameters)
            count = (
                f"{least} or more"
                if function.repeats
                else f"{least}"
                if least == most
                else f"{least} to {most}"
            )
            raise self.binding.at(node.at, f"{node.name} has {len(node.arguments)} arguments here", count)
        values = []
        for number, argument in enumerate(node.arguments):
            value = self._value(argument)
            parameter = function.parameter(number)
            type_ = parameter.type_for(value.type)
            if type_ is None or (parameter.literal is not None and not parameter.literal(value)):
                reason = f"{node.name} does not take this {value.named()}"
                raise self.binding.at(argument.at, reason, parameter.expectation)
            values.append(value if parameter.literal is not None else converted(value, type_))
        return values

    def _ordered(self, node: Expression) -> Value:
        value = self._value(node)
        if not is_flat(value.type):
            raise self.binding.at(node.at, f"values of type {value.named()} have no order", "another column")
        return value

    def _tie_breakers(self, at: int, present_keys: set[str]) -> list[str]:
        """Further sort keys for rows that the ORDER BY leaves equal, so that their order is always the same."""
        if self.clause.groups is not None:
            return [f"{sql} ASC NULLS FIRST" for sql in sorted(self.clause.groups - present_keys)]
        relations = self.clause.scope.relations
        columns = [
            column.value(at, self.binding).sql for relation in relations for column in relation.tie_breakers()
        ]
        self.binding.add_columns(at, len(columns))
        return [f"{sql} ASC NULLS FIRST" for sql in columns if sql not in present_keys]


def _filter(condition: Value) -> str:
    return f" FILTER (WHERE {condition.sql})"


def _key(key: Order, value: Value) -> str:
    nulls_first = key.nulls_first if key.nulls_first is not None else not key.descending
    return f"{value.sql} {'DESC' if key.descending else 'ASC'} NULLS {'FIRST' if nulls_first else 'LAST'}"


def _bound(bound: FrameBound, direction: str) -> str:
    if bound.rows is None:
        return f"UNBOUNDED {direction}"
    if bound.rows == 0:
        return "CURRENT ROW"
    return f"{abs(bound.rows)} {'PRECEDING' if bound.rows < 0 else 'FOLLOWING'}"


_NULL_IF_ALL_ARE: Final = frozenset({"coalesce", "ifnull", "nvl", "greatest", "least"})
_CHOOSING: Final = frozenset({"if", "nvl2"})
_ARITHMETIC: Final = frozenset({"try_add", "try_subtract", "try_multiply", "try_divide", "mod"})


def _spelled(
    function: Function,
    name: str,
    at: int,
    values: Sequence[Value],
    *,
    distinct: bool = False,
    behind: str = "",
) -> Value:
    """The call with converted arguments. `behind`: its FILTER and OVER. Raises Misfit."""
    arguments = _as_common_numbers(name, _alike(function, values))
    type_ = function.type_of(arguments)
    if type_ is Untyped.NULL:
        raise Misfit("CAST(NULL AS type)")
    argument_list = ", ".join(argument.sql for argument in arguments)
    spelling = name if function.spelling is None else function.spelling
    sql = function.template.format(f"{spelling}({'DISTINCT ' if distinct else ''}{argument_list}){behind}")
    nullable = function.nullable
    if name in _NULL_IF_ALL_ARE:
        nullable = all(argument.nullable for argument in arguments)
    elif name in _CHOOSING:
        nullable = any(argument.nullable for argument in arguments[1:])
    return made(at, sql, type_, arguments, nullable=nullable)


def _alike(function: Function, values: Sequence[Value]) -> list[Value]:
    if function.alike is None:
        return list(values)
    leading, alike = list(values[: function.alike]), values[function.alike :]
    type_ = common_type(value.type for value in alike)
    if type_ is None:
        raise Misfit("arguments of one type: CAST(… AS type)")
    return leading + [converted(value, type_) for value in alike]


def _as_common_numbers(name: str, values: list[Value]) -> list[Value]:
    if name not in _ARITHMETIC:
        return values
    return common_numbers(values[0], values[1], divides=name == "try_divide")
