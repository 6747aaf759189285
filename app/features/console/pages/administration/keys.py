"""The API keys of the tenant: what each may do, when it was last used, and how one is made and revoked."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from app.features.console.page import ConsoleAction, ConsoleForm, ConsolePage, Context, Done, Shown
from app.features.console.pages.administration.key_words import description, new_key_body
from app.features.console.visit import Visit, path_of

_PAGE_SIZE: Final = 100


async def _read(visit: Visit) -> Context:
    page = await visit.api.get("/keys", page_size=_PAGE_SIZE, page_token=visit.query.get("page_token"))
    return {
        "items": [description(each, visit.now) for each in page["items"]],
        "next_token": page["next_page_token"],
        "scopes": sorted(scope.value for scope in visit.principal.scopes),
        "own": visit.principal.actor,
    }


async def _make(visit: Visit, form: ConsoleForm) -> Shown:
    new = await visit.api.send("POST", "/keys", new_key_body(form))
    return Shown(template="new_key.html", context=new_key_context(new, "/console/keys", "Keys"))


async def _revoke(visit: Visit, form: ConsoleForm) -> Done:
    key = visit.variables["key"]
    await visit.api.send("DELETE", path_of("keys", key))
    return Done(to="/console/keys", notice=f"The key {form.text('name') or key} is revoked.")


def new_key_context(new: Mapping[str, Any], back: str, word: str) -> Context:
    """The values of the page that shows a new key once. `back`: the path of the list, and `word` its name."""
    return {
        "made": description(new, datetime.now(UTC)),
        "api_key": new["api_key"],
        "back": back,
        "word": word,
    }


_PAGE: Final = ConsolePage(path="/keys", template="keys.html", read=_read)
PAGES: Final = (_PAGE,)
ACTIONS: Final = (
    ConsoleAction(path="/keys", run=_make, page=_PAGE),
    ConsoleAction(path="/keys/{key:str}/revoke", run=_revoke, page=_PAGE),
)
