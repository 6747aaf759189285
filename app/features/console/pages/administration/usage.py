"""What the tenant has used, by day: of all, of each dataset or of each key."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any, Final

from app.features.console.page import ConsolePage, Context
from app.features.console.pages.administration.day_charts import NUMBERS, by_day
from app.features.console.pages.field_values import FieldFault
from app.features.console.visit import PageApi, Visit, together

_DAYS: Final = 31
_DAYS_MAX: Final = 400
_PAGE_SIZE: Final = 500
_PAGES_MAX: Final = 4
_NAMES: Final = 500
_BY: Final = ("tenant", "dataset", "key")


async def _read(visit: Visit) -> Context:
    last = _day("to", visit.query.get("to", ""), visit.now.date())
    span = timedelta(days=_DAYS - 1) if visit.span is None else visit.span
    first = _day("from", visit.query.get("from", ""), last - min(span, last - date.min))
    days = (last - first).days + 1
    if not 1 <= days <= _DAYS_MAX:
        raise FieldFault("from", f"expected a day of the {_DAYS_MAX} days up to `to`")
    by = visit.query.get("by") or "tenant"
    options = {"from": first.isoformat(), "to": last.isoformat(), "by": by}
    (items, complete), key_names = await together(_all_pages(visit.api, options), _key_names(visit, by))
    groups = _groups(items, by, key_names)
    return {
        "by": by,
        "words": _BY,
        "first": first,
        "last": last,
        "charts": by_day(items, last, days=days),
        "groups": groups,
        "complete": complete,
    }


async def _all_pages(api: PageApi, options: Mapping[str, str]) -> tuple[list[Mapping[str, Any]], bool]:
    """The usage of the days, and whether this is all of it: a page has so much of it at most."""
    items: list[Mapping[str, Any]] = []
    token = None
    for _ in range(_PAGES_MAX):
        page = await api.get("/usage", page_size=_PAGE_SIZE, page_token=token, **options)
        items += page["items"]
        token = page["next_page_token"]
        if token is None:
            return items, True
    return items, False


async def _key_names(visit: Visit, by: str) -> Mapping[str, str]:
    """The names of keys by their ids, as far as the reader may list them."""
    if by != "key":
        return {}
    part = await visit.api.part("/keys", page_size=_NAMES)
    return {each["id"]: each["name"] for each in (part.value or {}).get("items", ())}


def _groups(items: list[Mapping[str, Any]], by: str, key_names: Mapping[str, str]) -> list[Mapping[str, Any]]:
    """The sums of the days of each dataset or key; none where usage is that of the tenant."""
    if by == "tenant":
        return []
    totals: dict[str, dict[str, Any]] = {}
    for item in items:
        group_id = item[f"{by}_id"]
        total = totals.setdefault(
            group_id, {"id": group_id, "name": item["dataset"] or key_names.get(group_id)}
        )
        total["is_deleted"] = item["dataset_deleted_at"] is not None
        for name in NUMBERS:
            if (value := item[name]) is None:
                continue
            before = total.get(name, 0)
            total[name] = max(before, value) if name == "stored_bytes" else before + value
    order = "rows_written" if by == "dataset" else "requests"
    return sorted(totals.values(), key=lambda total: total.get(order, 0), reverse=True)


def _day(name: str, text: str, default: date) -> date:
    """The day of an option. Raises FieldFault."""
    if not text:
        return default
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise FieldFault(name, f"expected a day such as 2026-11-29, not {text[:40]!r}") from None


PAGES: Final = (ConsolePage(path="/usage", template="usage.html", read=_read),)
