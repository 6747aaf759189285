"""The shapes of values: of JSON values, and of the cells of CSV.

A text is a number, a date, a time or a UUID if the decoder of such a type reads it, and it is written as the service
itself writes numbers: without a plus sign and without zeros in front, as codes and telephone numbers have them.
"""

from __future__ import annotations

import decimal
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.format.schema.shapes import (
    DIGITS_MAX,
    NULLS,
    TEXTS,
    Arrays,
    Booleans,
    Integers,
    Mixed,
    Numbers,
    Objects,
    Shape,
    Texts,
    bound,
    common_shape,
)
from app.kernel.format.schema.types import (
    BOOLEAN,
    DATE,
    DEPTH_MAX,
    DOUBLE,
    INT64,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    FlatType,
    RefusedText,
    Undecodable,
)
from app.kernel.format.schema.types.uuids import UUID

DOUBLE_DIGITS_MAX: Final = 17
"""The most significant digits of a number that a double stands for."""
_INTEGER: Final = "^(0|-?[1-9][0-9]*)$"
_NUMBER: Final = r"^-?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,9})?$"
_FINE: Final = r"\.\d{3}\d*[1-9]"
_INT64_DIGITS: Final = 19
# The least whole number with more digits than any decimal.
_NO_DECIMAL: Final = 10 ** (DIGITS_MAX - 1)
# Python takes long to read a million digits, and a few show that a number is out of range.
_EXPONENT_CHARACTERS_MAX: Final = 12
_TEXT_TYPES: Final[dict[str, FlatType]] = {
    "days": DATE,
    "times": TIMESTAMP,
    "clocks": TIMESTAMP_NTZ,
    "uuids": UUID,
}
# Texts of these types begin with a digit of the year, or with a hexadecimal one.
_FIRST_CHARACTERS: Final = frozenset("0123456789abcdefABCDEF")
_UNDECODABLE: Final = (Undecodable, pa.ArrowInvalid)


class Fraction(str):
    """The text of a JSON number with a fraction or an exponent."""

    __slots__ = ()


def shape_of(value: Any) -> Shape:
    """The shape of a JSON value. Raises TooManyColumns."""
    return shape_of_all([value])


def shape_of_all(values: Sequence[Any], depth: int = 0) -> Shape:
    """The shape of JSON values, in which a number with a fraction is a Fraction. Raises TooManyColumns."""
    kinds = dict.fromkeys(map(type, values))
    kinds.pop(type(None), None)
    if len(kinds) == 1:
        (kind,) = kinds
        return _of_kind(kind, [value for value in values if value is not None], depth)
    shape: Shape = NULLS
    for kind in kinds:
        shape = common_shape(shape, _of_kind(kind, [value for value in values if type(value) is kind], depth))
    return shape


def members_of(objects: Iterable[dict[str, Any]], depth: int = 0) -> dict[str, Shape]:
    """The shapes of the members of JSON objects, in order of first occurrence. Raises TooManyColumns."""
    columns: dict[str, list[Any]] = {}
    for each in objects:
        for name, value in each.items():
            column = columns.get(name)
            if column is None:
                columns[name] = [value]
            else:
                column.append(value)
        bound(columns)
    return {name: shape_of_all(column, depth) for name, column in columns.items()}


def _of_kind(kind: type, values: Sequence[Any], depth: int) -> Shape:
    """The shape of values of this Python type."""
    if kind is bool:
        return Booleans()
    if kind is int:
        return _of_integers(values)
    if kind is Fraction:
        return _of_fractions(pa.array(values, pa.string()))
    if kind is float:
        return _of_fractions(pa.array(map(repr, values), pa.string()))
    if kind is str:
        return _of_strings(values)
    if depth == DEPTH_MAX:
        return Mixed(reason=f"is nested more than {DEPTH_MAX} deep")
    if kind is list:
        return Arrays(element=shape_of_all(list(chain.from_iterable(values)), depth + 1))
    if kind is dict:
        return Objects(members=members_of(values, depth + 1))
    raise TypeError(f"{kind.__name__} is not the type of a JSON value")


def _of_integers(values: Sequence[int]) -> Integers:
    low, high = min(values), max(values)
    beyond = low <= -_NO_DECIMAL or high >= _NO_DECIMAL
    if beyond:
        values = [value for value in values if -_NO_DECIMAL < value < _NO_DECIMAL] or [0]
        low, high = min(values), max(values)
    longest = max(high if high > INT64.high else 0, -low if low < INT64.low else 0)
    digits = len(str(longest)) if longest else 0
    return Integers(low=_clamped(low), high=_clamped(high), digits=digits, beyond=beyond)


def _clamped(number: int) -> int:
    return max(INT64.low, min(number, INT64.high))


def _of_strings(values: Sequence[str]) -> Texts:
    """The shape of strings. Most are no times, which the first of them shows."""
    return TEXTS if _of_string(values[0]) == TEXTS else _of_texts(pa.array(values, pa.string()))


def _of_string(text: str) -> Texts:
    """The shape of one text, but for the fineness of a time."""
    if text[:1] not in _FIRST_CHARACTERS:
        return TEXTS
    return Texts(**{name: _reads(data_type, text) for name, data_type in _TEXT_TYPES.items()})


def _of_texts(texts: pa.StringArray) -> Texts:
    flags = {name: _parses(data_type, texts) for name, data_type in _TEXT_TYPES.items()}
    return Texts(**flags, fine=(flags["times"] or flags["clocks"]) and _is_fine(texts))


def _reads(data_type: FlatType, text: str) -> bool:
    try:
        data_type.read(text)
    except RefusedText:
        return False
    return True


