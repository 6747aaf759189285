"""What happens now, and what needs attention first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from app.features.console.page import ConsolePage, Context
from app.features.console.pages.dataset_frame import counts_at
from app.features.console.pages.hours import hour_bars, hours_of
from app.features.console.pages.standstill import chain_to
from app.features.console.visit import ApiProblem, PagePart, Visit, together

_DATASETS: Final = 1_000
_FAILED_JOBS: Final = 10
_LISTED: Final = 20
_STANDS_AFTER: Final = timedelta(minutes=1)
_DAY: Final = timedelta(days=1)
_BUSIEST: Final = 8


class Concern(NamedTuple):
    """Something that needs attention. `kind`: bad or warning. `at`: since when, if that is known."""

    kind: str
    words: str
    name: str
    href: str
    detail: str = ""
    at: str | None = None


async def _read(visit: Visit) -> Context:
    if not visit.may("read"):
        health = await service_health(visit)
        return {"concerns": list(_of_service(health)), "health": health}
    span = visit.span or _DAY
    page, hours, failures, health = await together(
        visit.api.get("/overview", page_size=_DATASETS),
        visit.api.part("/overview/hours", hours=hours_of(visit)),
        visit.api.part("/jobs", state="failed", page_size=_FAILED_JOBS),
        service_health(visit),
    )
    datasets = page["items"]
    late = [each for each in datasets if "late" in (each["problems"] or ())]
    chain = await _why_late(visit, late, datasets)
    jobs = [] if failures.problem else failures.value["items"]
    concerns = [
        *_of_service(health),
        *_of_datasets(datasets, visit.now),
        *_of_jobs(jobs, visit.now - span),
    ]
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
        "chain": chain,
        "health": health,
        "disks": _disks(health),
        "failures": failures,
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


def _of_datasets(datasets: Iterable[Mapping[str, Any]], now: datetime) -> Iterator[Concern]:
    for each in datasets:
        name, page = each["dataset"], f"/console/datasets/{each['dataset']}"
        problems = each["problems"] or ()
        if "source" in problems:
            yield Concern("bad", "the last round of its source has failed", name, page)
        if "view" in problems:
            yield Concern("bad", "its last refresh has failed", name, page)
        if "webhook" in problems:
            yield Concern("warning", "a webhook is paused since deliveries failed", name, page)
        if "late" in problems:
            yield Concern(
                "warning", "is late: no commit came as expected", name, page, at=each["committed_at"]
            )
        if each["quarantined"]:
            count = each["quarantined"]
            words = f"{count:,} {'record' if count == 1 else 'records'} in quarantine"
            yield Concern("warning", words, name, f"{page}/quarantine")
        if each["lag"] and _stands(each["committed_at"], now):
            words = f"a consumer is {each['lag']:,} changes behind, and nothing new is written"
            yield Concern("warning", words, name, f"{page}/consumers")


def _of_jobs(jobs: Iterable[Mapping[str, Any]], since: datetime) -> Iterator[Concern]:
    """The last jobs that have failed since then, those with the same error as one."""
    by_error: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for job in jobs:
        at = job["finished_at"]
        if at is not None and datetime.fromisoformat(at) > since:
            by_error.setdefault((job["kind"], (job["error"] or {}).get("detail", "")), []).append(job)
    for (kind, detail), alike in by_error.items():
        words = f"a {kind} has failed" if len(alike) == 1 else f"the last {len(alike)} of {kind} have failed"
        last = alike[0]
        yield Concern("bad", words, "", f"/console/jobs/{last['id']}", detail, last["finished_at"])


def _stands(committed_at: str | None, now: datetime) -> bool:
    return committed_at is not None and now - datetime.fromisoformat(committed_at) > _STANDS_AFTER


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
