"""What all pages of a dataset show at their top."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from app.features.console.page import Context
from app.features.console.pages.concerns import concerns_of, health_of, job_failures
from app.features.console.visit import Visit, path_of, together

_AT_ONCE: Final = 100
"""The datasets of one request."""
# The members of an overview that are numbers, which a reader of a part of a dataset does not see.
_UNKNOWN: Final = (
    *("problems", "rows", "deleted_rows", "files", "logs", "size_bytes", "sampled_at"),
    *("writes", "rows_in", "consumers", "lag", "farthest_consumer", "quarantined", "committed_at"),
)


async def dataset_frame(visit: Visit) -> Context:
    """The values of `dataset_layout.html`: `dataset` as GET /datasets/{dataset} has it, `overview` as GET /overview
    has it, `counts_at` of it, `concerns`, its `health`, and `tab`, the word of the tab by the path. Raises ApiProblem.
    """
    reference = visit.variables["dataset"]
    dataset, numbers, failures = await together(
        visit.api.get(path_of("datasets", reference)),
        overviews(visit, [reference]),
        job_failures(visit, reference),
    )
    # Without numbers, as of a reader that sees a part of the dataset.
    overview = numbers.get(dataset["id"], {**dict.fromkeys(_UNKNOWN), "is_view": False})
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


async def overviews(visit: Visit, references: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """The items of GET /overview of datasets, by id; what cannot be read is left out. `references`: ids or names."""
    parts = await together(
        *(
            visit.api.part("/overview", dataset=references[start : start + _AT_ONCE], page_size=_AT_ONCE)
            for start in range(0, len(references), _AT_ONCE)
        )
    )
    return {each["id"]: each for part in parts if part.problem is None for each in part.value["items"]}


def _tab(visit: Visit) -> str:
    rest = visit.path.removeprefix("/console/datasets/").split("/")[1:]
    return rest[0].capitalize() if rest else "Overview"
