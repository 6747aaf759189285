"""Shapes: what is known of the values of a column, from which its type is inferred.

Shapes are computed in parallel for the parts of an input. `common_shape` combines the shapes of two parts.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from app.kernel.format.schema.schema import FIELDS_MAX
from app.kernel.format.schema.types import DEPTH_MAX, parse_type
from app.kernel.format.schema.widening import why_not_wider

# The range of integers that tasks exchange: integers beyond it fit no type.
_LOW, _HIGH = -(2**63), 2**64 - 1
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.(\d{1,6}))?(?:[Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_MILLISECOND_DIGITS: Final = 3


class TooManyColumns(ValueError):
    """The rows have more names than a dataset has fields."""


class _Shape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Nulls(_Shape, frozen=True, kw_only=True, tag="nothing"):
    """Nulls only."""


class Booleans(_Shape, frozen=True, kw_only=True, tag="booleans"):
    """True and false."""


class Integers(_Shape, frozen=True, kw_only=True, tag="integers"):
    """Whole numbers: the least and the greatest, limited to 64 bits."""

    low: int
    high: int


class Numbers(_Shape, frozen=True, kw_only=True, tag="numbers"):
    """Numbers, some with a fraction or an exponent."""


class Texts(_Shape, frozen=True, kw_only=True, tag="texts"):
    """Texts: whether all are dates, whether all are times with a zone, and whether one is finer than a millisecond."""

    days: bool
    times: bool
    fine: bool


class Objects(_Shape, frozen=True, kw_only=True, tag="objects"):
    """Objects: the shapes of their members, in order of first occurrence."""

    members: dict[str, Shape]


class Arrays(_Shape, frozen=True, kw_only=True, tag="arrays"):
    """Arrays: the shape of their elements."""

    element: Shape


class Maps(_Shape, frozen=True, kw_only=True, tag="maps"):
    """Maps of columnar input."""

    key: Shape
    value: Shape


class Typed(_Shape, frozen=True, kw_only=True, tag="typed"):
    """Values of columnar input that have a type of the table format."""

    type_: str


class Mixed(_Shape, frozen=True, kw_only=True, tag="mixed"):
    """Values without a common type; `reason` says why."""

    reason: str


Shape = Nulls | Booleans | Integers | Numbers | Texts | Objects | Arrays | Maps | Typed | Mixed
NULLS: Final = Nulls()


def shape_of(value: Any, depth: int = 0) -> Shape:
    """The shape of a JSON value. Raises TooManyColumns."""
    match value:
        case None:
            return NULLS
        case bool():
            return Booleans()
        case int():
            return Integers(low=min(value, _HIGH), high=min(value, _HIGH)) if value >= _LOW else Numbers()
        case float():
            return Numbers()
        case str():
            return text_shape(value)
        case _ if depth == DEPTH_MAX:
            return Mixed(reason=f"is nested more than {DEPTH_MAX} deep")
        case list():
            element: Shape = NULLS
            for each in value:
                element = common_shape(element, shape_of(each, depth + 1))
            return Arrays(element=element)
        case dict():
            _bound(value)
            return Objects(members={name: shape_of(each, depth + 1) for name, each in value.items()})
    raise TypeError(f"{type(value).__name__} is not a JSON value")


def text_shape(text: str) -> Texts:
    """The shape of a text."""
    if _DAY.fullmatch(text):
        return Texts(days=_is_time(text), times=False, fine=False)
    match = _TIME.fullmatch(text)
    if match is None or not _is_time(text):
        return Texts(days=False, times=False, fine=False)
    return Texts(days=False, times=True, fine=len((match[1] or "").rstrip("0")) > _MILLISECOND_DIGITS)


def _is_time(text: str) -> bool:
    try:
        dt.datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def common_shape(one: Shape, other: Shape) -> Shape:
    """The shape of the values of two parts. Raises TooManyColumns."""
    match one, other:
        case Nulls(), _:
            return other
        case _, Nulls():
            return one
        case Mixed(), _:
            return one
        case _, Mixed():
            return other
        case Integers(), Integers():
            return Integers(low=min(one.low, other.low), high=max(one.high, other.high))
        case ((Integers() | Numbers()), (Integers() | Numbers())):
            return Numbers()
        case Texts(), Texts():
            return Texts(
                days=one.days and other.days, times=one.times and other.times, fine=one.fine or other.fine
            )
        case Objects(), Objects():
            return Objects(members=_bound(common_members(one.members, other.members)))
        case Arrays(), Arrays():
            return Arrays(element=common_shape(one.element, other.element))
        case Maps(), Maps():
            return Maps(key=common_shape(one.key, other.key), value=common_shape(one.value, other.value))
    return _wider_type(one, other) or Mixed(reason=f"holds {_NAMES[type(one)]} and {_NAMES[type(other)]}")


def _wider_type(one: Shape, other: Shape) -> Shape | None:
    """The shape, of these two, that has the values of both; None if neither does."""
    if one == other:
        return one
    if not (isinstance(one, Typed) and isinstance(other, Typed)):
        return None
    first, second = parse_type(one.type_), parse_type(other.type_)
    if why_not_wider(first, second, explicit_cast=False) is None:
        return other
    return one if why_not_wider(second, first, explicit_cast=False) is None else None


def common_members(one: Mapping[str, Shape], other: Mapping[str, Shape]) -> dict[str, Shape]:
    """The combined shapes of the columns, or of the members, of two parts."""
    both = {name: common_shape(shape, other[name]) if name in other else shape for name, shape in one.items()}
    return both | {name: shape for name, shape in other.items() if name not in one}


def _bound(members: dict[str, Any]) -> dict[str, Any]:
    if len(members) > FIELDS_MAX:
        raise TooManyColumns(f"the rows name more than {FIELDS_MAX} fields")
    return members


_NAMES: Final[dict[type, str]] = {
    Booleans: "booleans",
    Integers: "numbers",
    Numbers: "numbers",
    Texts: "texts",
    Objects: "objects",
    Arrays: "arrays",
    Maps: "maps",
    Typed: "values of another type",
}
