"""The exact parser: one value at a time, with a message for every fault.

The fast paths only detect that a body does not fit. This parser finds the value that does not fit. It is also the
reference: it defines the accepted format.
"""

from __future__ import annotations

import datetime as dt
import decimal
import json
import re
from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from app.kernel.codecs.faults import Faults, below, shown, unknown_field
from app.kernel.format.schema.texts import TICKS, Undecodable, base64_bytes, timestamp_bounds
from app.kernel.format.schema.types import DataType, Decimal, List, Map, Primitive, Struct, Timestamp

_INTEGER_BOUNDS: Final = {
    **{f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32)},
}
_BLANKS: Final = re.compile(r"[ \t\r\n]*")
_INTEGER: Final = re.compile(r"0|-?[1-9][0-9]*")
_DECIMAL: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DATE: Final = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})")
_TIMESTAMP: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})[T ]([0-9]{2}):([0-9]{2}):([0-9]{2})"
    r"(?:\.([0-9]+))?(Z|[+-][0-9]{2}(?::?[0-9]{2})?)?"
)
# Longer texts are not numbers that fit, and arithmetic on them is work that a hostile body must not cause.
_DECIMAL_CHARACTERS_MAX: Final = 1_000
_EXPONENT_MAX: Final = 100_000
# Wide enough to preserve every accepted text.
_WIDE: Final = decimal.Context(prec=2 * _DECIMAL_CHARACTERS_MAX, Emin=-9_999_999, Emax=9_999_999)


class JsonNumber(str):
    """The text of a JSON number."""

    __slots__ = ()


class NonFinite(str):
    """NaN, Infinity or -Infinity, which are not JSON."""

    __slots__ = ()


class Members(list[tuple[str, Any]]):
    """The members of a JSON object in order, with repeated names."""

    __slots__ = ()


_JSON: Final = json.JSONDecoder(
    object_pairs_hook=Members,
    parse_float=JsonNumber,
    parse_int=JsonNumber,
    parse_constant=NonFinite,
    strict=True,
)


def parse_json(text: str) -> Any:
    """Any JSON value, with numbers and members in their original text. Raises JSONDecodeError, RecursionError."""
    return _JSON.decode(text)


def parse_json_array(text: str) -> Iterator[tuple[Any, str]]:
    """The elements of a JSON array with their texts, each parsed lazily as by `parse_json`.

    Raises json.JSONDecodeError, RecursionError; TypeError if the text is another JSON value.
    """
    position = _blanks_end(text, 0)
    if text[position : position + 1] != "[":
        parse_json(text)
        raise TypeError("no array")
    position = _blanks_end(text, position + 1)
    if text[position : position + 1] != "]":
        while True:
            element, end = _JSON.raw_decode(text, position)
            yield element, text[position:end]
            position = _blanks_end(text, end)
            if text[position : position + 1] != ",":
                break
            position = _blanks_end(text, position + 1)
    if text[position : position + 1] != "]":
        raise json.JSONDecodeError("Expecting ',' or ']'", text, position)
    end = _blanks_end(text, position + 1)
    if end != len(text):
        raise json.JSONDecodeError("Extra data", text, end)


def _blanks_end(text: str, position: int) -> int:
    return _BLANKS.match(text, position).end()  # type: ignore[union-attr] # it matches nothing, too


class RejectedValue(Exception):
    """Rejects a value. The message says what is expected, and why the value does not fit."""


