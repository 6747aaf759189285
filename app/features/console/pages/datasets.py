"""The list of datasets: rows, size, freshness and health, by one request. Their names, while one types."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from app.features.console.page import ConsolePage, Context
from app.features.console.pages.concerns import JobFailures, all_concerns, health_of, job_failures
from app.features.console.pages.dataset_frame import counts_at
from app.features.console.pages.field_values import place_in_list
from app.features.console.visit import Visit, together

_READ: Final = 1_000
"""The datasets that are sorted together."""
_SHOWN: Final = 100
_LABELS_SHOWN: Final = 16
_NEVER: Final = datetime.min.replace(tzinfo=UTC)
_NAMES: Final = 20
_TEXT_MAX: Final = 200
_STATE: Final = "state"
_WORST: Final = ("good", "idle", "warning", "bad")
_KEYS: Final[Mapping[str, Callable[[Mapping[str, Any]], Any]]] = {
    "name": lambda each: each["dataset"],
    _STATE: lambda each: (_WORST.index(each["health"].kind), each["quarantined"] or 0, each["lag"] or 0),
    "committed": lambda each: (
        datetime.fromisoformat(each["committed_at"]) if each["committed_at"] else _NEVER
    ),
    **{
        name: lambda each, name=name: each[name] or 0  # type: ignore[misc]
        for name in ("rows", "size_bytes", "files", "version", "writes", "rows_in", "lag", "quarantined")
    },
}
"""By what the list is sorted, by the option `sort`."""


async def _read(visit: Visit) -> Context:
    text = visit.query.get("q", "").strip()
    page, failures = await together(
        visit.api.get(
            "/overview",
            page_size=_READ,
            page_token=visit.query.get("page_token"),
            name=f"*{text}*" if text else None,
            label=visit.query.get("label"),
        ),
        job_failures(visit),
    )
    sort = visit.query.get("sort", "name")
    falls = visit.query.get("order", "asc" if sort == "name" else "desc") == "desc"
    items = page["items"]
    if sort == _STATE:
        items = _with_health(items, failures, visit.now)
    items.sort(key=_KEYS.get(sort, _KEYS["name"]), reverse=falls)
    start = place_in_list(visit.query.get("from"))
    labels = Counter(f"{key}:{value}" for each in items for key, value in each["labels"].items())
    part = items[start : start + _SHOWN]
    return {
        "items": part if sort == _STATE else _with_health(part, failures, visit.now),
        "count": len(items),
        "counts_at": counts_at(part),
        "start": start,
        "shown": _SHOWN,
        "next_token": page["next_page_token"],
        "labels": [label for label, _ in labels.most_common(_LABELS_SHOWN)],
        "sort": sort,
        "falls": falls,
        "text": text,
    }


def _with_health(
    datasets: Sequence[Mapping[str, Any]], failures: JobFailures, now: datetime
) -> list[dict[str, Any]]:
    """Items of GET /overview, each with its `health`."""
    concerns = all_concerns(datasets, failures, now)
    return [{**each, "health": health_of(each, concerns[each["id"]])} for each in datasets]


async def _read_names(visit: Visit) -> Context:
    """Names that have the option `text`, which a field offers; none if they cannot be read."""
    pattern = f"*{visit.query.get('text', '')[:_TEXT_MAX]}*"
    part = await visit.api.part("/datasets", name=pattern, page_size=_NAMES)
    return {"names": [] if part.problem else [each["name"] for each in part.value["items"]]}


PAGES: Final = (
    ConsolePage(path="/datasets", template="datasets.html", read=_read),
    ConsolePage(path="/dataset-names", template="dataset_names.html", read=_read_names),
)
