"""Casts of values to the type of a column, for writes with `explicit_cast`: those of Spark's CAST in ANSI mode.

A cast may round (numbers with a fraction) or leave out a part (the time of a timestamp that becomes a date), as in
Spark. A value that is outside the range of the type, or a text that denotes no value of it, is not cast. Times have the
zone UTC. `castable` is the matrix of types, and `cast_explicit` casts an array.
"""

from __future__ import annotations

import decimal
import math
import re
import struct
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from app.kernel.codecs.arrow.arrow_casts import cast_exact, is_exact, is_lossless
from app.kernel.codecs.value_parser import RejectedValue, read_text
from app.kernel.format.schema.types import (
    DATE,
    DATE_DAYS_MAX,
    DATE_DAYS_MIN,
    FLOAT,
    TICKS,
    DataType,
    Decimal,
    FlatType,
    Integer,
    RefusedText,
    Timestamp,
    Undecodable,
    timestamp_bounds,
    to_arrow,
)

_DAY_MICROS: Final = 86_400_000_000
_SECOND_MICROS: Final = 1_000_000
_MICROS: Final = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}
_TRUE: Final = frozenset({"t", "true", "y", "yes", "1"})
_FALSE: Final = frozenset({"f", "false", "n", "no", "0"})
# Spark leaves out these around a text: the characters up to the space, and U+007F.
_BLANKS: Final = "".join(map(chr, range(0x21))) + "\x7f"
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")
_DATE: Final = re.compile(r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[ T].*)?)?)?", re.DOTALL)
_MOMENT: Final = re.compile(
    r"([0-9]{4})(?:-([0-9]{1,2})(?:-([0-9]{1,2})"
    r"(?:[ T]([0-9]{1,2})(?::([0-9]{1,2})(?::([0-9]{1,2})(?:\.([0-9]{0,9}))?)?)?"
    r"(Z|[+-][0-9]{1,2}(?::[0-9]{1,2})?)?)?)?)?"
)
_FRACTION_DIGITS: Final = 6
_CHARACTERS_MAX: Final = 1_000
# Arrow admits any scale of a decimal, also some that no number of Python has.
_SCALE_MAX: Final = 76
_SHOWN_MAX: Final = 60
_WIDE: Final = decimal.Context(prec=2_200, Emin=-9_999_999, Emax=9_999_999, rounding=decimal.ROUND_HALF_UP)
# Java writes numbers outside of these bounds with an exponent.
_PLAIN_LOW, _PLAIN_HIGH = -3, 7


class NotCastable(Exception):
    """A value that cannot be cast."""


def castable(source: pa.DataType, target: DataType) -> bool:
    """Whether values of the Arrow type can be cast to the type; single values may not be castable all the same."""
    return is_exact(source, target) or _is_cast(source, target)


def _is_cast(source: pa.DataType, target: DataType) -> bool:
    """Whether values of the pair of types are cast; others are converted exactly."""
    if is_lossless(source, target):
        return False
    kind = _plain(source)
    if kind is None or (pa.types.is_decimal(kind) and abs(kind.scale) > _SCALE_MAX):
        return False
    return _target_kind(target) in _MATRIX.get(_source_kind(kind), frozenset())


def reads_strings(source: pa.DataType, target: DataType) -> bool:
    """Whether values of the Arrow type are read as texts of the type, without a cast that is requested."""
    return isinstance(target, FlatType) and target.reads_strings and _plain(source) == pa.string()


def cast_explicit(array: pa.Array, target: DataType) -> tuple[pa.Array, dict[int, str]]:
    """The array cast to the target type, and the reason for each row that is not cast, which is null.

    The pair must satisfy `castable`. Raises ArrowInvalid for an array that is not valid.
    """
    if not _is_cast(array.type, target):
        exact, refusals = cast_exact(array, target)
        return exact, dict(reversed(refusals))
    kind = _plain(array.type)
    assert kind is not None, "the pair is not castable"
    if pa.types.is_dictionary(array.type):
        return _cast_dictionary(array, target)
    array = pc.cast(array, kind)
    arrow_type = to_arrow(target)
    if (_source_kind(kind), _target_kind(target)) in _AS_ARROW:
        try:
            return pc.cast(array, arrow_type), {}
        except pa.ArrowInvalid:
            # Single values do not fit.
            pass
    if isinstance(target, FlatType) and reads_strings(kind, target):
        try:
            return target.parse(array), {}
        except Undecodable:
            # Single texts do not fit.
            pass
    cast = _CASTS[_target_kind(target)]
    bad: dict[int, str] = {}
    values: list[Any] = []
    for row, value in enumerate(_values(array)):
        try:
            values.append(None if value is None else cast(value, _source_kind(kind), target))
        except NotCastable as error:
            values.append(None)
            reason = f": {error}" if str(error) else ""
            bad[row] = f"{_shown(array, row, value)} of type {_name(kind)} cannot be cast to {target}{reason}"
    if isinstance(target, Timestamp):
        return pc.cast(pa.array(values, pa.int64()), arrow_type), bad
    if target == DATE:
        return pc.cast(pa.array(values, pa.int32()), arrow_type), bad
    return pa.array(values, arrow_type), bad


