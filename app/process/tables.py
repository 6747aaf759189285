"""All tables of the service. The import of this module adds them to `app.infra.db.columns.metadata`.

A room's tables are its module `tables`. They are found by this name, and nothing else of a room is imported: a
migration needs no handlers.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules

import app.access
import app.core
import app.features
from app.infra.db.columns import metadata

__all__ = ["metadata"]

for _wing in (app.access, app.core, app.features):
    for _room in iter_modules(_wing.__path__, f"{_wing.__name__}."):
        if _room.ispkg and find_spec(f"{_room.name}.tables") is not None:
            import_module(f"{_room.name}.tables")
