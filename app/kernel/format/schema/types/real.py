"""`float` and `double`: finite IEEE 754 numbers. A text that overflows is refused, never infinity.

A number with a fraction or an exponent is read as the nearest value. A whole number is one of the values, has the
shortest digits of the nearest one, as many writers print it, or is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Raw

from app.kernel.format.schema.types.flat import (
    Converted,
    FlatType,
    JsonForm,
    RefusedText,
    faults_where,
    refused_where,
    require,
)

NUMBER_TEXT: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
NOT_FINITE: Final = "which is not a finite number"
_NOT_FINITE: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
_EXACT_BITS: Final = {32: 24, 64: 53}
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_SHOWN_MAX: Final = 60
# As `_WHOLE`, where the text is known to be a number.
_NOT_WHOLE: Final = "[.eE]"
ARROW_INTEGERS: Final[dict[pa.DataType, tuple[int, int]]] = {
    **{
        pa.type_for_alias(f"int{bits}"): (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)
    },
    **{pa.type_for_alias(f"uint{bits}"): (0, 2**bits - 1) for bits in (8, 16, 32, 64)},
}


@dataclass(frozen=True, slots=True)
class Real(FlatType):
    bits: int

    may_be_key: ClassVar[bool] = False
    is_number: ClassVar[bool] = True
    json_form: ClassVar[JsonForm] = JsonForm.NUMBER

    def __str__(self) -> str:
        return "float" if self.bits == 32 else "double"

    @property
    def synonyms(self) -> tuple[str, ...]:
        return (f"float{self.bits}",)

    @property
    def arrow(self) -> pa.DataType:
        return pa.float32() if self.bits == 32 else pa.float64()

    @property
    def arrow_forms(self) -> tuple[pa.DataType, ...]:
        return (pa.float32(), pa.float16()) if self.bits == 32 else (pa.float64(),)

    def accepts(self, source: pa.DataType) -> bool:
        return bool(pa.types.is_floating(source)) and source.bit_width <= self.bits

    def converts(self, source: pa.DataType) -> bool:
        return self.accepts(source) or source in ARROW_INTEGERS

    def converted(self, array: pa.Array) -> Converted:
        if self.accepts(array.type):
            return self.from_arrow(array), {}
        low, high = ARROW_INTEGERS[array.type]
        far = beyond(array, max(low, -self.exact_max), min(high, self.exact_max))
        if not pc.any(far, min_count=0).as_py():
            return pc.cast(array, self.arrow), {}
        misfits = pa.array([bool(each) and not self._is_exact(value) for each, value in _pairs(far, array)])
        kept, refusals = refused_where(array, misfits, lambda value: self._not_exact(str(value)))
        return pc.cast(kept, self.arrow, safe=False), refusals

    @property
    def exact_max(self) -> int:
        """Up to it, on both sides of zero, all whole numbers are values of the type."""
        return 1 << _EXACT_BITS[self.bits]

    def _is_exact(self, value: int) -> bool:
        return int(self._nearest(str(value))) == value

    def _not_exact(self, text: str) -> RefusedText:
        return RefusedText(
            f"which is beyond ±2^{_EXACT_BITS[self.bits]}, where not every whole number is a {self}, and is not one",
            text,
        )

    def range_faults(self, array: pa.Array) -> Mapping[int, str]:
        return faults_where(array, pc.invert(pc.is_finite(array)), _range_texts)

    def parse(self, texts: pa.StringArray) -> pa.Array:
        values = self.nearest(texts)
        far = pc.fill_null(pc.greater_equal(pc.abs(values), self.exact_max), False)
        if pc.any(far, min_count=0).as_py():
            whole = pc.and_(far, pc.invert(pc.match_substring_regex(texts, _NOT_WHOLE)))
            pairs = _pairs(texts.filter(whole), values.filter(whole))
            require(pa.array([self._identifies(text, value) for text, value in pairs], pa.bool_()))
        return values

    def nearest(self, texts: pa.StringArray) -> pa.Array:
        """The values that are nearest to numbers. Raises Undecodable, ArrowInvalid."""
        values = pc.cast(texts, self.arrow)
        require(pc.is_finite(values))
        return values

    def read(self, text: str) -> float:
        if not NUMBER_TEXT.fullmatch(text):
            raise RefusedText(NOT_FINITE)
        value = self._nearest(text)
        if not math.isfinite(value):
            raise RefusedText("which is out of range")
        if abs(value) >= self.exact_max and _WHOLE.fullmatch(text) and not self._identifies(text, value):
            raise self._not_exact(text[:_SHOWN_MAX])
        return value

    def reads_whole(self, text: str) -> bool:
        """Whether a whole number is exactly a value, or the shortest digits of one."""
        value = self._nearest(text)
        return math.isfinite(value) and self._identifies(text, value)

    def _identifies(self, text: str, value: float) -> bool:
        """Whether a whole number is exactly the nearest value, or has its shortest digits, with zeros behind them."""
        number = Decimal(text)
        # Some languages know a `float` as the double that equals it.
        if number == Decimal(repr(value)) or number == Decimal(value):
            return True
        return self.bits == 32 and number == Decimal(str(np.float32(value)))

    def _nearest(self, text: str) -> float:
        value = float(text)
        if self.bits == 32 and math.isfinite(value):
            # Arrow rounds the decimal text once, to 32 bits; a conversion through 64 bits could round twice.
            value = pa.scalar(text).cast(pa.float32()).as_py()
        return value

    @property
    def json_type(self) -> Any:
        return Raw if self.bits == 32 else float

    def json_values(self, array: pa.Array) -> list[Any]:
        values: list[Any] = array.to_pylist()
        if self.bits == 32:
            # The shortest decimal of the 32 bits, not of the 64 bits that they widen to.
            values = [None if value is None else float(str(np.float32(value))) for value in values]
        return [
            value if value is None or math.isfinite(value) else _NOT_FINITE[str(value)] for value in values
        ]

    @property
    def avro(self) -> str:
        return str(self)

    def path_value(self, text: str) -> float:
        raise TypeError(f"no path has a {self}, as {text} would be")

    def comparable(self, bound: Any) -> float | None:
        return bound if isinstance(bound, int | float) else None

    def sql_literal(self, value: float) -> str:
        return repr(value)

    @property
    def literal_example(self) -> str:
        return "a number"

    @property
    def wider(self) -> tuple[FlatType, ...]:
        return (DOUBLE,) if self.bits == 32 else ()

    def holds_integers(self, low: int, high: int) -> bool:
        return -self.exact_max <= low and high <= self.exact_max


def _range_texts(array: pa.Array) -> list[str]:
    return [f"got NaN or an infinity, {NOT_FINITE}"] * len(array)


def _pairs(ones: pa.Array, others: pa.Array) -> Iterator[tuple[Any, Any]]:
    return zip(ones.to_pylist(), others.to_pylist(), strict=True)


def beyond(array: pa.Array, low: int, high: int) -> pa.BooleanArray:
    """Which whole numbers are outside of the bounds, which are values of the type of the array."""
    return pc.or_(pc.less(array, pa.scalar(low, array.type)), pc.greater(array, pa.scalar(high, array.type)))


FLOAT: Final = Real(32)
DOUBLE: Final = Real(64)
