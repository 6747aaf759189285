"""A dataset at a glance: what happens in it, what feeds it and what it feeds, and how it is read."""

from __future__ import annotations

from typing import Final

from app.features.console.page import ConsoleAction, ConsolePage, Context
from app.features.console.pages.dataset_frame import dataset_frame
from app.features.console.visit import Visit


async def _read(visit: Visit) -> Context:
    return await dataset_frame(visit)


PAGES: Final = (ConsolePage(path="/datasets/{dataset:str}", template="dataset.html", read=_read),)
ACTIONS: Final[tuple[ConsoleAction, ...]] = ()
