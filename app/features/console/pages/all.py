"""All pages and forms. Modules are listed by name, one a line."""

from __future__ import annotations

from types import ModuleType
from typing import Final

from app.features.console.page import ConsoleAction, ConsolePage
from app.features.console.pages import (
    dataset,
    datasets,
    home,
    reference,
    search,
    settings,
    shortcuts,
)
from app.features.console.pages.administration import (
    audit,
    keys,
    service,
    shares,
    tenants,
    usage,
)
from app.features.console.pages.feed import (
    changes,
    difference,
    row,
    rows,
    undo,
    write,
)
from app.features.console.pages.history import (
    consumers,
    layout,
    quarantine,
    schema,
    timeline,
)
from app.features.console.pages.pipelines import (
    exports,
    jobs,
    lineage,
    sources,
    views,
    webhooks,
)

_MODULES: Final[tuple[ModuleType, ...]] = (
    changes,
    dataset,
    datasets,
    difference,
    home,
    row,
    rows,
    undo,
    write,
    consumers,
    layout,
    quarantine,
    schema,
    timeline,
    exports,
    jobs,
    lineage,
    reference,
    search,
    settings,
    shortcuts,
    sources,
    views,
    webhooks,
    audit,
    keys,
    service,
    shares,
    tenants,
    usage,
)
PAGES: Final[tuple[ConsolePage, ...]] = tuple(page for module in _MODULES for page in module.PAGES)
ACTIONS: Final[tuple[ConsoleAction, ...]] = tuple(action for module in _MODULES for action in module.ACTIONS)
