"""Shapes: what is known of the values of a column, from which its type is inferred.

Shapes are computed in parallel for the parts of an input. `common_shape` combines the shapes of two parts: the result
does not depend on how the input is divided.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from app.kernel.format.schema.schema import FIELDS_MAX
from app.kernel.format.schema.types import DECIMAL_PRECISION_MAX, DOUBLE, INT64, Decimal, FlatType, parse_type
from app.kernel.format.schema.widening import why_not_wider

DIGITS_MAX: Final = DECIMAL_PRECISION_MAX + 1
"""The number of digits that stands for any that no decimal has."""


class TooManyColumns(ValueError):
    """The rows have more names than a dataset has fields."""


class _Shape(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Nulls(_Shape, frozen=True, kw_only=True, tag="nothing"):
    """Nulls only."""


class Booleans(_Shape, frozen=True, kw_only=True, tag="booleans"):
    """True and false."""


class Integers(_Shape, frozen=True, kw_only=True, tag="integers"):
    """Whole numbers: the least and the greatest, limited to 64 bits. `digits`: those of the longest beyond 64 bits; 0
    without one. `beyond`: whether there are others, with more digits than any decimal.
    """

    low: int
    high: int
    digits: int = 0
    beyond: bool = False

    def numbers(self) -> Numbers:
        """The same as numbers beside which there are others."""
        whole = self.digits or max(len(str(abs(self.low))), len(str(abs(self.high))))
        exact = not self.digits and DOUBLE.holds_integers(self.low, self.high)
        return Numbers(exact=exact, whole=whole, beyond=self.beyond)


class Numbers(_Shape, frozen=True, kw_only=True, tag="numbers"):
    """Numbers, some with a fraction or an exponent. `exact`: none loses digits as a double. `whole`, `scale`: the most
    digits before and after the point, at most DIGITS_MAX. `beyond`: whether there are whole numbers with more digits
    than any decimal, which do not count.
    """

    exact: bool = True
    whole: int = 0
    scale: int = 0
    beyond: bool = False


class Texts(_Shape, frozen=True, kw_only=True, tag="texts"):
    """Texts: whether all are dates, times with a zone, times without one, or UUIDs; whether one of times is finer than
    a millisecond.
    """

    days: bool = False
    times: bool = False
    clocks: bool = False
    uuids: bool = False
    fine: bool = False


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


class Cells(_Shape, frozen=True, kw_only=True, tag="cells"):
    """Cells of CSV, which all are texts, whatever else they are."""

    shape: Shape


class Several(_Shape, frozen=True, kw_only=True, tag="several"):
    """JSON values of several kinds: the shape of each, in order of first occurrence."""

    shapes: tuple[Shape, ...]


class Mixed(_Shape, frozen=True, kw_only=True, tag="mixed"):
    """Values without a common type; `reason` says why."""

    reason: str


Shape = (
    Nulls | Booleans | Integers | Numbers | Texts | Objects | Arrays | Maps | Typed | Cells | Several | Mixed
)
NULLS: Final = Nulls()
TEXTS: Final = Texts()


def number_type(shape: Integers | Numbers) -> FlatType | None:
    """The type that holds the numbers without loss; None if none does."""
    if shape.beyond:
        return None
    if isinstance(shape, Integers):
        if not shape.digits:
            return INT64
        return Decimal(DECIMAL_PRECISION_MAX, 0)
    if shape.exact:
        return DOUBLE
    fits = shape.whole + shape.scale <= DECIMAL_PRECISION_MAX
    return Decimal(DECIMAL_PRECISION_MAX, shape.scale) if fits else None


def common_shape(one: Shape, other: Shape) -> Shape:
    """The shape of the values of two parts. Raises TooManyColumns."""
    match one, other:
        case (Mixed(), _) | (_, Nulls()):
            return one
        case (Nulls(), _) | (_, Mixed()):
            return other
        case (Cells(), _) | (_, Cells()):
            common = common_shape(uncelled(one), uncelled(other))
            return Cells(shape=TEXTS if isinstance(common, Several | Mixed) else common)
        case Integers(), Integers():
            return Integers(
                low=min(one.low, other.low),
                high=max(one.high, other.high),
                digits=max(one.digits, other.digits),
                beyond=one.beyond or other.beyond,
            )
        case ((Integers() | Numbers()), (Integers() | Numbers())):
            return _common_numbers(numbers(one), numbers(other))
        case Texts(), Texts():
            return _common_texts(one, other)
        case Objects(), Objects():
            return Objects(members=bound(common_members(one.members, other.members)))
        case Arrays(), Arrays():
            return Arrays(element=common_shape(one.element, other.element))
        case Maps(), Maps():
            return Maps(key=common_shape(one.key, other.key), value=common_shape(one.value, other.value))
    wider = _wider_type(one, other)
    if wider is not None:
        return wider
    if isinstance(one, Typed | Maps) or isinstance(other, Typed | Maps):
        return Mixed(reason=f"holds {_NAMES[type(one)]} and {_NAMES[type(other)]}; a column has one type")
    return _several([*_kinds(one), *_kinds(other)])


def uncelled(shape: Shape) -> Shape:
    """The shape of cells without the fact that they are cells."""
    return shape.shape if isinstance(shape, Cells) else shape


def numbers(shape: Integers | Numbers) -> Numbers:
    """The shape of numbers of any kind."""
    return shape.numbers() if isinstance(shape, Integers) else shape


def _common_numbers(one: Numbers, other: Numbers) -> Numbers:
    return Numbers(
        exact=one.exact and other.exact,
        whole=max(one.whole, other.whole),
        scale=max(one.scale, other.scale),
        beyond=one.beyond or other.beyond,
    )


def _common_texts(one: Texts, other: Texts) -> Texts:
    times, clocks = one.times and other.times, one.clocks and other.clocks
    return Texts(
        days=one.days and other.days,
        times=times,
        clocks=clocks,
        uuids=one.uuids and other.uuids,
        fine=(times or clocks) and (one.fine or other.fine),
    )


def _kinds(shape: Shape) -> tuple[Shape, ...]:
    return shape.shapes if isinstance(shape, Several) else (shape,)


def _several(shapes: Iterable[Shape]) -> Shape:
    """The shape of values of these kinds, of which some may be the same."""
    by_kind: dict[type, Shape] = {}
    for shape in shapes:
        kind = Integers if isinstance(shape, Numbers) else type(shape)
        by_kind[kind] = common_shape(by_kind[kind], shape) if kind in by_kind else shape
    return Several(shapes=tuple(by_kind.values()))


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


def bound(members: dict[str, Any]) -> dict[str, Any]:
    """The members. Raises TooManyColumns."""
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
    Several: "values of several kinds",
}
