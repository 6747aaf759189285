"""Tables that are loaded with PyIceberg, by which other readers find them."""

from __future__ import annotations

from functools import cache

from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import Table
from reader_process import Request


@cache
def _catalogue(uri: str, token: str, warehouse: str, planning: str) -> RestCatalog:
    properties = {"type": "rest", "uri": uri, "token": token, "warehouse": warehouse}
    return load_catalog("headwater", **properties, **({"scan-planning-mode": planning} if planning else {}))


def loaded(request: Request) -> Table:
    """The table as it is now. Option `planning`: `client` or `server`; left out, what the service says."""
    planning = request["options"].get("planning", "")
    catalogue = _catalogue(request["uri"], request["token"], request["warehouse"], planning)
    return catalogue.load_table(("headwater", request["table"]))
