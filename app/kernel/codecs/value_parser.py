"""The exact parser: one value at a time, with a message for every fault.

The fast paths only detect that a body does not fit. This parser finds the value that does not fit. It is also the
reference: it defines the accepted format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from typing import Any, Final

from app.kernel.codecs.faults import Faults, below, shown, unknown_field
from app.kernel.format.errors import FieldError
from app.kernel.format.schema.types import (
    INTEGER_TEXT,
    DataType,
    FlatType,
    JsonForm,
    List,
    Map,
    RefusedText,
    Struct,
)

_BLANKS: Final = re.compile(r"[ \t\r\n]*")


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
        case FlatType():
            try:
                return _read_scalar(value, data_type)
            except RejectedValue as error:
                return faults.add(pointer, str(error))


def distinct_members(members: Members, pointer: str, faults: Faults) -> dict[str, Any]:
    """The members by name; a repeated name is a fault."""
    by_name: dict[str, Any] = {}
    for name, value in members:
        if faults.full:
            break
        if name in by_name:
            faults.add(below(pointer, name), f"the member {shown(name)} appears more than once")
        by_name[name] = value
    return by_name


def _read_list(value: list[Any], element: DataType, pointer: str, faults: Faults) -> list[Any]:
    elements = []
    for number, each in enumerate(value):
        if faults.full:
            break
        elements.append(read_value(each, element, below(pointer, number), faults))
    return elements


def _read_struct(
    value: Any, types: dict[str, DataType], struct_type: DataType, pointer: str, faults: Faults
) -> Any:
    if not isinstance(value, Members):
        return faults.add(pointer, f"expected {struct_type}, got {describe(value)}")
    values: dict[str, Any] = dict.fromkeys(types)
    distinct = distinct_members(value, pointer, faults)
    invalid = invalid_members(distinct, types, pointer)
    for name, member in distinct.items():
        if faults.full:
            break
        if name in types:
            values[name] = read_value(member, types[name], below(pointer, name), faults)
        else:
            refuse_unknown(name, member, types, below(pointer, name), invalid, faults)
    return values


def refuse_unknown(
    name: str,
    value: Any,
    types: Iterable[str],
    pointer: str,
    invalid: Mapping[str, FieldError],
    faults: Faults,
) -> None:
    """Adds the fault of a member that no type has, unless it is null: then it is ignored.

    `invalid`: the result of `invalid_members` for the object. If it has some, other unknown members are no faults.
    """
    if value is None:
        faults.ignore(pointer)
    elif name in invalid:
        faults.add(invalid[name].pointer, invalid[name].detail)
    elif not invalid:
        faults.add(pointer, unknown_field(name, types))


def invalid_members(members: Mapping[str, Any], types: Container[str], pointer: str) -> dict[str, FieldError]:
    """The unknown members of an object whose values are no JSON, by name. `pointer`: that of the object."""
    return {
        name: fault
        for name, value in members.items()
        if name not in types and (fault := invalid_value(value, below(pointer, name))) is not None
    }


def invalid_value(value: Any, pointer: str) -> FieldError | None:
    """The first NaN, Infinity or lone surrogate in the result of `parse_json`, but for a single NaN or Infinity."""
    pending: list[tuple[str, Any]] = [(pointer, value)]
    while pending:
        pointer, value = pending.pop()
        match value:
            case NonFinite() if pointer:
                return FieldError(
                    pointer=pointer, detail=f"{value} is no JSON number; send null or leave it out"
                )
            case Members():
                for name, _ in value:
                    if (escape := _lone_surrogate(name)) is not None:
                        return FieldError(pointer=pointer, detail=f"a member's name has {escape}")
                pending += [(below(pointer, name), each) for name, each in reversed(value)]
            case list():
                pending += [(below(pointer, number), each) for number, each in reversed([*enumerate(value)])]
            case str() if (escape := _lone_surrogate(value)) is not None:
                return FieldError(pointer=pointer, detail=f"the text has {escape}")
    return None


def _lone_surrogate(text: str) -> str | None:
    """What is wrong with the first half of a surrogate pair in a text; None if there is none."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        return (
            f"the escape \\u{ord(text[error.start]):04x}, which is half of a surrogate pair and no character"
        )
    return None


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
        except RejectedValue as error:
            faults.add(place, f"as a key of the map: {error}")
            continue
        if key in entries:
            faults.add(place, f"the key {shown(name)} denotes the same {data_type.key} as an earlier one")
        entries[key] = read_value(item, data_type.value, place, faults)
    return list(entries.items())


def _read_scalar(value: Any, data_type: FlatType) -> Any:
    is_number = isinstance(value, JsonNumber)
    is_text = isinstance(value, str) and not isinstance(value, JsonNumber | NonFinite)
    match data_type.json_form:
        case JsonForm.BOOLEAN if isinstance(value, bool):
            return value
        case JsonForm.INTEGER if is_number:
            if not INTEGER_TEXT.fullmatch(value) and value != "-0":
                raise RejectedValue(
                    f"expected {data_type}, got {describe(value)}, which is not written as an integer"
                )
            return 0 if value == "-0" else read_text(value, data_type)
        case JsonForm.NUMBER if is_number:
            return read_text(value, data_type)
        case JsonForm.NUMBER_OR_TEXT if is_number or is_text:
            return read_text(value, data_type)
        case JsonForm.TEXT if is_text:
            return read_text(value, data_type)
    raise RejectedValue(f"expected {data_type}, got {describe(value)}")


def read_text(text: str, data_type: DataType) -> Any:
    """The value that a text denotes: a CSV cell, a map key, the contents of a JSON string. Raises RejectedValue."""
    if not isinstance(data_type, FlatType):
        raise TypeError(f"{data_type} has no text form")
    try:
        return data_type.read(text)
    except RefusedText as error:
        got = error.got or (f"{text[:60]}" if isinstance(text, JsonNumber) else shown(text))
        raise RejectedValue(f"expected {data_type}, got {got}, {error}") from None


def read_cell(text: str, data_type: DataType, pointer: str, faults: Faults) -> Any:
    """The Python value of a CSV cell, where nested types are JSON; None, and a fault, if it does not fit."""
    if isinstance(data_type, FlatType):
        try:
            return read_text(text, data_type)
        except RejectedValue as error:
            return faults.add(pointer, str(error))
    try:
        value = parse_json(text)
    except json.JSONDecodeError as fault:
        return faults.add(
            pointer, f"expected {data_type} as JSON, got {shown(text)}: {fault.msg} at character {fault.pos}"
        )
    except RecursionError:
        return faults.add(pointer, f"expected {data_type} as JSON, got one that is nested too deeply")
    return read_value(value, data_type, pointer, faults)
