"""JSON that a person has typed."""

from __future__ import annotations

import math
from typing import Any

import msgspec


class NoJson(ValueError):
    """A text that is no JSON, with what is wrong with it."""


def json_of(text: str, /, type_: Any = Any) -> Any:
    """The value of the text. Raises NoJson, also for what is nested too deeply."""
    try:
        return msgspec.json.decode(text, type=type_)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise NoJson(str(error)) from None
    except RecursionError:
        raise NoJson("it is nested too deeply") from None


def finite_number(text: str) -> float:
    """The number in the text. Raises ValueError, also for one that JSON has not, which would be sent as null."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is no number of JSON")
    return value
