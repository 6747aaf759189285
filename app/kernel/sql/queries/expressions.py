"""Binds expressions of a view: resolves every column and type, and makes all conversions in the SQL explicit."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from app.kernel.codecs.faults import shown
from app.kernel.format.schema.types import (
    BINARY,
    BOOLEAN,
    DATE,
    INT32,
    INT64,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    List,
    Map,
)
from app.kernel.sql.queries.calls import CallBinder
from app.kernel.sql.queries.clause import Clause
from app.kernel.sql.queries.coercion import (
    SqlType,
    Untyped,
    castable,
    common_type,
    computed_type,
    is_flat,
    is_integer,
    is_numeric,
)
from app.kernel.sql.queries.literals import literal_value
from app.kernel.sql.queries.relation_types import spark_type, text_literal
from app.kernel.sql.queries.scope import column_of, member_of, no_column
from app.kernel.sql.queries.values import Binding, Value, as_condition, common_numbers, converted, made
from app.kernel.sql.syntax import (
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
    LikePredicate,
    Member,
    Name,
    Null,
    NullTest,
    Number,
    Scalar,
    Text,
    Truth,
    TypedText,
    Unary,
)

_COMPARES: Final = frozenset({"=", "<>", "<", "<=", ">", ">=", "<=>"})
_TIMES: Final[dict[SqlType | None, str]] = {
    DATE: "DATE",
    TIMESTAMP: "TIMESTAMP",
    TIMESTAMP_NTZ: "TIMESTAMP_NTZ",
}
# Engines try every assignment of a text to the wildcards: its length to the power of their number.
PATTERN_WILDCARDS_MAX: Final = 4
_DATE_UNITS: Final = frozenset({"DAY", "WEEK", "MONTH", "QUARTER", "YEAR"})


class Binder:
    """Binds the expressions of one clause. Raises InvalidView throughout."""

    def __init__(self, clause: Clause, binding: Binding) -> None:
        self.clause = clause
        self.binding = binding

    def value(self, node: Expression) -> Value:
        value = self._bound(node)
        if self.clause.groups and value.sql in self.clause.groups:
            return replace(value, columns=frozenset())
        return value

    def condition(self, node: Expression) -> Value:
        """A value that is true, false or null."""
        return as_condition(self.value(node), self.binding)

    def _bound(self, node: Expression) -> Value:  # noqa: C901 # one line for each kind of expression
        match node:
            case Name():
                return self._column(node)
            case Number() | Text() | Truth() | Null() | TypedText():
                return literal_value(node, self.binding)
            case Interval():
                raise self.binding.at(
                    node.at, "an interval is not a value", "a date or timestamp + or - the interval"
                )
            case Unary():
                return self._unary(node)
            case Binary():
                return self._binary(node)
            case Connective():
                operands = [self.condition(operand) for operand in node.operands]
                sql = f" {node.operator} ".join(operand.sql for operand in operands)
                return made(node.at, f"({sql})", BOOLEAN, operands)
            case NullTest():
                operand = self.value(node.operand)
                sql = f"({operand.sql} IS {'NOT ' if node.negated else ''}NULL)"
                return made(node.at, sql, BOOLEAN, [operand], nullable=False)
            case Is():
                operand = self.condition(node.operand)
                sql = f"({operand.sql} IS {'NOT ' if node.negated else ''}{str(node.value).upper()})"
                return made(node.at, sql, BOOLEAN, [operand], nullable=False)
            case Between():
                operand, low, high = self._compared(node.at, node.operand, node.low, node.high)
                sql = f"({operand.sql} {'NOT ' if node.negated else ''}BETWEEN {low.sql} AND {high.sql})"
                return made(node.at, sql, BOOLEAN, [operand, low, high])
            case InList():
                operand, *candidates = self._compared(node.at, node.operand, *node.candidates)
                candidate_list = ", ".join(candidate.sql for candidate in candidates)
                sql = f"({operand.sql} {'NOT ' if node.negated else ''}IN ({candidate_list}))"
                return made(node.at, sql, BOOLEAN, [operand, *candidates])
            case LikePredicate():
                return self._like(node)
            case Case():
                return self._case(node)
            case Cast():
                return self._cast(node)
            case Call():
                return CallBinder(self.clause, self.binding, self._value_in).call(node)
            case Member():
                return member_of(self.value(node.operand), node.name, self.binding)
            case Element():
                return self._element(node)
            case InQuery() | Exists() | Scalar():
                return self._query(node)

    def _value_in(self, clause: Clause, node: Expression) -> Value:
        return Binder(clause, self.binding).value(node)

    def _column(self, node: Name) -> Value:
        value = column_of(node, self.clause.scope, self.binding)
        if value is None and len(node.parts) == 1:
            value = self._aliased(node)
        if value is None and self.clause.outer is not None:
            value = column_of(node, self.clause.outer, self.binding)
            if value is not None:
                # A column of the outer row is the same for all inner rows.
                value = replace(value, columns=frozenset())
                self.binding.outer_columns += 1
        if value is None:
            scopes = (
                [self.clause.scope] if self.clause.outer is None else [self.clause.scope, self.clause.outer]
            )
            raise no_column(node, scopes, self.binding)
        return value

    def _aliased(self, node: Name) -> Value | None:
        """The column of the SELECT list with this alias, expanded; None if there is no such column, or none may be
        named.
        """
        value = self.clause.aliases.get(node.parts[0].casefold())
        if value is None:
            return None
        clause = self.clause
        restrictions = (
            (value.aggregates, clause.aggregates),
            (value.windows, clause.windows),
            (value.queries, clause.queries),
        )
        for holds, reason in restrictions:
            if holds and reason is not None:
                raise self.binding.at(node.at, reason, "a query in FROM that computes it")
        self.binding.write_out(node.at, value.sql)
        return replace(value, at=node.at)

    def _unary(self, node: Unary) -> Value:
        if node.operator == "NOT":
            operand = self.condition(node.operand)
            return made(node.at, f"(NOT {operand.sql})", BOOLEAN, [operand])
        operand = self.value(node.operand)
        if not is_numeric(operand.type):
            raise self.binding.mistyped(operand, f"`{node.operator}`", "a number")
        if node.operator == "+":
            return operand
        literal = -operand.literal if isinstance(operand.literal, int | float) else None
        return replace(made(node.at, f"(- {operand.sql})", operand.type, [operand]), literal=literal)

    def _binary(self, node: Binary) -> Value:
        if node.operator in _COMPARES:
            one, other = self._compared(node.at, node.left, node.right)
            sql = f"({one.sql} {node.operator} {other.sql})"
            return made(
                node.at, sql, BOOLEAN, [one, other], nullable=False if node.operator == "<=>" else None
            )
        if isinstance(node.right, Interval) and node.operator in {"+", "-"}:
            return self._shifted(node, self.value(node.left), node.right)
        if isinstance(node.left, Interval) and node.operator == "+":
            return self._shifted(node, self.value(node.right), node.left)
        one, other = self.value(node.left), self.value(node.right)
        if node.operator == "||":
            for value in (one, other):
                if value.type not in (STRING, Untyped.NULL):
                    raise self.binding.mistyped(value, "`||`", "a string: CAST(… AS string)")
            return made(node.at, f"({one.sql} || {other.sql})", STRING, [one, other])
        return self._arithmetic(node, one, other)

    def _arithmetic(self, node: Binary, one: Value, other: Value) -> Value:
        for value in (one, other):
            if not is_numeric(value.type):
                expectation = "a number; for dates + or - an INTERVAL, date_add or datediff"
                raise self.binding.mistyped(value, f"`{node.operator}`", expectation)
        if node.operator == "DIV":
            for value in (one, other):
                if not is_integer(value.type):
                    raise self.binding.mistyped(value, "`DIV`", "an integer")
            one, other = converted(one, INT64), converted(other, INT64)
            return made(node.at, f"({one.sql} DIV {other.sql})", INT64, [one, other])
        one, other = common_numbers(one, other, divides=node.operator == "/")
        type_ = computed_type(node.operator, one.type, other.type)
        return made(node.at, f"({one.sql} {node.operator} {other.sql})", type_, [one, other])

    def _shifted(self, node: Binary, moment: Value, interval: Interval) -> Value:
        if moment.type not in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
            raise self.binding.mistyped(moment, "an INTERVAL", "a date or a timestamp")
        if moment.type == DATE and interval.unit not in _DATE_UNITS:
            raise self.binding.at(
                interval.at, f"a date has no {interval.unit}", "CAST(… AS timestamp) + INTERVAL …"
            )
        amount, unit = interval.amount, interval.unit
        multiple = {"WEEK": (7, "DAY"), "QUARTER": (3, "MONTH")}.get(unit)
        if multiple is not None:
            amount, unit = amount * multiple[0], multiple[1]
        if unit in {"MILLISECOND", "MICROSECOND"}:
            thousandths = 3 if unit == "MILLISECOND" else 6
            digits = str(abs(amount)).zfill(thousandths + 1)
            number, unit = f"{digits[:-thousandths]}.{digits[-thousandths:]}", "SECOND"
            number = f"-{number}" if amount < 0 else number
        else:
            number = str(amount)
        return made(
            node.at, f"({moment.sql} {node.operator} INTERVAL '{number}' {unit})", moment.type, [moment]
        )

    def _compared(self, at: int, *nodes: Expression) -> list[Value]:
        """The values as one type with an order."""
        values = self._with_times([self.value(node) for node in nodes])
        type_ = common_type(value.type for value in values)
        if type_ is None:
            kinds = " and ".join(dict.fromkeys(value.named() for value in values))
            raise self.binding.at(
                at,
                f"{kinds} cannot be compared",
                "values of one type: CAST(… AS type), DATE '…', TIMESTAMP '…'",
            )
        if not is_flat(type_):
            raise self.binding.at(
                at, f"values of type {type_} cannot be compared", "their members or elements"
            )
        return [converted(value, type_) for value in values]

    def _with_times(self, values: list[Value]) -> list[Value]:
        """The values; string literals beside dates and timestamps are read as such."""
        kind = _TIMES.get(common_type(value.type for value in values if not isinstance(value.literal, str)))
        if kind is None:
            return values
        return [
            literal_value(TypedText(value.at, kind, value.literal), self.binding)
            if isinstance(value.literal, str)
            else value
            for value in values
        ]

    def _like(self, node: LikePredicate) -> Value:
        operand = self.value(node.operand)
        if operand.type != STRING:
            raise self.binding.mistyped(operand, "LIKE", "a string")
        if node.pattern.value.count("%") > PATTERN_WILDCARDS_MAX:
            expectation = f"at most {PATTERN_WILDCARDS_MAX} of %"
            raise self.binding.at(node.pattern.at, "the pattern has too many wildcards", expectation)
        sql = f"({operand.sql} {'NOT ' if node.negated else ''}LIKE {text_literal(node.pattern.value)})"
        return made(node.at, sql, BOOLEAN, [operand])

    def _case(self, node: Case) -> Value:
        if node.operand is None:
            conditions = [self.condition(condition) for condition, _ in node.branches]
            head: list[Value] = []
        else:
            operand, *conditions = self._compared(node.at, node.operand, *(when for when, _ in node.branches))
            head = [operand]
        results = [self.value(result) for _, result in node.branches]
        defaults = [] if node.default is None else [self.value(node.default)]
        type_ = common_type(result.type for result in results + defaults)
        if type_ is None or type_ is Untyped.NULL:
            kinds = " and ".join(dict.fromkeys(result.named() for result in results + defaults))
            raise self.binding.at(node.at, f"the results have no type in common: {kinds}", "CAST(… AS type)")
        results, defaults = (
            [converted(result, type_) for result in results],
            [converted(each, type_) for each in defaults],
        )
        branches = " ".join(
            f"WHEN {condition.sql} THEN {result.sql}"
            for condition, result in zip(conditions, results, strict=True)
        )
        default = f" ELSE {defaults[0].sql}" if defaults else ""
        sql = f"CASE {head[0].sql + ' ' if head else ''}{branches}{default} END"
        nullable = not defaults or any(result.nullable for result in results + defaults)
        return made(node.at, f"({sql})", type_, [*head, *conditions, *results, *defaults], nullable=nullable)

    def _cast(self, node: Cast) -> Value:
        operand = self.value(node.operand)
        if not castable(operand.type, node.type):
            raise self.binding.at(
                node.at, f"{operand.named()} cannot be cast to {node.type}", "a type that it can be cast to"
            )
        word = "TRY_CAST" if node.safe else "CAST"
        sql = f"{word}({operand.sql} AS {spark_type(node.type)})"
        # The engine treats values parsed from strings as nullable, though it fails for invalid strings.
        nullable = node.safe or (operand.type == STRING and node.type not in (STRING, BINARY))
        return made(node.at, sql, node.type, [operand], nullable=True if nullable else None)

    def _element(self, node: Element) -> Value:
        operand, index = self.value(node.operand), self.value(node.index)
        if isinstance(operand.type, Map) and index.type == operand.type.key:
            return made(
                node.at, f"{operand.sql}[{index.sql}]", operand.type.value, [operand, index], nullable=True
            )
        if isinstance(operand.type, List) and is_integer(index.type):
            return made(
                node.at,
                f"get({operand.sql}, {converted(index, INT32).sql})",
                operand.type.element,
                [operand, index],
                nullable=True,
            )
        raise self.binding.mistyped(
            operand, f"[{index.named()}]", "a list with the number of an element, or a map with a key"
        )

    def _query(self, node: InQuery | Exists | Scalar) -> Value:
        if self.clause.queries is not None:
            raise self.binding.at(node.at, self.clause.queries, "a JOIN, or a query in WITH")
        if isinstance(node, Scalar):
            return self._scalar(node)
        if self.clause.name != "WHERE":
            raise self.binding.at(node.at, "EXISTS and IN with a query belong in WHERE", "a JOIN here")
        subquery = self.clause.subquery(node.query, self.clause.scope)
        if isinstance(node, Exists):
            return replace(
                Value(node.at, f"(EXISTS ({subquery.sql}))", BOOLEAN, nullable=False), queries=True
            )
        operand = self.value(node.operand)
        if len(subquery.columns) != 1:
            raise self.binding.at(
                node.query.at, f"the query has {len(subquery.columns)} columns", "one column"
            )
        [column] = subquery.columns
        if operand.type != column.type or not is_flat(operand.type):
            reason = f"{operand.named()} is compared with values of type {column.named()}"
            raise self.binding.at(node.at, reason, "values of one type: CAST(… AS type)")
        sql = f"({operand.sql} {'NOT ' if node.negated else ''}IN ({subquery.sql}))"
        return replace(made(node.at, sql, BOOLEAN, [operand], nullable=True), queries=True)

    def _scalar(self, node: Scalar) -> Value:
        subquery = self.clause.subquery(node.query, None)
        if len(subquery.columns) != 1 or not subquery.single_row:
            expectation = "one aggregate without GROUP BY, such as (SELECT MAX(x) FROM t)"
            raise self.binding.at(node.at, "this query may return several rows, or columns", expectation)
        [column] = subquery.columns
        if column.type is Untyped.NULL:
            raise self.binding.at(node.at, f"{shown('NULL')} has no type", "CAST(NULL AS type)")
        return replace(made(node.at, f"({subquery.sql})", column.type, [column], nullable=True), queries=True)
