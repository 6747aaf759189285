"""The keys of the console, and where else help is."""

from __future__ import annotations

from typing import Final

from app.features.console.page import ConsolePage, Context
from app.features.console.visit import Visit


async def _read(_: Visit) -> Context:
    return {}


PAGES: Final = (ConsolePage(path="/help", template="help.html", read=_read),)