def _cast_dictionary(array: pa.Array, target: DataType) -> tuple[pa.Array, dict[int, str]]:
    """Casts each value of the dictionary once, however many rows have it."""
    values, bad = cast_explicit(array.dictionary, target)
    bad_places = pa.array(sorted(bad), array.indices.type)
    rows = pc.indices_nonzero(pc.is_in(array.indices, value_set=bad_places)).to_pylist() if bad else []
    places = array.indices.take(pa.array(rows, pa.int64())).to_pylist()
    return values.take(array.indices), {row: bad[place] for row, place in zip(rows, places, strict=True)}


def _plain(kind: pa.DataType) -> pa.DataType | None:
    """The type, of those with casts, that an array of the type is read as; None if there is none."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_decimal(kind) or kind == pa.uuid():
        return kind
    if pa.types.is_timestamp(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return kind
    if pa.types.is_floating(kind):
        return pa.float64() if kind == pa.float64() else pa.float32()
    if kind in (pa.string(), pa.large_string(), pa.string_view()):
        return pa.string()
    if kind in (pa.binary(), pa.large_binary(), pa.binary_view()) or pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    return pa.date32() if pa.types.is_date(kind) else None


def _source_kind(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_floating(kind):
        return "float" if kind == pa.float32() else "double"
    if pa.types.is_decimal(kind):
        return "decimal"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz is not None else "timestamp_ntz"
    return {pa.bool_(): "boolean", pa.string(): "string", pa.binary(): "binary", pa.uuid(): "uuid"}.get(
        kind, "date"
    )


def _target_kind(target: DataType) -> str:
    return target.cast_kind if isinstance(target, FlatType) else "nested"


_NUMBERS: Final = frozenset({"integer", "float", "double", "decimal"})
_MATRIX: Final = {
    "boolean": _NUMBERS | {"boolean", "string"},
    "integer": _NUMBERS | {"boolean", "string", "timestamp"},
    "float": _NUMBERS | {"boolean", "string", "timestamp"},
    "double": _NUMBERS | {"boolean", "string", "timestamp"},
    "decimal": _NUMBERS | {"boolean", "string", "timestamp"},
    "string": _NUMBERS | {"boolean", "string", "binary", "date", "timestamp", "timestamp_ntz", "uuid"},
    "uuid": frozenset({"uuid", "string"}),
    "binary": frozenset({"binary", "string"}),
    "date": frozenset({"date", "string", "timestamp", "timestamp_ntz"}),
    "timestamp": _NUMBERS | {"date", "string", "timestamp", "timestamp_ntz"},
    "timestamp_ntz": frozenset({"date", "string", "timestamp", "timestamp_ntz"}),
}
# Arrow's own casts have the same results where no value is out of range.
_AS_ARROW: Final = frozenset(
    {
        ("integer", "integer"),
        ("integer", "string"),
        ("boolean", "integer"),
        ("string", "binary"),
    }
)


def _values(array: pa.Array) -> list[Any]:
    """Dates as days, and timestamps as microseconds, which Python's own types do not all hold."""
    if pa.types.is_date32(array.type):
        return list(pc.cast(array, pa.int32()).to_pylist())
    if pa.types.is_timestamp(array.type):
        factor, divisor = _MICROS[array.type.unit]
        ticks = pc.cast(array, pa.int64()).to_pylist()
        return [None if tick is None else tick * factor // divisor for tick in ticks]
    return list(array.to_pylist())


def _name(kind: pa.DataType) -> str:
    return str(kind)


def _shown(array: pa.Array, row: int, value: Any) -> str:
    if pa.types.is_timestamp(array.type):
        return f"{array[row].value} {array.type.unit} since 1970-01-01"
    if pa.types.is_date(array.type):
        return f"{value} days since 1970-01-01"
    # A text may be large: only its start is shown.
    text = repr(value[: _SHOWN_MAX + 1]) if isinstance(value, str | bytes) else str(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 1]}…"


