"""A dataset at a glance: what happens in it, what feeds it and what it feeds, and how it is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from app.features.console.page import ConsoleAction, ConsoleForm, ConsolePage, Context, Done
from app.features.console.pages.concerns import Concern, words_of_paused
from app.features.console.pages.dataset_frame import dataset_frame, overviews
from app.features.console.pages.hours import hour_bars, hours_of
from app.features.console.pages.standstill import chain_to, href_of
from app.features.console.pages.webhook_states import webhook_states
from app.features.console.rendering import StateWords, counted, problem_word, state_words
from app.features.console.visit import PagePart, Visit, path_of, together

_JOBS: Final = 50
"""The last writes whose times are summed up."""
_NEIGHBOURS_MAX: Final = 20
_UPSTREAM_MAX: Final = 100
"""The most datasets whose problems explain why one is late."""
# From here on, readers skip or merge enough that a compaction is worth its time.
_DELETED_MAX: Final = 0.2
_LOGS_MAX: Final = 8
_SMALL_FILES_MAX: Final = 64


class Neighbour(NamedTuple):
    """Something that feeds a dataset or is fed by it, in one step."""

    kind: str
    name: str
    href: str
    state: StateWords
    lag: int | None


async def _read(visit: Visit) -> Context:
    reference = visit.variables["dataset"]
    path = path_of("datasets", reference)
    frame, hours, lineage, statistics, jobs = await together(
        dataset_frame(visit),
        visit.api.part("/overview/hours", dataset=reference, hours=hours_of(visit)),
        visit.api.part("/lineage", dataset=reference),
        visit.api.part(f"{path}/statistics"),
        visit.api.part("/jobs", dataset=reference, kind="write", state="succeeded", page_size=_JOBS),
    )
    dataset, overview = frame["dataset"], frame["overview"]
    nodes = [] if lineage.problem else lineage.value["nodes"]
    webhooks = await webhook_states(visit, nodes, reference)
    inputs, readers = _neighbours(dataset["id"], lineage, webhooks)
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
            *_with_pages(frame["concerns"], dataset, lineage),
            *_of_table(dataset, statistics),
        ],
        "engines": dataset.get("read_with", []),
        "may_manage": visit.may("manage"),
        "may_write": visit.may("write") and not overview["is_view"],
    }


def _neighbours(
    dataset_id: str, lineage: PagePart, webhooks: Mapping[str, StateWords]
) -> tuple[list[Neighbour], list[Neighbour]]:
    """What feeds the dataset, and what it feeds. `webhooks`: their states, where they are not those of lineage."""
    if lineage.problem is not None:
        return [], []
    nodes = {each["id"]: each for each in lineage.value["nodes"]}
    edges = lineage.value["edges"]

    def of(node: Mapping[str, Any], lag: int | None) -> Neighbour:
        state = webhooks.get(node["id"]) or state_words(node["state"])
        return Neighbour(node["kind"], node["name"], href_of(node), state, lag)

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
    upstream = [each["id"] for each in lineage.value["nodes"] if each["kind"] in ("dataset", "view")]
    numbers = await overviews(visit, upstream[:_UPSTREAM_MAX])
    problems: dict[str, Sequence[str]] = {id_: each["problems"] or () for id_, each in numbers.items()}
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


def _with_pages(
    concerns: Sequence[Concern], dataset: Mapping[str, Any], lineage: PagePart
) -> Iterator[Concern]:
    """The concerns with the pages of what they are about, where lineage names it."""
    nodes = [] if lineage.problem else lineage.value["nodes"]
    hrefs = {each["kind"]: href_of(each) for each in nodes if each["state"] in ("failed", "active")}
    paused = [each for each in nodes if each["kind"] == "webhook" and each["state"] == "paused"]
    pages = {
        problem_word("source"): hrefs.get("source", "/console/sources"),
        problem_word("view"): f"/console/views/{dataset['id']}",
        problem_word("webhook"): href_of(paused[0]) if paused else "/console/webhooks",
        problem_word("late"): f"/console/datasets/{dataset['name']}/timeline",
    }
    for each in concerns:
        words = each.words
        if paused and each.short == problem_word("webhook"):
            words = words_of_paused(paused[0]["name"])
        yield each._replace(href=pages.get(each.short, each.href), words=words)


def _of_table(dataset: Mapping[str, Any], statistics: PagePart) -> Iterator[Concern]:
    """What makes the table slow to read."""
    if statistics.problem is not None:
        return
    rows, files = statistics.value["rows"], statistics.value["files"]
    name = dataset["name"]
    page = f"/console/datasets/{name}/layout"
    if rows["deleted_ratio"] > _DELETED_MAX:
        words = f"{counted(rows['deleted'], 'delete mark')} ({rows['deleted_ratio']:.0%} of the stored rows)"
        yield Concern("warning", words, name, page, "readers skip these rows", action="compact")
    if files["logs"] > _LOGS_MAX:
        words = counted(files["logs"], "log")
        yield Concern("warning", words, name, page, "readers merge them in", action="compact")
    if files["small"] > _SMALL_FILES_MAX:
        words = counted(files["small"], "small file")
        yield Concern("warning", words, name, page, "readers open each", action="compact")


async def _compact(visit: Visit, _: ConsoleForm) -> Done:
    reference = visit.variables["dataset"]
    job = await visit.api.send("POST", path_of("datasets", reference, "compactions"), {})
    return Done(to=f"/console/jobs/{job['id']}", notice="The compaction has begun.")


PAGE: Final = ConsolePage(path="/datasets/{dataset:str}", template="dataset.html", read=_read)
PAGES: Final = (PAGE,)
ACTIONS: Final = (ConsoleAction(path="/datasets/{dataset:str}/compact", run=_compact, page=PAGE),)
