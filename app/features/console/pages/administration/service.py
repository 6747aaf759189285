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
    "workers": "Start a worker, or restart or kill the one that hangs: it is silent below. Read the end of its log "
    "for the reason.",
    "spark": "Add cores to the cluster of Spark, or lower HEADWATER_SPARK_CORES_MAX of the workers.",
    "processes": "Install the packages of this release in the environment of the worker, and restart it.",
    "loops": "Read the log of the process for the error of the loop, and restart the process if it hangs.",
    "jobs": "See the checks of the storage and of the database. The jobs resume by themselves.",
    "disk": "Delete datasets that are not needed and reap, shorten the history of others, or enlarge the disk.",
    "storage": "Check the storage server or its disk, and the network. Jobs resume by themselves.",
    "redis": "Start Redis. Nothing is lost; work is found by polling meanwhile.",
}

_NOTHING_REAPED: Final = (
    " No deleted dataset has files, or a backup runs. Files that a dataset no longer needs are deleted without a reap, "
    "once they are older than HEADWATER_ORPHAN_GRACE_SECONDS."
)


class StoredKind(NamedTuple):
    """Something that fills the storage or its disk. `size_bytes`: None if it is not known.

    `beside`: whether it is on another disk.
    """

    name: str
    size_bytes: int | None
    note: str
    beside: bool = False


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
        "kinds": [] if largest.value is None else list(stored_kinds(largest.value["sums"], disks)),
        "largest_bytes": total_bytes,
        "versions": sorted({each["version"] for each in health["processes"] if each["alive"]}),
        "administration": tenants.problem is None,
    }


def stored_kinds(sums: Mapping[str, Any], disks: Mapping[str, Mapping[str, Any]]) -> Iterator[StoredKind]:
    """What fills the storage and its disk. What is left over is only known where the fullest disk has the storage."""
    quarantine = sums["quarantine_bytes"]
    words = f", the quarantine ({byte_size(quarantine)})" if quarantine else ""
    file_bytes = sums["dataset_bytes"] + sums["rendered_bytes"]
    disk = next(iter(disks.values())) if sums["files_on_disk"] and len(disks) == 1 else None
    folders = (disk["folder"] or "") if disk else ""
    used_bytes = disk["total_bytes"] - disk["free_bytes"] if disk else 0
    # Where one disk has all folders of the service, Postgres of this machine is on it too, unless it does not fit in.
    with_database = (
        sums["database_on_host"]
        and "data" in folders
        and file_bytes + (sums["database_bytes"] or 0) <= used_bytes
    )
    yield StoredKind(
        "Files of datasets", sums["dataset_bytes"], f"all versions, feeds, exports, results of reads{words}"
    )
    yield StoredKind(
        "Rendered files", sums["rendered_bytes"], "for readers of open tables; made again on demand"
    )
    beside = disk is not None and "storage" in folders and not with_database
    place = "on this machine" if sums["database_on_host"] else "on a server of its own"
    yield StoredKind(
        "Postgres",
        sums["database_bytes"],
        f"{place}{', not counted into this disk' if beside else ''}: the catalogue, jobs, rows of small writes",
        beside=beside,
    )
    if disk is None or "storage" not in folders:
        return
    file_bytes += (sums["database_bytes"] or 0) if with_database else 0
    yield StoredKind(
        "Other",
        max(used_bytes - file_bytes, 0),
        "not known by kind: input of writes that wait, files that are about to be deleted, and what is not of this "
        "service" + ("; what spills, logs, Redis" if "data" in folders else ""),
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
    why = "" if report["files"] or rest else _NOTHING_REAPED
    return Done(to="/console/service", notice=f"{files}{rest}.{why}")


_PAGE: Final = ConsolePage(path="/service", template="service.html", read=_read, in_outages=True)
PAGES: Final = (_PAGE,)
ACTIONS: Final = (ConsoleAction(path="/service/reap", run=_reap, page=_PAGE),)
