"""Partitions of a table."""

from __future__ import annotations

import msgspec
from litestar import get

from app.access.tenants.values import KeyScope
from app.core.catalog.values import Dataset
from app.features.overview.schemas import ListVersionOptions, PartitionPage, partition_response
from app.features.overview.service import ListingRequest, Overview
from app.features.partitions.service.partitions import Partitions
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import documented


@get(
    "/datasets/{dataset:str}/partitions",
    operation_id="list_partitions",
    summary="List the partitions of a version",
    tags=["partitions"],
    opt=needs(KeyScope.READ) | documented(problems=[410]),
)
async def list_partitions(
    options: Provided[ListVersionOptions],
    found: Provided[Dataset],
    overview: Provided[Overview],
    partition_marks: Provided[Partitions],
    threads: Provided[Threads],
) -> PartitionPage:
    """Lists the partitions that have files, with their rows and bytes. A table without partitions has one.

    Whether a partition is done is its state now, also with an earlier version of its files.
    """
    at = msgspec.convert(options, ListingRequest, from_attributes=True)
    page = await threads.run(overview.partitions, found, at)
    marks = await threads.run(partition_marks.marked, found, [each.path for each in page.items])
    fields = found.definition.partition_by
    return PartitionPage(
        items=[partition_response(each, fields, marks.get(each.path)) for each in page.items],
        version=page.version,
        next_page_token=page.next_token,
    )
