"""Comparisons: the differences between two versions of a dataset."""

from __future__ import annotations

from litestar import post
from litestar.params import JSONBody

from app.access.tenants.values import KeyScope
from app.core.catalog.values import Dataset
from app.core.jobs.handlers.accepted import Acceptance, JobReply
from app.features.versions.schemas import CreateComparison
from app.features.versions.service.comparisons import ComparedVersion, Comparisons
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.openapi.operation_docs import documented


@post(
    "/datasets/{dataset:str}/comparisons",
    operation_id="create_comparison",
    summary="Compare two versions",
    tags=["comparisons"],
    status_code=202,
    opt=needs(KeyScope.READ) | documented(problems=[410]),
)
async def create_comparison(
    path_dataset: Provided[Dataset],
    comparisons: Provided[Comparisons],
    acceptance: Provided[Acceptance],
    data: JSONBody[CreateComparison],
) -> JobReply:
    """Counts the rows that only one of two versions has, and the rows whose values differ.

    The job's `result` has these counts, the files that were added and removed, and the changes of the schema.
    """
    begin = ComparedVersion(version=data.from_version, as_of=data.from_as_of, tag=data.from_tag)
    end = ComparedVersion(version=data.to_version, as_of=data.to_as_of, tag=data.to_tag)
    identity = acceptance.requested("comparison", data)
    return await acceptance.accept(
        path_dataset, lambda *_: comparisons.start(path_dataset, begin, end, identity)
    )
