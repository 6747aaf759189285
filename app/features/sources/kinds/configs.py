"""Configs of sources as values of their kinds."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.member_errors import field_error

_T = TypeVar("_T", bound=msgspec.Struct)


def checked_config(config: dict[str, Any], type_: type[_T]) -> _T:
    """The config as a value of this type. Raises InvalidRequest."""
    try:
        return msgspec.convert(config, type_)
    except msgspec.ValidationError as error:
        raise refused_config(field_error(str(error), type_, at="/config", value=config)) from None


def refused_config(*errors: FieldError) -> InvalidRequest:
    """The error of a config with these faults."""
    summary = "; ".join(f"{error.pointer.removeprefix('/')}: {error.detail}" for error in errors)
    return InvalidRequest(f"the config of the source is not valid: {summary}", errors)
