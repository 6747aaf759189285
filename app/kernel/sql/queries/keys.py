"""Keys of a view: columns that identify its rows, as far as its SQL shows."""

from __future__ import annotations

from collections.abc import Sequence

from app.kernel.format.schema.schema import Schema
from app.kernel.format.schema.types import may_be_key
from app.kernel.sql.queries.bound import BoundSelect
from app.kernel.sql.queries.expressions import Binder
from app.kernel.sql.queries.values import Binding, Value
from app.kernel.sql.syntax import Binary, Call, Expression, Item, Name, Number, Select


def passed_on(key: Sequence[str], schema: Schema, select: BoundSelect) -> dict[str, str]:
    """The fields of a record key that are unchanged columns of the result: for each, the name of the first one."""
    [relation] = select.source.scope.relations
    sql_of = {column.name: column.sql for column in relation.columns}
    key_columns: dict[str, str] = {}
    for name in key:
        for field, value in zip(schema.fields, select.values, strict=True):
            if value.sql == sql_of[name]:
                key_columns.setdefault(name, field.name)
    return key_columns


def key_of_select(query: Select, schema: Schema, select: BoundSelect, binding: Binding) -> tuple[str, ...]:
    """The columns of which a SELECT has one row per value, if all are in its result and can be a key.

    These are the columns that it groups by, or the PARTITION BY of the first row that it selects.
    """
    if select.groups is not None:
        return _columns_of(select.groups, schema, select)
    binder = Binder(select.clause, binding)
    return _columns_of([binder.value(part) for part in _first_of(query, select)], schema, select)


def _columns_of(values: Sequence[Value], schema: Schema, select: BoundSelect) -> tuple[str, ...]:
    """The names of columns with these values that can be a key; empty if one of the values has no such column."""
    columns: dict[str, None] = {}
    for group in values:
        names = [
            field.name
            for field, value in zip(schema.fields, select.values, strict=True)
            if value.sql == group.sql and not field.nullable and may_be_key(field.data_type())
        ]
        if not names:
            return ()
        columns[names[0]] = None
    return tuple(columns)


def _first_of(query: Select, select: BoundSelect) -> tuple[Expression, ...]:
    """The columns of which QUALIFY keeps the first row: x in ROW_NUMBER() OVER (PARTITION BY x ORDER BY …) = 1."""
    match query.qualify:
        case Binary(operator="=", left=operand, right=Number(text="1")):
            number = _meant(query, select, operand)
        case Binary(operator="=", left=Number(text="1"), right=operand):
            number = _meant(query, select, operand)
        case _:
            return ()
    if isinstance(number, Call) and number.name == "row_number" and number.over is not None:
        return number.over.partition
    return ()


def _meant(query: Select, select: BoundSelect, node: Expression) -> Expression:
    """The expression that an alias stands for; a column of the same name has precedence."""
    if isinstance(node, Name) and len(node.parts) == 1 and not select.clause.scope.find(None, node.parts[0]):
        alias = node.parts[0].casefold()
        for item in query.items:
            if isinstance(item, Item) and item.alias is not None and item.alias.casefold() == alias:
                return item.value
    return node
