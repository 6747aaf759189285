"""What happens now, and what needs attention first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, Final

from app.features.console.page import ConsolePage, Context
from app.features.console.pages.concerns import Concern, all_concerns, job_failures, of_paused
from app.features.console.pages.dataset_frame import counts_at
from app.features.console.pages.hours import hour_bars, hours_of
from app.features.console.pages.standstill import chain_to
from app.features.console.visit import ApiProblem, PagePart, Visit, together

_DATASETS: Final = 1_000
_LISTED: Final = 20
_BUSIEST: Final = 8
_WEBHOOKS: Final = 100


async def _read(visit: Visit) -> Context:
    if not visit.may("read"):
        health = await service_health(visit)
        return {"service_concerns": list(_of_service(health)), "health": health}
    page, hours, failures, health = await together(
        visit.api.get("/overview", page_size=_DATASETS),
        visit.api.part("/overview/hours", hours=hours_of(visit)),
        job_failures(visit),
        service_health(visit),
    )
    datasets = page["items"]
    late = [each for each in datasets if "late" in (each["problems"] or ())]
    links = await _why_late(visit, late, datasets)
    of_datasets = list(chain.from_iterable(all_concerns(datasets, failures, visit.now).values()))
    concerns = list(of_paused(of_datasets, await _paused_webhooks(visit, datasets)))
    concerns.sort(key=lambda each: each.kind != "bad")
    return {
        "datasets": datasets,
        "counts_at": counts_at(datasets),
        "partial": sum(each["problems"] is None for each in datasets),
        "more": page["next_page_token"] is not None,
        "busiest": sorted((each for each in datasets if each["rows_in"]), key=lambda each: -each["rows_in"])[
            :_BUSIEST
        ],
        "hours": hour_bars(hours),
        "concerns": concerns[:_LISTED],
        "concerns_left": max(len(concerns) - _LISTED, 0),
        "late": late[0] if late else None,
        "late_count": len(late),
        "chain": links,
        "health": health,
        "service_concerns": list(_of_service(health)),
        "disks": _disks(health),
        "failures": failures.part,
    }


async def service_health(visit: Visit) -> PagePart:
    """What GET /health/service returns, also while the service is failing; no value for who may not read it."""
    if not visit.may("operate"):
        return PagePart()
    part = await visit.api.part("/health/service")
    # A failing service has the status 503 with the same members.
    if part.problem is not None and "checks" in part.problem.members:
        return PagePart(part.problem.members)
    return part


async def _paused_webhooks(visit: Visit, datasets: list[dict[str, Any]]) -> list[Any]:
    """The webhooks that are paused, if one of the datasets has such a problem."""
    if not any("webhook" in (each["problems"] or ()) for each in datasets):
        return []
    part = await visit.api.part("/webhooks", state="paused", page_size=_WEBHOOKS)
    return [] if part.problem else list(part.value["items"])


async def _why_late(visit: Visit, late: list[dict[str, Any]], datasets: list[dict[str, Any]]) -> list[Any]:
    """The chain that leads to the first dataset that is late."""
    if not late:
        return []
    try:
        graph = await visit.api.get("/lineage", dataset=late[0]["id"])
    except ApiProblem:
        return []
    return chain_to(late[0]["id"], graph, {each["id"]: each["problems"] or () for each in datasets})


def _of_service(health: PagePart) -> Iterator[Concern]:
    if health.value is None:
        return
    for alert in health.value["alerts"]:
        kind = "bad" if alert["severity"] == "critical" else "warning"
        yield Concern(
            kind,
            alert["summary"],
            alert["name"],
            "/console/service",
            ". ".join(filter(None, (alert["detail"], alert["action"]))),
            alert["fired_at"],
        )
    for name, check in health.value["checks"].items():
        if not check["ok"]:
            kind = "bad" if check["severity"] == "critical" else "warning"
            yield Concern(kind, check["detail"] or "does not work", name, "/console/service")


def _disks(health: PagePart) -> list[Mapping[str, Any]]:
    """The disks of processes that are alive, the fullest first; each disk once."""
    if health.value is None:
        return []
    disks = {
        (each["host"], each["disk"]["total_bytes"]): each["disk"] | {"host": each["host"]}
        for each in health.value["processes"]
        if each["alive"] and each["disk"]
    }
    return sorted(disks.values(), key=lambda each: each["free_bytes"] / max(each["total_bytes"], 1))[:4]


PAGES: Final = (ConsolePage(path="", template="home.html", read=_read),)
