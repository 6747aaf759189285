"""How many different values a column or an expression has, as far as the SQL shows.

Columns of datasets have many. What is computed from them may have few, unless a function keeps about as many. A literal
has one, and so has what is the same for all rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final

from app.kernel.format.schema.types import BOOLEAN
from app.kernel.sql.queries.scope import Scope, ScopeColumn, Variety
from app.kernel.sql.syntax import (
    Binary,
    Call,
    Cast,
    Element,
    Expression,
    Member,
    Name,
    Node,
    Select,
    SetOperation,
)

# Functions that have about as many values as their first argument, and as any of their arguments.
_AS_FIRST: Final = frozenset(
    "lower upper initcap trim ltrim rtrim reverse replace translate hex unhex base64 unbase64 md5 sha1 sha2 to_date "
    "trunc coalesce ifnull nvl".split()
)
_AS_ANY: Final = frozenset({"concat", "concat_ws", "xxhash64", "date_trunc"})
# The same of aggregates and of window functions, for a column of a query in FROM.
_GROUPED_AS_FIRST: Final = frozenset("max min any_value first last max_by min_by".split())
_WINDOWED_AS_FIRST: Final = frozenset({"lag", "lead"})


def variety_of(part: Expression, scope: Scope) -> Variety:
    """The variety of an expression on columns of the scope."""
    found = _kept(part, scope)
    return Variety.FEW if found is not Variety.MANY and columns_in(part, scope) else found


def _kept(part: Expression, scope: Scope) -> Variety:
    """The variety that an expression has from a part of it; ONE if it has none from a part."""
    match part:
        case Name():
            return max((column.variety for column in _named(part, scope)), default=Variety.ONE)
        case Cast():
            return Variety.ONE if part.type == BOOLEAN else _kept(part.operand, scope)
        case Member() | Element():
            return _kept(part.operand, scope)
        case Binary(operator="||"):
            return max(_kept(part.left, scope), _kept(part.right, scope))
        case Call():
            return max((_kept(each, scope) for each in _determining(part)), default=_of_numbers(part))
        case _:
            return Variety.ONE


def _determining(call: Call) -> tuple[Expression, ...]:
    """The arguments of which the result has about as many values."""
    if call.over is None:
        if call.name in _AS_ANY:
            return call.arguments
        return call.arguments[:1] if call.name in _AS_FIRST | _GROUPED_AS_FIRST else ()
    return call.arguments[:1] if call.name in _WINDOWED_AS_FIRST else ()


def _of_numbers(call: Call) -> Variety:
    """Rows that are numbered throughout have different numbers."""
    numbered = call.name == "row_number" and call.over is not None and not call.over.partition
    return Variety.MANY if numbered else Variety.ONE


def columns_in(part: Any, scope: Scope) -> frozenset[str]:
    """The SQL of the columns that an expression needs, except in subqueries, and those with one value."""
    if isinstance(part, Name):
        return frozenset(column.sql for column in _named(part, scope) if column.variety is not Variety.ONE)
    if isinstance(part, Select | SetOperation):
        return frozenset()
    parts = part if isinstance(part, tuple) else ()
    if isinstance(part, Call) and part.over is not None and part.name not in _WINDOWED_AS_FIRST:
        # All rows of a window may have one result, whatever it is computed from.
        parts = (part.over,)
    elif isinstance(part, Node):
        parts = tuple(getattr(part, each.name) for each in fields(part))
    return frozenset[str]().union(*(columns_in(each, scope) for each in parts))


def without_duplicates(varieties: list[Variety]) -> list[Variety]:
    """The varieties of columns whose rows differ: if all of them have few values, there are few rows."""
    if Variety.MANY in varieties:
        return varieties
    return [Variety.MANY if each is Variety.FEW else each for each in varieties]


def _named(name: Name, scope: Scope) -> Iterator[ScopeColumn]:
    if len(name.parts) > 1 and scope.has_table(name.parts[0]):
        yield from scope.find(name.parts[0], name.parts[1])
    else:
        yield from scope.find(None, name.parts[0])
