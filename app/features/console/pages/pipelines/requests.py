"""Requests that several of these pages send: changes under an ETag, names of datasets, members from fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.features.console.page import ConsoleForm
from app.features.console.pages.json_text import NoJson, finite_number, json_of
from app.features.console.visit import ApiProblem, PagePart, Visit

NAMES_MAX: Final = 1_000
"""The most datasets whose names a page knows."""
STATES: Final = {"pause": "paused", "resume": "active"}
"""The state of a resource after each word of the forms that change it."""


async def change(visit: Visit, path: str, members: Mapping[str, Any], etag: str = "") -> Any:
    """Changes a resource. `etag`: what it must still have; empty for the current one. Raises ApiProblem."""
    if not etag:
        etag = (await visit.api.response("GET", path)).headers["etag"]
    return await visit.api.send("PATCH", path, members, headers={"If-Match": etag})


async def change_state(visit: Visit, path: str, form: ConsoleForm) -> str:
    """Pauses or resumes a resource, as the field `to` states. Returns its new state. Raises ApiProblem."""
    resource = await change(visit, path, {"state": STATES.get(form.text("to"), form.text("to"))})
    return str(resource["state"])


async def delete_confirmed(visit: Visit, form: ConsoleForm, path: str) -> None:
    """Deletes a resource, if the box of the form is checked. Raises ApiProblem."""
    if not form.checked("confirm"):
        detail = "check the box to delete it: nothing was deleted"
        members = {
            "type": "/problems/invalid-request",
            "title": "The request is not valid",
            "status": 400,
            "detail": detail,
            "errors": [{"pointer": "/confirm", "detail": detail}],
        }
        raise ApiProblem(members)
    await visit.api.send("DELETE", path)


async def dataset_names(visit: Visit) -> Mapping[str, str]:
    """The names of datasets by id; without those beyond NAMES_MAX, and empty if they cannot be read."""
    part: PagePart = await visit.api.part("/overview", page_size=NAMES_MAX)
    items = [] if part.problem else part.value["items"]
    return {each["id"]: each["dataset"] for each in items}


def whole_number(form: ConsoleForm, name: str) -> int | str | None:
    """The number in a field. Another text stays as it is, for the API to refuse. None for an empty field."""
    text = form.text(name).replace(",", "")
    if not text:
        return None
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 19 else text


def decimal_number(form: ConsoleForm, name: str) -> float | str | None:
    """The number in a field, which may have a fraction. See `whole_number`."""
    text = form.text(name)
    try:
        return finite_number(text) if text else None
    except ValueError:
        return text


def words(form: ConsoleForm, name: str) -> Sequence[str] | None:
    """The names in a field, which commas separate; None for an empty field."""
    names = [each.strip() for each in form.text(name).split(",")]
    return [each for each in names if each] or None


def present(members: Mapping[str, Any]) -> dict[str, Any]:
    """The members that have a value."""
    return {name: value for name, value in members.items() if value is not None and value != ""}


def json_value(form: ConsoleForm, name: str) -> Any:
    """The JSON in a field. Raises ApiProblem, with the place of the fault, for another text."""
    text = form.text(name)
    try:
        return json_of(text)
    except NoJson as error:
        members = {
            "type": "/problems/malformed-body",
            "title": "The body cannot be decoded",
            "status": 400,
            "detail": f"the text is no JSON: {error}",
            "errors": [{"pointer": f"/{name}", "detail": str(error)}],
        }
        raise ApiProblem(members) from None
