"""The syntax tree of conditions and queries: all their parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from app.kernel.format.schema.types import DataType


class Side(Enum):
    """The side of a join whose rows are kept, or whether only rows of the left are returned."""

    INNER = "INNER"
    CROSS = "CROSS"
    LEFT = "LEFT"
    RIGHT = "RIGHT"
    FULL = "FULL"
    SEMI = "LEFT SEMI"
    ANTI = "LEFT ANTI"


@dataclass(frozen=True, slots=True)
class Node:
    """A part of the text. `at`: the number of characters before it."""

    at: int


@dataclass(frozen=True, slots=True)
class Name(Node):
    """A column: `a`, `t.a`, or a member of a struct after it. `places`: the start of each part."""

    parts: tuple[str, ...]
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Number(Node):
    """A number as it is written."""

    text: str


@dataclass(frozen=True, slots=True)
class Text(Node):
    """A string."""

    value: str


@dataclass(frozen=True, slots=True)
class Truth(Node):
    """TRUE or FALSE."""

    value: bool


@dataclass(frozen=True, slots=True)
class Null(Node):
    """NULL."""


@dataclass(frozen=True, slots=True)
class TypedText(Node):
    """DATE '…', TIMESTAMP '…', TIMESTAMP_NTZ '…' or X'…'. `kind`: the word before the string."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Interval(Node):
    """INTERVAL amount unit; the unit in capitals, singular."""

    amount: int
    unit: str


@dataclass(frozen=True, slots=True)
class Unary(Node):
    """NOT, or a sign before a number."""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class Binary(Node):
    """Arithmetic, `||`, a comparison, or `<=>`."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Connective(Node):
    """Conditions joined by AND, or by OR."""

    operator: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class NullTest(Node):
    operand: Expression
    negated: bool


@dataclass(frozen=True, slots=True)
class Is(Node):
    """IS [NOT] TRUE or FALSE."""

    operand: Expression
    value: bool
    negated: bool


@dataclass(frozen=True, slots=True)
class Between(Node):
    operand: Expression
    low: Expression
    high: Expression
    negated: bool


@dataclass(frozen=True, slots=True)
class InList(Node):
    operand: Expression
    candidates: tuple[Expression, ...]
    negated: bool


@dataclass(frozen=True, slots=True)
class InQuery(Node):
    operand: Expression
    query: Query
    negated: bool


@dataclass(frozen=True, slots=True)
class LikePredicate(Node):
    """`pattern`: `%` is any text, `_` any character, `\\` escapes the next character."""

    operand: Expression
    pattern: Text
    negated: bool


@dataclass(frozen=True, slots=True)
class Case(Node):
    operand: Expression | None
    branches: tuple[tuple[Expression, Expression], ...]
    default: Expression | None


@dataclass(frozen=True, slots=True)
class Cast(Node):
    """CAST, or TRY_CAST if `safe`."""

    operand: Expression
    type: DataType
    safe: bool


@dataclass(frozen=True, slots=True)
class Order(Node):
    """A key of ORDER BY. `nulls_first` is None if not specified."""

    key: Expression
    descending: bool
    nulls_first: bool | None


@dataclass(frozen=True, slots=True)
class FrameBound(Node):
    """An end of a frame of rows: `rows` before (negative) or after the current row, 0 for the current row, None for no
    end.
    """

    rows: int | None


@dataclass(frozen=True, slots=True)
class Window(Node):
    """The contents of OVER. Without a frame of rows, `start` and `end` are None."""

    partition: tuple[Expression, ...]
    order: tuple[Order, ...]
    frame: tuple[FrameBound, FrameBound] | None


@dataclass(frozen=True, slots=True)
class Call(Node):
    """A function. `star`: COUNT(*)."""

    name: str
    arguments: tuple[Expression, ...]
    star: bool = False
    distinct: bool = False
    condition: Expression | None = None
    over: Window | None = None


@dataclass(frozen=True, slots=True)
class Member(Node):
    """A member of a struct that is not a column by itself."""

    operand: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Element(Node):
    """`operand[index]`: an element of a list, from 0, or the value of a map."""

    operand: Expression
    index: Expression


@dataclass(frozen=True, slots=True)
class Exists(Node):
    query: Query


@dataclass(frozen=True, slots=True)
class Scalar(Node):
    """A query that returns one value."""

    query: Query


Literal: TypeAlias = Number | Text | Truth | Null | TypedText
Expression: TypeAlias = (
    Name | Number | Text | Truth | Null | TypedText | Interval | Unary | Binary | Connective | NullTest | Is | Between
    | InList | InQuery | LikePredicate | Case | Cast | Call | Member | Element | Exists | Scalar
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Item(Node):
    """An expression of a SELECT list, with its alias."""

    value: Expression
    alias: str | None


@dataclass(frozen=True, slots=True)
class Star(Node):
    """`*`, or `t.*`."""

    table: str | None


@dataclass(frozen=True, slots=True)
class Table(Node):
    """A dataset or a CTE by name."""

    name: str
    alias: str | None


@dataclass(frozen=True, slots=True)
class Derived(Node):
    """A query in FROM."""

    query: Query
    alias: str | None
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Join(Node):
    """With ON or USING; neither for a cross join."""

    side: Side
    left: Source
    right: Source
    on: Expression | None
    using: tuple[str, ...]


Source: TypeAlias = Table | Derived | Join


@dataclass(frozen=True, slots=True)
class Common(Node):
    """One query of WITH."""

    name: str
    columns: tuple[str, ...]
    query: Query


@dataclass(frozen=True, slots=True)
class Select(Node):
    items: tuple[Item | Star, ...]
    distinct: bool = False
    source: Source | None = None
    where: Expression | None = None
    group: tuple[Expression, ...] = ()
    having: Expression | None = None
    qualify: Expression | None = None
    common: tuple[Common, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class SetOperation(Node):
    """UNION, INTERSECT or EXCEPT of two queries; with ALL, equal rows count."""

    operator: str
    all: bool
    left: Query
    right: Query
    common: tuple[Common, ...] = field(default=())


Query: TypeAlias = Select | SetOperation
