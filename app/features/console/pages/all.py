"""All pages and forms."""

from __future__ import annotations

from typing import Final

from app.features.console.page import ConsoleAction, ConsolePage
from app.features.console.pages import datasets, home

_MODULES: Final = (home, datasets)
PAGES: Final[tuple[ConsolePage, ...]] = tuple(page for module in _MODULES for page in module.PAGES)
ACTIONS: Final[tuple[ConsoleAction, ...]] = tuple(action for module in _MODULES for action in module.ACTIONS)