def describe(value: Any) -> str:
    """A JSON value as a message names it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case JsonNumber() | NonFinite():
            return (
                f"the number {value[:60]}"
                if isinstance(value, JsonNumber)
                else f"{value}, which is no JSON number"
            )
        case str():
            return f"string {shown(value)}"
        case Members():
            return "an object"
        case list():
            return "an array"
    raise TypeError(type(value).__name__)


def read_value(value: Any, data_type: DataType, pointer: str, faults: Faults) -> Any:
    """The Python value, for Arrow, of a JSON value of the type; None, and a fault, if it does not fit."""
    if value is None:
        return None
    match data_type:
        case List(element):
            if not isinstance(value, list) or isinstance(value, Members):
                return faults.add(pointer, f"expected {data_type}, got {describe(value)}")
            return _read_list(value, element, pointer, faults)
        case Struct(members):
            return _read_struct(value, dict(members), data_type, pointer, faults)
        case Map():
            return _read_map(value, data_type, pointer, faults)
        case _:
            try:
                return _read_scalar(value, data_type)
            except RejectedValue as refused:
                return faults.add(pointer, str(refused))


def distinct_members(members: Members, pointer: str, faults: Faults) -> dict[str, Any]:
    """The members by name; a repeated name is a fault."""
    found: dict[str, Any] = {}
    for name, value in members:
        if faults.full:
            break
        if name in found:
            faults.add(below(pointer, name), f"the member {shown(name)} appears more than once")
        found[name] = value
    return found


def _read_list(value: list[Any], element: DataType, pointer: str, faults: Faults) -> list[Any]:
    read = []
    for number, each in enumerate(value):
        if faults.full:
            break
        read.append(read_value(each, element, below(pointer, number), faults))
    return read


def _read_struct(
    value: Any, types: dict[str, DataType], struct_type: DataType, pointer: str, faults: Faults
) -> Any:
    if not isinstance(value, Members):
        return faults.add(pointer, f"expected {struct_type}, got {describe(value)}")
    read: dict[str, Any] = dict.fromkeys(types)
    for name, member in distinct_members(value, pointer, faults).items():
        if faults.full:
            break
        if name in types:
            read[name] = read_value(member, types[name], below(pointer, name), faults)
        else:
            faults.add(below(pointer, name), unknown_field(name, types))
    return read


def _read_map(value: Any, data_type: Map, pointer: str, faults: Faults) -> Any:
    if not isinstance(value, Members):
        return faults.add(pointer, f"expected {data_type}, got {describe(value)}")
    entries: dict[Any, Any] = {}
    for name, item in distinct_members(value, pointer, faults).items():
        if faults.full:
            break
        place = below(pointer, name)
        try:
            key = read_text(name, data_type.key)
        except RejectedValue as refused:
            faults.add(place, f"as a key of the map: {refused}")
            continue
        if key in entries:
            faults.add(place, f"the key {shown(name)} denotes the same {data_type.key} as an earlier one")
        entries[key] = read_value(item, data_type.value, place, faults)
    return list(entries.items())


def _read_scalar(value: Any, data_type: DataType) -> Any:
    match data_type:
        case Primitive("boolean"):
            if isinstance(value, bool):
                return value
        case Primitive("float" | "double") | Decimal() if isinstance(value, JsonNumber):
            return read_text(value, data_type)
        case Decimal() | Timestamp() | Primitive("string" | "binary" | "date"):
            if isinstance(value, str) and not isinstance(value, JsonNumber | NonFinite):
                return read_text(value, data_type)
        case Primitive() if isinstance(value, JsonNumber):
            if not _INTEGER.fullmatch(value) and value != "-0":
                raise RejectedValue(
                    f"expected {data_type}, got {describe(value)}, which is not written as an integer"
                )
            return _integer(value, data_type)
    raise RejectedValue(f"expected {data_type}, got {describe(value)}")


def read_text(text: str, data_type: DataType) -> Any:
    """The value that a text denotes: a CSV cell, a map key, the contents of a JSON string. Raises RejectedValue."""
    match data_type:
        case Primitive("string"):
            return _unicode(text)
        case Primitive("boolean"):
            if text in {"true", "false"}:
                return text == "true"
            raise _refused_text(data_type, text, "booleans are true or false")
        case Primitive("binary"):
            try:
                return base64_bytes(text)
            except Undecodable as fault:
                raise _refused_text(data_type, text, f"which is not base64: {fault}") from None
        case Primitive("date"):
            return _date(text, data_type)
        case Primitive("float" | "double"):
            return _floating(text, data_type)
        case Decimal():
            return _decimal(text, data_type)
        case Timestamp():
            return _timestamp(text, data_type)
        case Primitive():
            if not _INTEGER.fullmatch(text):
                raise _refused_text(data_type, text, "which is not written as an integer")
            return _integer(text, data_type)
    raise TypeError(f"{data_type} has no text form")


def read_cell(text: str, data_type: DataType, pointer: str, faults: Faults) -> Any:
    """The Python value of a CSV cell, where nested types are JSON; None, and a fault, if it does not fit."""
    if not isinstance(data_type, List | Map | Struct):
        try:
            return read_text(text, data_type)
        except RejectedValue as refused:
            return faults.add(pointer, str(refused))
    try:
        value = parse_json(text)
    except json.JSONDecodeError as fault:
        return faults.add(
            pointer, f"expected {data_type} as JSON, got {shown(text)}: {fault.msg} at character {fault.pos}"
        )
    except RecursionError:
        return faults.add(pointer, f"expected {data_type} as JSON, got one that is nested too deeply")
    return read_value(value, data_type, pointer, faults)


def _refused_text(data_type: DataType, text: str, reason: str) -> RejectedValue:
    got = f"{text[:60]}" if isinstance(text, JsonNumber) else shown(text)
    return RejectedValue(f"expected {data_type}, got {got}, {reason}")


def _unicode(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise RejectedValue(
            "expected string, got one with a lone surrogate, which is no Unicode text"
        ) from None
    return text


def _integer(text: str, data_type: DataType) -> int:
    low, high = _INTEGER_BOUNDS[str(data_type)]
    # Every 64-bit integer has at most twenty characters; Python takes long to parse a million digits.
    if len(text) > 20 or not low <= int(text) <= high:
        raise _refused_text(data_type, text, f"which is out of range ({low} to {high})")
    return int(text)


def _floating(text: str, data_type: DataType) -> float:
    if not _DECIMAL.fullmatch(text):
        raise _refused_text(data_type, text, "which is not a finite number")
    value = float(text)
    if str(data_type) == "float" and value not in (float("inf"), float("-inf")):
        # Arrow rounds the decimal text once, to 32 bits; a conversion through 64 bits could round twice.
        value = pa.scalar(text).cast(pa.float32()).as_py()
    if value in (float("inf"), float("-inf")):
        raise _refused_text(data_type, text, "which is out of range")
    return value


def _decimal(text: str, data_type: Decimal) -> decimal.Decimal:
    match = _DECIMAL.fullmatch(text)
    if match is None:
        raise _refused_text(data_type, text, "which is not a decimal number")
    exponent = match.group(2) or "e0"
    if len(text) > _DECIMAL_CHARACTERS_MAX or abs(int(exponent[1:])) > _EXPONENT_MAX:
        raise _refused_text(data_type, text, "which is out of range")
    value = decimal.Decimal(text)
    if value == 0:
        return decimal.Decimal(0)
    bare = value.normalize(_WIDE)
    if -int(bare.as_tuple().exponent) > data_type.scale:
        raise _refused_text(data_type, text, f"which has more than {data_type.scale} digits after the point")
    if bare.adjusted() >= data_type.precision - data_type.scale:
        limit = data_type.precision - data_type.scale
        raise _refused_text(data_type, text, f"which has more than {limit} digits before the point")
    return bare.quantize(decimal.Decimal(1).scaleb(-data_type.scale), context=_WIDE)


def _date(text: str, data_type: DataType) -> dt.date:
    match = _DATE.fullmatch(text)
    if match is None:
        raise _refused_text(data_type, text, "which is not written as YYYY-MM-DD")
    try:
        return dt.date(*(int(part) for part in match.groups()))
    except ValueError as fault:
        raise _refused_text(data_type, text, f"which is not a date: {fault}") from None


def _timestamp(text: str, data_type: Timestamp) -> int:
    """Ticks since 1970 in the type's unit."""
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        zone = "Z" if data_type.zoned else ""
        raise _refused_text(data_type, text, f"which is not written as YYYY-MM-DDTHH:MM:SS[.fraction]{zone}")
    *clock, fraction, zone = match.groups()
    if data_type.zoned and zone is None:
        raise _refused_text(data_type, text, "which lacks a zone: end it with Z or an offset such as +01:00")
    if not data_type.zoned and zone is not None:
        raise _refused_text(
            data_type, text, "which has a zone, but a wall-clock time without a zone is expected"
        )
    digits = 3 if data_type.unit == "ms" else 6
    fraction = fraction or ""
    if fraction[digits:].strip("0"):
        raise _refused_text(data_type, text, f"which has more than {digits} fractional digits")
    try:
        moment = dt.datetime(*(int(part) for part in clock), tzinfo=dt.UTC)  # type: ignore[misc, arg-type]
        offset = _offset(zone or "Z")
    except ValueError as fault:
        raise _refused_text(data_type, text, f"which is not a time: {fault}") from None
    seconds: int = (moment - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)) // dt.timedelta(seconds=1) - offset
    ticks = seconds * TICKS[data_type.unit] + int(fraction[:digits].ljust(digits, "0"))
    low, high = timestamp_bounds(data_type.unit)
    if not low <= ticks <= high:
        raise _refused_text(data_type, text, "which is outside the years 0001–9999 in UTC")
    return ticks


def _offset(zone: str) -> int:
    """Seconds east of UTC."""
    if zone == "Z":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    hours, minutes = int(digits[:2]), int(digits[2:])
    if hours > 23 or minutes > 59:
        raise ValueError("the zone offset is out of range")
    return (hours * 3_600 + minutes * 60) * (-1 if zone[0] == "-" else 1)
