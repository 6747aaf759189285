"""Values that people fill in: numbers, times, names and JSON, from the texts of fields and of options of addresses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from app.features.console.pages.json_text import NoJson, finite_number, json_of
from app.features.console.visit import ApiProblem

_DIGITS_MAX: Final = 18
_EXCERPT: Final = 40


class FieldFault(ApiProblem):
    """What a person has filled in cannot be understood. `field`: its name, whose dots lead to members."""

    def __init__(self, field: str, detail: str) -> None:
        members = {
            "type": "/problems/invalid-request",
            "title": "The request is not valid",
            "status": 400,
            "detail": f"{field}: {detail}",
            "errors": [{"pointer": "/" + field.replace(".", "/"), "detail": detail}],
        }
        super().__init__(members)


def whole_number(field: str, text: str) -> int | None:
    """The number, 0 or more, which may have commas; None for an empty text. Raises FieldFault."""
    digits = text.strip().replace(",", "").replace("_", "")
    if not digits:
        return None
    if not (digits.isascii() and digits.isdigit()) or len(digits) > _DIGITS_MAX:
        raise _fault(field, "a whole number", text)
    return int(digits)


def decimal_number(field: str, text: str) -> float | None:
    """The number, which may have a fraction; None for an empty text. Raises FieldFault."""
    if not text.strip():
        return None
    try:
        return finite_number(text)
    except ValueError:
        raise _fault(field, "a number", text) from None


def time_of(field: str, text: str) -> datetime:
    """The time, with its zone or in UTC. Raises FieldFault."""
    try:
        time = datetime.fromisoformat(text)
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise _fault(field, "a date and a time", text) from None


def place_in_list(text: str | None) -> int:
    """Where a part of a list begins, as an option of an address says; 0 for anything but a number."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX else 0


def words(text: str) -> Sequence[str] | None:
    """The names, which commas separate; None for an empty text."""
    names = [each.strip() for each in text.split(",")]
    return [each for each in names if each] or None


def json_value(field: str, text: str) -> Any:
    """The value of the JSON. Raises FieldFault, with the place of the fault."""
    try:
        return json_of(text)
    except NoJson as error:
        raise FieldFault(field, f"expected JSON: {error}") from None


def present(members: Mapping[str, Any]) -> dict[str, Any]:
    """The members that have a value."""
    return {name: value for name, value in members.items() if value is not None and value != ""}


def _fault(field: str, expectation: str, text: str) -> FieldFault:
    return FieldFault(field, f"expected {expectation}, not {text[:_EXCERPT]!r}")
