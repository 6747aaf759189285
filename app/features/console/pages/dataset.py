"""A dataset at a glance: what happens in it, what feeds it and what it feeds, and how it is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from app.features.console.page import ConsoleAction, ConsoleForm, ConsolePage, Context, Done
from app.features.console.pages.dataset_frame import dataset_frame
from app.features.console.pages.hours import hour_bars, hours_of
from app.features.console.pages.standstill import chain_to, href_of
from app.features.console.visit import PagePart, Visit, path_of, together

_JOBS: Final = 200
"""The last writes whose times are summed up."""
_FAILED: Final = 3
_NEIGHBOURS_MAX: Final = 20
# From here on, readers skip or merge enough that a compaction is worth its time.
_DELETED_MAX: Final = 0.2
_LOGS_MAX: Final = 8
_SMALL_FILES_MAX: Final = 64
_DAY: Final = timedelta(days=1)
_STANDS_AFTER: Final = timedelta(minutes=1)


class DatasetConcern(NamedTuple):
    """Something about a dataset that needs attention. `action`: what can be done at once: `compact` or empty."""

    kind: str
    words: str
    href: str
    detail: str = ""
    action: str = ""
    at: str | None = None


class Neighbour(NamedTuple):
    """Something that feeds a dataset or is fed by it, in one step."""

    kind: str
    name: str
    href: str
    state: str | None
    lag: int | None


async def _read(visit: Visit) -> Context:
    reference = visit.variables["dataset"]
    path = path_of("datasets", reference)
    frame, hours, lineage, statistics, jobs, failures = await together(
        dataset_frame(visit),
        visit.api.part("/overview/hours", dataset=reference, hours=hours_of(visit)),
        visit.api.part("/lineage", dataset=reference),
        visit.api.part(f"{path}/statistics"),
        visit.api.part("/jobs", dataset=reference, kind="write", state="succeeded", page_size=_JOBS),
        visit.api.part("/jobs", dataset=reference, state="failed", page_size=_FAILED),
    )
    dataset, overview = frame["dataset"], frame["overview"]
    inputs, readers = _neighbours(dataset["id"], lineage)
    return {
        **frame,
        "hours": hour_bars(hours),
        "lineage": lineage,
        "inputs": inputs,
        "readers": readers,
        "chain": await _why_late(visit, dataset, overview, lineage),
        "visible": _visible(jobs),
        "jobs": jobs,
        "concerns": [
            *_of_state(dataset, overview, lineage, visit.now),
            *_of_table(dataset, statistics),
            *_of_jobs(failures, visit.now),
        ],
        "engines": dataset.get("read_with", []),
        "may_manage": visit.may("manage"),
        "may_write": visit.may("write") and not overview["is_view"],
    }


def _neighbours(dataset_id: str, lineage: PagePart) -> tuple[list[Neighbour], list[Neighbour]]:
    """What feeds the dataset, and what it feeds."""
    if lineage.problem is not None:
        return [], []
    nodes = {each["id"]: each for each in lineage.value["nodes"]}
    edges = lineage.value["edges"]

    def of(node: Mapping[str, Any], lag: int | None) -> Neighbour:
        return Neighbour(node["kind"], node["name"], href_of(node), node["state"], lag)

    return (
        [of(nodes[each["from"]], each["lag"]) for each in edges if each["to"] == dataset_id][
            :_NEIGHBOURS_MAX
        ],
        [of(nodes[each["to"]], each["lag"]) for each in edges if each["from"] == dataset_id][
            :_NEIGHBOURS_MAX
        ],
    )


async def _why_late(
    visit: Visit, dataset: Mapping[str, Any], overview: Mapping[str, Any], lineage: PagePart
) -> list[Any]:
    """The chain from the first link that stands still; empty if the dataset is not late and its input has no fault."""
    if lineage.problem is not None or not {"late", "source", "view"} & set(overview["problems"] or ()):
        return []
    upstream = [each["name"] for each in lineage.value["nodes"] if each["kind"] in ("dataset", "view")]
    pages = await together(
        *(
            visit.api.part("/overview", name=name)
            for name in upstream[:_NEIGHBOURS_MAX]
            if name != dataset["name"]
        )
    )
    items = [item for page in pages if page.problem is None for item in page.value["items"]]
    problems: dict[str, Sequence[str]] = {each["id"]: each["problems"] or () for each in items}
    problems[dataset["id"]] = overview["problems"] or ()
    return chain_to(dataset["id"], lineage.value, problems)


def _visible(jobs: PagePart) -> dict[str, Any] | None:
    """How long the last writes took until readers saw their rows: the median, and their number; None without any."""
    if jobs.problem is not None:
        return None
    times = sorted(each["timings"]["total"] for each in jobs.value["items"] if "total" in each["timings"])
    if not times:
        return None
    return {
        "median": times[len(times) // 2] / 1_000,
        "p95": times[min(len(times) * 95 // 100, len(times) - 1)] / 1_000,
        "count": len(times),
    }


def _of_state(
    dataset: Mapping[str, Any], overview: Mapping[str, Any], lineage: PagePart, now: datetime
) -> Iterator[DatasetConcern]:
    base = f"/console/datasets/{dataset['name']}"
    problems = overview["problems"] or ()
    nodes = [] if lineage.problem else lineage.value["nodes"]
    hrefs = {each["kind"]: href_of(each) for each in nodes if each["state"] in ("failed", "paused", "active")}
    if "source" in problems:
        words = "the last round of its source has failed"
        yield DatasetConcern("bad", words, hrefs.get("source", "/console/sources"))
    if "view" in problems:
        yield DatasetConcern("bad", "its last refresh has failed", f"/console/views/{dataset['id']}")
    if "webhook" in problems:
        words = "a webhook is paused since deliveries failed"
        paused = [href_of(each) for each in nodes if each["kind"] == "webhook" and each["state"] == "paused"]
        yield DatasetConcern("warning", words, paused[0] if paused else "/console/webhooks")
    if "late" in problems:
        words = "late: no commit came as expected"
        yield DatasetConcern("warning", words, f"{base}/timeline", at=dataset["committed_at"])
    if count := overview["quarantined"]:
        words = f"{count:,} {'record' if count == 1 else 'records'} in quarantine"
        yield DatasetConcern("warning", words, f"{base}/quarantine")
    at = dataset["committed_at"]
    if overview["lag"] and at and now - datetime.fromisoformat(at) > _STANDS_AFTER:
        words = f"a consumer is {overview['lag']:,} changes behind, and nothing new is written"
        yield DatasetConcern("warning", words, f"{base}/consumers")


def _of_table(dataset: Mapping[str, Any], statistics: PagePart) -> Iterator[DatasetConcern]:
    """What makes the table slow to read."""
    if statistics.problem is not None:
        return
    rows, files = statistics.value["rows"], statistics.value["files"]
    page = f"/console/datasets/{dataset['name']}/layout"
    if rows["deleted_ratio"] > _DELETED_MAX:
        words = f"{rows['deleted']:,} delete marks ({rows['deleted_ratio']:.0%} of the stored rows)"
        yield DatasetConcern("warning", words, page, "readers skip these rows", "compact")
    if files["logs"] > _LOGS_MAX:
        yield DatasetConcern("warning", f"{files['logs']:,} logs", page, "readers merge them in", "compact")
    if files["small"] > _SMALL_FILES_MAX:
        yield DatasetConcern(
            "warning", f"{files['small']:,} small files", page, "readers open each", "compact"
        )


def _of_jobs(failures: PagePart, now: datetime) -> Iterator[DatasetConcern]:
    for job in [] if failures.problem else failures.value["items"]:
        at = job["finished_at"]
        if at is not None and now - datetime.fromisoformat(at) < _DAY:
            detail = (job["error"] or {}).get("detail", "")
            words = f"a {job['kind']} has failed"
            yield DatasetConcern("bad", words, f"/console/jobs/{job['id']}", detail, at=at)


async def _compact(visit: Visit, _: ConsoleForm) -> Done:
    reference = visit.variables["dataset"]
    job = await visit.api.send("POST", path_of("datasets", reference, "compactions"), {})
    return Done(to=f"/console/jobs/{job['id']}", notice="The compaction has begun.")


PAGE: Final = ConsolePage(path="/datasets/{dataset:str}", template="dataset.html", read=_read)
PAGES: Final = (PAGE,)
ACTIONS: Final = (ConsoleAction(path="/datasets/{dataset:str}/compact", run=_compact, page=PAGE),)
