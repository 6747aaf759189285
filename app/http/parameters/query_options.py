"""Query options: a struct for each operation, decoded from the query string of its request."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

import msgspec
from litestar.datastructures import MultiDict
from litestar.handlers import BaseRouteHandler

from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.member_errors import EXPECTED_TIME, field_error

OPTIONS = "options"
"""The name of the parameter by which a handler declares its options: `options: Provided[RowOptions]`."""


_CONDITION: Final = "where"
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_DECODED_PLUS: Final = re.compile(r"(.*:[\d.]+) (\d\d:?\d\d)", re.ASCII)


def options_type(handler: BaseRouteHandler) -> type[msgspec.Struct] | None:
    """The struct of a handler's query options; None for a handler without one."""
    field = handler.parsed_fn_signature.parameters.get(OPTIONS)
    return None if field is None else field.annotation


def decode_options(query: MultiDict[Any], type_: type[msgspec.Struct]) -> Any:
    """The options of a query string. A list has as many values as the parameter is repeated.

    Raises InvalidRequest with an error for each parameter that does not fit.
    """
    lists = list_options(type_)
    texts_by_name = {name: query.getall(name) for name in query}
    errors = [
        FieldError(pointer=f"/{name}", detail=f"expected once, got it {len(texts)} times")
        for name, texts in texts_by_name.items()
        if name not in lists and len(texts) > 1
    ]
    errors += [
        FieldError(pointer=f"/{name}", detail="it contains the character U+0000")
        for name, texts in texts_by_name.items()
        # Of a condition, it may be part of a string.
        if name != _CONDITION and any("\0" in text for text in texts)
    ]
    times = _time_options(type_)
    errors += [
        FieldError(pointer=f"/{name}", detail=EXPECTED_TIME)
        for name, texts in texts_by_name.items()
        # A number would be read as seconds since 1970.
        if name in times and not all(_DATE.match(text) for text in texts)
    ]
    values: dict[str, Any] = {
        name: texts if name in lists else texts[-1] for name, texts in texts_by_name.items()
    }
    try:
        options = msgspec.convert(values, type_, strict=False)
        if not errors:
            return options
    except msgspec.ValidationError:
        pointers = {error.pointer for error in errors}
        errors += [error for error in _errors(values, type_) if error.pointer not in pointers]
    raise InvalidRequest("; ".join(f"{error.pointer[1:]}: {error.detail}" for error in errors), errors)


@cache
def list_options(type_: type[msgspec.Struct]) -> frozenset[str]:
    """The options that may be repeated."""
    return frozenset(
        field.encode_name
        for field in msgspec.structs.fields(type_)
        if _has_list(msgspec.inspect.type_info(field.type))
    )


@cache
def _time_options(type_: type[msgspec.Struct]) -> frozenset[str]:
    return frozenset(
        field.encode_name
        for field in msgspec.structs.fields(type_)
        if _has_time(msgspec.inspect.type_info(field.type))
    )


def _has_list(type_: msgspec.inspect.Type) -> bool:
    if isinstance(type_, msgspec.inspect.UnionType):
        return any(_has_list(each) for each in type_.types)
    return isinstance(type_, msgspec.inspect.ListType | msgspec.inspect.VarTupleType)


def _has_time(type_: msgspec.inspect.Type) -> bool:
    if isinstance(type_, msgspec.inspect.UnionType):
        return any(_has_time(each) for each in type_.types)
    return isinstance(type_, msgspec.inspect.DateTimeType)


def _errors(values: dict[str, Any], type_: type[msgspec.Struct]) -> list[FieldError]:
    errors = []
    for field in msgspec.structs.fields(type_):
        pointer = f"/{field.encode_name}"
        if field.encode_name not in values:
            if field.required:
                errors.append(FieldError(pointer=pointer, detail="this parameter is required"))
            continue
        try:
            msgspec.convert(values[field.encode_name], field.type, strict=False)
        except msgspec.ValidationError as error:
            fault = field_error(str(error), field.type, at=pointer)
            # Every parameter is sent as text, so only what is expected is news; null is one that is not sent.
            detail = fault.detail.removesuffix(", got a string").replace(" or null", "")
            detail = detail.replace("a boolean", "true or false")
            if detail == EXPECTED_TIME:
                detail += _plus_hint(values[field.encode_name])
            errors.append(FieldError(pointer=fault.pointer, detail=detail))
    return errors


def _plus_hint(text: str) -> str:
    """How to send a time whose `+` was decoded as a space; empty for other texts."""
    time_match = _DECODED_PLUS.fullmatch(text)
    return (
        f"; a + in a query string means a space: send {time_match[1]}%2B{time_match[2]}" if time_match else ""
    )
