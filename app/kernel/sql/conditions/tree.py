"""A filter as a value: a tree of conditions on the columns of one schema.

Conditions follow the three-valued logic of SQL: each is true, false or unknown for a row. A condition on a null column
is unknown, except `IsNull`. Literals are values of their column's type.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from app.kernel.format.schema.types import FlatType, parse_type

# A literal, by the type of its column. Each form can be represented in msgpack and in JSON:
#     boolean                             bool
#     integers                            int
#     float, double                       float, finite
#     decimal                             str: all digits of the scale, "2.40"
#     string                              str
#     binary                              str: hexadecimal digits, "00ff"
#     date, timestamp, timestamp_ntz      int: days, or ticks of the column's unit, since 1970-01-01
Value = bool | int | float | str


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """A column, or a member within a struct column. `path`: the column's name, then members; `type`: its type."""

    path: tuple[str, ...]
    type: str

    def flat_type(self) -> FlatType:
        """The type, of a column that is compared with literals. Raises TypeError for a list, map or struct."""
        data_type = parse_type(self.type)
        if not isinstance(data_type, FlatType):
            raise TypeError(f"a column of type {self.type} is compared with no literal")
        return data_type


class Operator(str, Enum):
    """The comparison of a column with a value."""

    EQUAL = "="
    LESS = "<"
    LESS_OR_EQUAL = "<="
    GREATER = ">"
    GREATER_OR_EQUAL = ">="


class Comparison(msgspec.Struct, frozen=True, kw_only=True, tag="comparison"):
    """Unknown where the column is null."""

    column: Column
    operator: Operator
    value: Value


class OneOf(msgspec.Struct, frozen=True, kw_only=True, tag="one_of"):
    """The column's value is one of `values`, which are distinct and not empty. Unknown where the column is null."""

    column: Column
    values: tuple[Value, ...]


class Like(msgspec.Struct, frozen=True, kw_only=True, tag="like"):
    """The string matches `pattern`: `%` is any text, `_` any character, `\\` escapes the next character."""

    column: Column
    pattern: str


class IsNull(msgspec.Struct, frozen=True, kw_only=True, tag="is_null"):
    """Never unknown. A member of a struct that is null is null."""

    column: Column


class Constant(msgspec.Struct, frozen=True, kw_only=True, tag="constant"):
    """The same for every row; null is unknown."""

    value: bool | None


class Not(msgspec.Struct, frozen=True, kw_only=True, tag="not"):
    """Unknown where the operand is."""

    operand: Condition


class And(msgspec.Struct, frozen=True, kw_only=True, tag="and"):
    """False where one operand is false, else unknown where one is unknown."""

    operands: tuple[Condition, ...]


class Or(msgspec.Struct, frozen=True, kw_only=True, tag="or"):
    """True where one operand is true, else unknown where one is unknown."""

    operands: tuple[Condition, ...]


Condition = Comparison | OneOf | Like | IsNull | Constant | Not | And | Or


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Selects the rows for which `root` is true. `text` is canonical: parsed again it gives the same filter."""

    text: str
    root: Condition

    def columns(self) -> frozenset[str]:
        """The names of the columns that the evaluation reads."""
        names = set()
        pending: list[Condition] = [self.root]
        while pending:
            match pending.pop():
                case And(operands=operands) | Or(operands=operands):
                    pending += operands
                case Not(operand=operand):
                    pending.append(operand)
                case (
                    Comparison(column=column)
                    | OneOf(column=column)
                    | Like(column=column)
                    | IsNull(column=column)
                ):
                    names.add(column.path[0])
                case Constant():
                    pass
        return frozenset(names)