def shape_of_cells(cells: pa.StringArray) -> Shape:
    """The shape of CSV cells that are not null, without the fact that they are cells."""
    if not len(cells):
        return NULLS
    if _parses(BOOLEAN, cells):
        return Booleans()
    if _all(cells, _INTEGER):
        return _of_integer_texts(cells)
    if _all(cells, _NUMBER):
        # A minus before zero is kept by doubles only, and `-0` is read by none as an integer.
        negative_zero = pc.any(pc.equal(cells, "-0")).as_py()
        return TEXTS if negative_zero or not _are_doubles(cells) else _of_mixed_numbers(cells)
    return TEXTS if _of_string(cells[0].as_py()) == TEXTS else _of_texts(cells)


def number_cells(cells: pa.StringArray) -> pa.StringArray:
    """Those of the cells that are numbers."""
    some = cells.filter(pc.match_substring_regex(cells, _NUMBER))
    some = some.filter(pc.not_equal(some, "-0"))
    if len(some) and not _are_doubles(some):
        some = some.filter(pa.array([_are_doubles(some.slice(place, 1)) for place in range(len(some))]))
    return some


def _of_mixed_numbers(cells: pa.StringArray) -> Shape:
    """The shape of whole numbers and others."""
    whole = pc.match_substring_regex(cells, _INTEGER)
    others = _of_fractions(cells.filter(pc.invert(whole)))
    return common_shape(_of_integer_texts(cells.filter(whole)), others)


def _of_integer_texts(cells: pa.StringArray) -> Shape:
    if not len(cells):
        return NULLS
    try:
        bounds = pc.min_max(pc.cast(cells, pa.int64()))
    except pa.ArrowInvalid:
        lengths = pc.utf8_length(cells)
        long = cells.filter(pc.greater_equal(lengths, _INT64_DIGITS)).to_pylist()
        short = cells.filter(pc.less(lengths, _INT64_DIGITS))
        return common_shape(
            _of_integer_texts(short), _of_integers([int(text[: DIGITS_MAX + 2]) for text in long])
        )
    return Integers(low=bounds["min"].as_py(), high=bounds["max"].as_py())


def _of_fractions(texts: pa.StringArray) -> Numbers:
    """The shape of texts of numbers with a fraction or an exponent."""
    if not pc.any(pc.match_substring_regex(texts, "[eE]"), min_count=0).as_py():
        return _of_plain_fractions(texts)
    has_exponent = pc.match_substring_regex(texts, "[eE]")
    plain = [_plain(text) for text in pc.unique(texts.filter(has_exponent)).to_pylist()]
    shapes = [_of_plain_fractions(texts.filter(pc.invert(has_exponent))), *plain]
    return Numbers(
        exact=all(shape.exact for shape in shapes),
        whole=max(shape.whole for shape in shapes),
        scale=max(shape.scale for shape in shapes),
    )


def _plain(text: str) -> Numbers:
    """The shape of a number with an exponent."""
    mantissa, _, power = text.lower().partition("e")
    _, digits, exponent = decimal.Decimal(mantissa).as_tuple()
    assert isinstance(exponent, int)
    figures = "".join(map(str, digits)).lstrip("0")
    exponent += int(power[:_EXPONENT_CHARACTERS_MAX])
    significant = figures.rstrip("0")
    exponent += len(figures) - len(significant)
    return Numbers(
        exact=len(significant) <= DOUBLE_DIGITS_MAX,
        whole=_digits(len(significant) + exponent) if significant else 0,
        scale=_digits(-exponent) if significant else 0,
    )


def _digits(count: int) -> int:
    return max(0, min(count, DIGITS_MAX))


def _of_plain_fractions(texts: pa.StringArray) -> Numbers:
    """The shape of texts of numbers without an exponent."""
    if not len(texts):
        return Numbers()
    # Without the sign and zeros in front, then without zeros behind the point.
    body = pc.ascii_ltrim(texts, "-0")
    point = pc.find_substring(body, ".")
    has_point = pc.greater_equal(point, 0)
    figures = pc.if_else(has_point, pc.ascii_rtrim(body, "0"), body)
    length = pc.binary_length(figures)
    whole = pc.if_else(has_point, point, length)
    scale = pc.if_else(has_point, pc.subtract(pc.subtract(length, point), 1), 0)
    # Zeros between the point and the first other digit do not count.
    behind = pc.binary_length(pc.ascii_ltrim(figures, ".0"))
    significant = pc.if_else(pc.equal(whole, 0), behind, pc.add(whole, scale))
    return Numbers(
        exact=pc.max(significant).as_py() <= DOUBLE_DIGITS_MAX,
        whole=_digits(pc.max(whole).as_py()),
        scale=_digits(pc.max(scale).as_py()),
    )


def _are_doubles(cells: pa.StringArray) -> bool:
    """Whether no number is beyond the range of doubles, or so small that it would be zero."""
    try:
        values = DOUBLE.nearest(cells)
    except _UNDECODABLE:
        return False
    zeros = cells.filter(pc.equal(values, 0.0))
    return not pc.any(pc.match_substring_regex(zeros, "^-?[0.]*[1-9]"), min_count=0).as_py()


def _parses(data_type: FlatType, cells: pa.StringArray) -> bool:
    """Whether all cells are read as the type."""
    if not _reads(data_type, cells[0].as_py()):
        return False
    try:
        data_type.parse(cells)
    except _UNDECODABLE:
        # Then `read` decides.
        return all(_reads(data_type, text) for text in cells.to_pylist())
    return True


def _all(cells: pa.StringArray, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(cells, pattern)).as_py())


def _is_fine(texts: pa.StringArray) -> bool:
    return bool(pc.any(pc.match_substring_regex(texts, _FINE)).as_py())
