"""Requests that several of these pages send: a page of a list, and changes under an ETag."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from app.features.console.page import ConsoleForm, Context
from app.features.console.pages.field_values import FieldFault
from app.features.console.visit import Visit

_PAGE_SIZE: Final = 100
STATES: Final = {"pause": "paused", "resume": "active"}
"""The state of a resource after each word of the forms that change it."""


async def read_list(visit: Visit, path: str, *, page_size: int = _PAGE_SIZE, **options: Any) -> Context:
    """The page of a list of the API that the address names, as `items` and `next_token`. Raises ApiProblem."""
    page = await visit.api.get(path, **options, page_size=page_size, page_token=visit.query.get("page_token"))
    return {"items": page["items"], "next_token": page["next_page_token"]}


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
        raise FieldFault("confirm", "check the box to delete it: nothing was deleted")
    await visit.api.send("DELETE", path)
