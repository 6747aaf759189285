"""The audit: who requested what, with filters that are in the address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from app.features.console.page import ConsolePage, Context
from app.features.console.pages.field_values import time_of
from app.features.console.visit import Visit, together

_PAGE_SIZE: Final = 50
_NAMES: Final = 500
_OUTCOMES: Final = ("", "allowed", "denied", "failed")
_VIA: Final = ("", "api", "console")
_KINDS: Final[Mapping[str, tuple[str, str]]] = {
    "allowed": ("good", "allowed"),
    "denied": ("warning", "denied"),
    "failed": ("bad", "failed"),
}


async def _read(visit: Visit) -> Context:
    query = visit.query
    times = {name: query.get(name, "") for name in ("since_time", "until_time")}
    if not any(times.values()) and visit.since is not None:
        times["since_time"] = visit.since.strftime("%Y-%m-%dT%H:%M:%S")
    page, keys, tenants = await together(
        visit.api.get(
            "/audit",
            page_size=_PAGE_SIZE,
            page_token=query.get("page_token"),
            key=query.get("key"),
            operation=query.get("operation"),
            outcome=query.get("outcome"),
            via=query.get("via"),
            tenant=query.get("tenant"),
            **{name: time_of(name, text).isoformat() for name, text in times.items() if text},
        ),
        _items(visit, "/keys", visit.may("manage")),
        _items(visit, "/tenants", visit.may("operate")),
    )
    return {
        "items": page["items"],
        "next_token": page["next_page_token"],
        "times": times,
        "outcomes": _OUTCOMES,
        "sources": _VIA,
        "kinds": _KINDS,
        "keys": keys,
        "names": {each["id"]: each["name"] for each in (*keys, *tenants) if each["name"]},
        "tenant_names": {each["id"]: each["name"] for each in tenants},
        "filtered": bool(visit.range) or any(value for name, value in query.items() if name != "page_token"),
    }


async def _items(visit: Visit, path: str, may: bool) -> list[Any]:
    """The names that make entries readable; none where the reader may not list them."""
    if not may:
        return []
    part = await visit.api.part(path, page_size=_NAMES)
    return list(part.value["items"]) if part.value else []


PAGES: Final = (ConsolePage(path="/audit", template="audit.html", read=_read),)
