"""HTTP: files, partitions and statistics of a version."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from litestar import get
from litestar.params import QueryParameter

from app.access.tenants.values import KeyScope
from app.core.catalog.values import Dataset
from app.features.overview.schemas import (
    FilePage,
    ListFilesOptions,
    ListVersionOptions,
    PartitionPage,
    StatisticsResponse,
    file_response,
    partition_response,
    statistics_response,
)
from app.features.overview.service import ListingRequest, Overview
from app.features.overview.values import FileQuery
from app.features.partitions.service import Partitions
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import documented

_TAGS: Final = ["overview"]


@get(
    "/datasets/{dataset:str}/files",
    operation_id="list_files",
    summary="List the data files of a version",
    tags=_TAGS,
    opt=needs(KeyScope.READ) | documented(problems=[410]),
)
async def list_files(
    options: Provided[ListFilesOptions],
    path_dataset: Provided[Dataset],
    overview: Provided[Overview],
    threads: Provided[Threads],
) -> FilePage:
    """Lists the data files of a version: base files, logs, which readers merge in, and postponed writes.

    With `where`, each file also has whether a read with this filter opens it.
    """
    at = msgspec.convert(options, ListingRequest, from_attributes=True)
    query = FileQuery(partition=options.partition, kind=options.kind)
    page = await threads.run(overview.files, path_dataset, query, at)
    schema = await threads.run(overview.schema_at, path_dataset, page.version) if options.statistics else None
    paths = None
    if options.where is not None:
        paths = await threads.run(
            overview.paths_to_read, path_dataset, page.version, page.items, options.where
        )
    return FilePage(
        items=[file_response(file, schema, paths) for file in page.items],
        version=page.version,
        next_page_token=page.next_token,
    )


@get(
    "/datasets/{dataset:str}/statistics",
    operation_id="read_statistics",
    summary="Read a table in numbers",
    tags=_TAGS,
    opt=needs(KeyScope.READ),
)
async def read_statistics(
    path_dataset: Provided[Dataset],
    overview: Provided[Overview],
    threads: Provided[Threads],
    columns: Annotated[
        list[str] | None,
        QueryParameter(
            description="Columns to sum up as well, comma-separated or repeated; this reads what is known of each file."
        ),
    ] = None,
) -> StatisticsResponse:
    """Returns numbers of rows, files and bytes by kind, commits, kept changes and versions, lag, and unfinished jobs.

    All of them come from the catalogue; no file is read.
    """
    summaries = await threads.run(overview.columns, path_dataset, columns)
    totals = await threads.run(overview.totals, path_dataset)
    return statistics_response(path_dataset, totals, summaries)


@get(
    "/datasets/{dataset:str}/partitions",
    operation_id="list_partitions",
    summary="List the partitions of a version",
    tags=["partitions"],
    opt=needs(KeyScope.READ) | documented(problems=[410]),
)
async def list_partitions(
    options: Provided[ListVersionOptions],
    path_dataset: Provided[Dataset],
    overview: Provided[Overview],
    partition_marks: Provided[Partitions],
    threads: Provided[Threads],
) -> PartitionPage:
    """Lists the partitions that have files, with their rows and bytes. A table without partitions has one.

    Whether a partition is done is its state now, also with an earlier version of its files.
    """
    at = msgspec.convert(options, ListingRequest, from_attributes=True)
    page = await threads.run(overview.partitions, path_dataset, at)
    marks = await threads.run(partition_marks.marked, path_dataset, [each.path for each in page.items])
    fields = path_dataset.definition.partition_by
    return PartitionPage(
        items=[partition_response(each, fields, marks.get(each.path)) for each in page.items],
        version=page.version,
        next_page_token=page.next_token,
    )