def _to_number(value: Any, source: str) -> decimal.Decimal:
    """The exact number. Raises NotCastable for NaN, infinity, and texts that are not numbers."""
    match source:
        case "string":
            text = value.strip(_BLANKS)
            if len(text) > _CHARACTERS_MAX or _NUMBER.fullmatch(text) is None:
                raise NotCastable("it is no number")
            return decimal.Decimal(text)
        case "timestamp":
            return decimal.Decimal(_float_text(_seconds(value), "double"))
        case "float" | "double":
            _check_finite(value)
            # As Spark, which writes the number of 64 bits as a text first.
            return decimal.Decimal(_float_text(value, "double"))
    return decimal.Decimal(value)


def _check_finite(value: float) -> None:
    if not math.isfinite(value):
        raise NotCastable("it is not a finite number")


def _integer(value: Any, source: str, target: DataType) -> int:
    match source:
        case "string":
            text = value.strip(_BLANKS)
            if len(text) > _CHARACTERS_MAX or _WHOLE.fullmatch(text) is None:
                raise NotCastable("it is no whole number")
            number = int(text)
        case "timestamp":
            number = value // _SECOND_MICROS
        case "float" | "double":
            _check_finite(value)
            number = math.trunc(value)
        case _:
            number = int(value)
    assert isinstance(target, Integer)
    if not target.low <= number <= target.high:
        raise NotCastable("it is out of range")
    return number


# The bits of a number of 64 bits that one of 32 bits lacks, if it is halfway between two of these; the least of these
# that has all its digits.
_HALFWAY: Final = 1 << 28
_NORMAL_SINGLE: Final = 2.0**-126
# Through 64 bits, these would be rounded twice.
_ROUNDED_ONCE: Final = frozenset({"string", "integer", "decimal"})


def _floating(value: Any, source: str, target: DataType) -> float:
    text = str(_to_number(value, source)) if source in _ROUNDED_ONCE else None
    number = _seconds(value) if source == "timestamp" else float(value if text is None else text)
    if target == FLOAT and math.isfinite(number):
        number = _single(number, text)
    if not math.isfinite(number):
        raise NotCastable("it is out of range, or no finite number")
    return number


def _single(number: float, text: str | None) -> float:
    """The nearest number of 32 bits. One that was written as a text is not rounded to 64 bits first."""
    [bits] = struct.unpack("<Q", struct.pack("<d", number))
    halfway = bits & (2 * _HALFWAY - 1) == _HALFWAY or abs(number) < _NORMAL_SINGLE
    if text is not None and halfway:
        return float(pa.scalar(text).cast(pa.float32()).as_py())
    try:
        [single] = struct.unpack("<f", struct.pack("<f", number))
    except OverflowError:
        return math.inf
    return float(single)


def _seconds(micros: int) -> float:
    """As Spark computes them: the microseconds are rounded to a double first."""
    return float(micros) / _SECOND_MICROS


def _decimal(value: Any, source: str, target: DataType) -> decimal.Decimal:
    assert isinstance(target, Decimal)
    number = _to_number(value, source)
    if number and number.adjusted() > target.precision:
        raise NotCastable("it has too many digits")
    at_scale = number.quantize(decimal.Decimal(1).scaleb(-target.scale), context=_WIDE)
    if at_scale and at_scale.adjusted() >= target.precision - target.scale:
        raise NotCastable("it has too many digits")
    return at_scale


def _boolean(value: Any, source: str, target: DataType) -> bool:
    del target
    if source != "string":
        if isinstance(value, float):
            _check_finite(value)
        return bool(value)
    text = value.strip(_BLANKS).lower()
    if text not in _TRUE | _FALSE:
        raise NotCastable("it is neither true nor false")
    return text in _TRUE


def _string(value: Any, source: str, target: DataType) -> str:
    del target
    match source:
        case "boolean":
            return "true" if value else "false"
        case "float" | "double":
            _check_finite(value)
            return _float_text(value, source)
        case "decimal":
            return f"{value:f}"
        case "date":
            return _date_text(value)
        case "timestamp" | "timestamp_ntz":
            days, micros = divmod(value, _DAY_MICROS)
            seconds, fraction = divmod(micros, _SECOND_MICROS)
            clock = f"{seconds // 3_600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
            decimals = f".{fraction:06d}".rstrip("0") if fraction else ""
            return f"{_date_text(days)} {clock}{decimals}"
        case "binary":
            try:
                text: str = value.decode()
            except UnicodeDecodeError:
                raise NotCastable("it is not UTF-8") from None
            return text
    return str(value)


