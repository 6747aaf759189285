"""What all pages of a dataset show at their top."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from app.features.console.page import Context
from app.features.console.pages.concerns import concerns_of, health_of, job_failures
from app.features.console.visit import Visit, path_of, together

# The members of an overview that are numbers, which a reader of a part of a dataset does not see.
_UNKNOWN: Final = (
    *("problems", "rows", "deleted_rows", "files", "logs", "size_bytes", "sampled_at"),
    *("writes", "rows_in", "consumers", "lag", "quarantined", "committed_at"),
)


async def dataset_frame(visit: Visit) -> Context:
    """The values of `dataset_layout.html`: `dataset` as GET /datasets/{dataset} has it, `overview` as GET /overview
    has it, `counts_at` of it, `concerns`, its `health`, and `tab`, the word of the tab by the path. Raises ApiProblem.
    """
    reference = visit.variables["dataset"]
    dataset, listed, failures = await together(
        visit.api.get(path_of("datasets", reference)),
        visit.api.part("/overview", name=reference),
        job_failures(visit, reference),
    )
    if dataset["name"] != reference:
        listed = await visit.api.part("/overview", name=dataset["name"])
    items = [] if listed.problem else listed.value["items"]
    overview = _overview(items, dataset)
    of_jobs = failures.by_dataset.get(dataset["id"], ())
    concerns = concerns_of(overview, dataset["name"], of_jobs, visit.now)
    return {
        "dataset": dataset,
        "overview": overview,
        "counts_at": counts_at([{**overview, "committed_at": dataset["committed_at"]}]),
        "concerns": concerns,
        "health": health_of(overview, concerns),
        "tab": _tab(visit),
    }


def counts_at(overviews: Iterable[Mapping[str, Any]]) -> str | None:
    """When the rows and bytes of datasets were counted, as far as commits have followed: the earliest such time. None
    if all counts are those of the latest versions.
    """
    times: list[str] = [
        each["sampled_at"]
        for each in overviews
        if each["sampled_at"] and each["committed_at"]
        if datetime.fromisoformat(each["sampled_at"]) < datetime.fromisoformat(each["committed_at"])
    ]
    return min(times, key=datetime.fromisoformat, default=None)


def _overview(items: list[dict[str, Any]], dataset: dict[str, Any]) -> dict[str, Any]:
    """The numbers of the dataset; without them, as of a reader that sees a part of it."""
    matches = [each for each in items if each["id"] == dataset["id"]]
    return matches[0] if matches else {**dict.fromkeys(_UNKNOWN), "is_view": False}


def _tab(visit: Visit) -> str:
    rest = visit.path.removeprefix("/console/datasets/").split("/")[1:]
    return rest[0].capitalize() if rest else "Overview"
