"""The state of the whole service: what is wrong, its processes, and what fills its disks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from app.features.console.page import ConsoleAction, ConsoleForm, ConsolePage, Context, Done
from app.features.console.rendering import byte_size, counted
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


class StoredKind(NamedTuple):
    """Something that fills the storage or its disk. `size_bytes`: None if it is not known."""

    name: str
    size_bytes: int | None
    note: str


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
        "kinds": [] if largest.value is None else list(_kinds(largest.value["sums"], disks)),
        "largest_bytes": total_bytes,
        "versions": sorted({each["version"] for each in health["processes"] if each["alive"]}),
        "administration": tenants.problem is None,
    }


def _kinds(sums: Mapping[str, Any], disks: Mapping[str, Mapping[str, Any]]) -> Iterator[StoredKind]:
    """What fills the storage and the disk. What is left over is only known where there is one disk."""
    quarantine = sums["quarantine_bytes"]
    words = f", the quarantine ({byte_size(quarantine)})" if quarantine else ""
    yield StoredKind(
        "Files of datasets", sums["dataset_bytes"], f"all versions, feeds, exports, results of reads{words}"
    )
    yield StoredKind(
        "Rendered files", sums["rendered_bytes"], "for readers of open tables; made again on demand"
    )
    place = "on this machine" if sums["database_on_host"] else "on a server of its own"
    yield StoredKind(
        "Postgres", sums["database_bytes"], f"{place}: the catalogue, jobs, rows of small writes"
    )
    if not sums["files_on_disk"] or len(disks) != 1:
        return
    [disk] = disks.values()
    file_bytes = sums["dataset_bytes"] + sums["rendered_bytes"]
    file_bytes += (sums["database_bytes"] or 0) if sums["database_on_host"] else 0
    other = disk["total_bytes"] - disk["free_bytes"] - file_bytes
    yield StoredKind(
        "Other",
        max(other, 0),
        "not known by kind: logs, rows that wait for their write, files that are about to be deleted, Redis, and what "
        "is not of this service",
    )
    yield StoredKind("Free", disk["free_bytes"], "")


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
    files = f"{counted(report['files'], 'file')} of deleted datasets deleted"
    rest = "" if report["complete"] else ": there are more, so reap again"
    return Done(to="/console/service", notice=f"{files}{rest}.")


_PAGE: Final = ConsolePage(path="/service", template="service.html", read=_read)
PAGES: Final = (_PAGE,)
ACTIONS: Final = (ConsoleAction(path="/service/reap", run=_reap, page=_PAGE),)
