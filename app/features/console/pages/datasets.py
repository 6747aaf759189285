"""The list of datasets: rows, size, freshness and health, by one request."""

from __future__ import annotations

from typing import Final

from app.features.console.page import ConsoleAction, ConsolePage, Context
from app.features.console.visit import Visit

_PAGE_SIZE: Final = 100


async def _read(visit: Visit) -> Context:
    page = await visit.api.get("/overview", page_size=_PAGE_SIZE, page_token=visit.query.get("page_token"))
    return {"items": page["items"], "next_token": page["next_page_token"]}


PAGES: Final = (ConsolePage(path="/datasets", template="datasets.html", read=_read),)
ACTIONS: Final[tuple[ConsoleAction, ...]] = ()
