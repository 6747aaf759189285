"""The state of the whole service: what is wrong, its processes, and what fills its disks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from app.features.console.page import ConsoleAction, ConsoleForm, ConsolePage, Context, Done
from app.features.console.visit import ApiProblem, Visit, together

_LARGEST: Final = 25
_WHAT_TO_DO: Final[Mapping[str, str]] = {
    "database": "Check Postgres: its process, its disk and the connections that it admits. Requests work again by "
    "themselves.",
    "workers": "Start a worker, and read the end of its log for the reason why the last one ended.",
    "spark": "Add cores to the cluster of Spark, or lower HEADWATER_SPARK_CORES_MAX of the workers.",
    "processes": "Install the packages of this release in the environment of the worker, and restart it.",
    "loops": "Read the log of the process for the error of the loop, and restart the process if it hangs.",
    "jobs": "See the checks of the storage and of the database. The jobs resume by themselves.",
    "disk": "Delete datasets that are not needed and reap, shorten the history of others, or enlarge the disk.",
    "storage": "Check the storage server or its disk, and the network. Jobs resume by themselves.",
    "redis": "Start Redis. Nothing is lost; work is found by polling meanwhile.",
}


async def _read(visit: Visit) -> Context:
    health, largest, tenants = await together(
        _health(visit),
        visit.api.part("/storage/datasets", limit=_LARGEST),
        visit.api.part("/tenants", page_size=1),
    )
    disks = {each["host"]: each["disk"] for each in health["processes"] if each["alive"] and each["disk"]}
    total_bytes = sum(each["stored_bytes"] for each in largest.value["items"]) if largest.value else None
    return {
        "health": health,
        "what_to_do": _WHAT_TO_DO,
        "disks": disks,
        "largest": largest,
        "largest_bytes": total_bytes,
        "versions": sorted({each["version"] for each in health["processes"] if each["alive"]}),
        "administration": tenants.problem is None,
    }


async def _health(visit: Visit) -> Any:
    """The health, which is 503 while the service fails. Raises ApiProblem for what is no health."""
    try:
        return await visit.api.get("/health/service")
    except ApiProblem as problem:
        if "checks" in problem.members:
            return problem.members
        raise


async def _reap(visit: Visit, _: ConsoleForm) -> Done:
    report = await visit.api.send("POST", "/storage/reaps")
    files = f"{report['files']:,} {'file' if report['files'] == 1 else 'files'} of deleted datasets deleted"
    rest = "" if report["complete"] else ": there are more, so reap again"
    return Done(to="/console/service", notice=f"{files}{rest}.")


_PAGE: Final = ConsolePage(path="/service", template="service.html", read=_read)
PAGES: Final = (_PAGE,)
ACTIONS: Final = (ConsoleAction(path="/service/reap", run=_reap, page=_PAGE),)
