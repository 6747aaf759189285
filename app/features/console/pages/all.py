"""All pages and forms: `PAGES` and `ACTIONS` of the modules of this package, which are found by these names."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType
from typing import Final

import app.features.console.pages as package
from app.features.console.page import ConsoleAction, ConsolePage


def _modules() -> Iterator[ModuleType]:
    for each in walk_packages(package.__path__, f"{package.__name__}."):
        if each.name != __name__:
            yield import_module(each.name)


_MODULES: Final = tuple(_modules())
PAGES: Final[tuple[ConsolePage, ...]] = tuple(
    page for module in _MODULES for page in getattr(module, "PAGES", ())
)
ACTIONS: Final[tuple[ConsoleAction, ...]] = tuple(
    action for module in _MODULES for action in getattr(module, "ACTIONS", ())
)