def _float_text(value: float, source: str) -> str:
    """A finite number as Java writes it since release 19: with the fewest digits that read back as the same number."""
    shortest = (
        pc.cast(pa.array([value], pa.float32()), pa.string())[0].as_py() if source == "float" else repr(value)
    )
    sign, digits, exponent = decimal.Decimal(shortest).normalize(_WIDE).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    before = len(text) + exponent
    minus = "-" if sign else ""
    if text == "0":
        return f"{minus}0.0"
    if _PLAIN_LOW < before <= _PLAIN_HIGH:
        if before <= 0:
            return f"{minus}0.{'0' * -before}{text}"
        return f"{minus}{text[:before].ljust(before, '0')}.{text[before:] or '0'}"
    return f"{minus}{text[0]}.{text[1:] or '0'}E{before - 1}"


def _date_text(days: int) -> str:
    if not DATE_DAYS_MIN <= days <= DATE_DAYS_MAX:
        raise NotCastable("it is outside the years 0001–9999")
    return str(pa.scalar(days, pa.int32()).cast(pa.date32()).as_py())


def _date(value: Any, source: str, target: DataType) -> int:
    del target
    match source:
        case "string":
            parts = _DATE.fullmatch(value.strip(_BLANKS))
            if parts is None:
                raise NotCastable("it is no date")
            return _days(parts[1], parts[2], parts[3])
        case "timestamp" | "timestamp_ntz":
            value = value // _DAY_MICROS
    if not DATE_DAYS_MIN <= value <= DATE_DAYS_MAX:
        raise NotCastable("it is outside the years 0001–9999")
    return int(value)


def _days(year: str, month: str | None, day: str | None) -> int:
    text = f"{year}-{(month or '1'):0>2}-{(day or '1'):0>2}"
    try:
        date = read_text(text, DATE)
    except RejectedValue:
        raise NotCastable("there is no such date") from None
    return int(date.toordinal()) + DATE_DAYS_MIN - 1


def _timestamp(value: Any, source: str, target: DataType) -> int:
    assert isinstance(target, Timestamp)
    match source:
        case "date":
            micros = value * _DAY_MICROS
        case "string":
            micros = _text_micros(value.strip(_BLANKS), as_instant=target.zoned)
        case "timestamp" | "timestamp_ntz":
            micros = value
        case "float" | "double":
            if not math.isfinite(value * _SECOND_MICROS):
                raise NotCastable("it is outside the years 0001–9999")
            micros = math.trunc(value * _SECOND_MICROS)
        case _:
            micros = int(_WIDE.multiply(decimal.Decimal(value), decimal.Decimal(_SECOND_MICROS)))
    ticks = micros * TICKS[target.unit] // _SECOND_MICROS
    low, high = timestamp_bounds(target.unit)
    if not low <= ticks <= high:
        raise NotCastable("it is outside the years 0001–9999")
    return int(ticks)


def _text_micros(text: str, *, as_instant: bool) -> int:
    moment = _MOMENT.fullmatch(text)
    if moment is None:
        raise NotCastable("it is no time")
    year, month, day, hour, minute, second, fraction, zone = moment.groups()
    clock = [int(part or 0) for part in (hour, minute, second)]
    if clock[0] > 23 or max(clock[1:]) > 59:
        raise NotCastable("there is no such time")
    micros = int((fraction or "")[:_FRACTION_DIGITS].ljust(_FRACTION_DIGITS, "0"))
    seconds = clock[0] * 3_600 + clock[1] * 60 + clock[2]
    offset = _offset_seconds(zone or "Z")
    if as_instant:
        # Without one, it is in UTC. A wall-clock time has none, and Spark ignores it.
        seconds -= offset
    return _days(year, month, day) * _DAY_MICROS + seconds * _SECOND_MICROS + micros


def _offset_seconds(zone: str) -> int:
    if zone == "Z":
        return 0
    hours, _, minutes = zone[1:].partition(":")
    if int(hours) > 18 or int(minutes or 0) > 59:
        raise NotCastable("there is no such zone")
    seconds = int(hours) * 3_600 + int(minutes or 0) * 60
    return -seconds if zone[0] == "-" else seconds


def _binary(value: Any, source: str, target: DataType) -> bytes:
    del source, target
    octets: bytes = value.encode()
    return octets


def _read(value: Any, source: str, target: DataType) -> Any:
    """A text as the type reads it."""
    del source
    assert isinstance(target, FlatType)
    try:
        return target.read(value.strip(_BLANKS))
    except RefusedText as error:
        raise NotCastable(str(error).removeprefix("which ").replace("is not", "it is not", 1)) from None


_CASTS: Final[dict[str, Callable[[Any, str, DataType], Any]]] = {
    "integer": _integer,
    "float": _floating,
    "double": _floating,
    "decimal": _decimal,
    "boolean": _boolean,
    "string": _string,
    "date": _date,
    "timestamp": _timestamp,
    "timestamp_ntz": _timestamp,
    "binary": _binary,
    "uuid": _read,
}
