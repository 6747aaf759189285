"""What all pages of a dataset show at their top."""

from __future__ import annotations

from typing import Any, Final

from app.features.console.page import Context
from app.features.console.visit import Visit, path_of, together

# The members of an overview that are numbers, which a reader of a part of a dataset does not see.
_UNKNOWN: Final = (
    *("problems", "rows", "deleted_rows", "files", "logs", "size_bytes", "sampled_at"),
    *("writes", "rows_in", "consumers", "lag", "quarantined"),
)


async def dataset_frame(visit: Visit) -> Context:
    """The values of `dataset_layout.html`: `dataset` as GET /datasets/{dataset} has it, `overview` as GET /overview
    has it, and `tab`, the word of the tab by the path. Raises ApiProblem.
    """
    reference = visit.variables["dataset"]
    dataset, listed = await together(
        visit.api.get(path_of("datasets", reference)), visit.api.part("/overview", name=reference)
    )
    if dataset["name"] != reference:
        listed = await visit.api.part("/overview", name=dataset["name"])
    items = [] if listed.problem else listed.value["items"]
    return {"dataset": dataset, "overview": _overview(items, dataset), "tab": _tab(visit)}


def _overview(items: list[dict[str, Any]], dataset: dict[str, Any]) -> dict[str, Any]:
    """The numbers of the dataset; without them, as of a reader that sees a part of it."""
    matches = [each for each in items if each["id"] == dataset["id"]]
    return matches[0] if matches else {**dict.fromkeys(_UNKNOWN), "is_view": False}


def _tab(visit: Visit) -> str:
    rest = visit.path.removeprefix("/console/datasets/").split("/")[1:]
    return rest[0].capitalize() if rest else "Overview"
