"""What happens now, and what needs attention first."""

from __future__ import annotations

from typing import Final

from app.features.console.page import ConsoleAction, ConsolePage, Context
from app.features.console.visit import Visit

_SHOWN: Final = 100


async def _read(visit: Visit) -> Context:
    page = await visit.api.get("/overview", page_size=_SHOWN)
    faulty = [each for each in page["items"] if each["problems"]]
    return {"datasets": page["items"], "faulty": faulty}


PAGES: Final = (ConsolePage(path="", template="home.html", read=_read),)
ACTIONS: Final[tuple[ConsoleAction, ...]] = ()
