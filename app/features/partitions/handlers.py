"""Partitions that are done: mark them, and read the events of those that were done or reopened."""

from __future__ import annotations

from typing import Final

from litestar import get, post
from litestar.params import JSONBody

from app.access.tenants.values import KeyScope
from app.core.catalog.values import Dataset
from app.core.changes.position_parameters import parse_position
from app.features.partitions.schemas import (
    EndPartitions,
    PartitionEventPage,
    PartitionMarkList,
    ReadPartitionEventsOptions,
    event_page,
)
from app.features.partitions.service import Partitions
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import documented

_BODY_BYTES_MAX: Final = 4 * 1024 * 1024
_TAGS: Final = ["partitions"]


@post(
    "/datasets/{dataset:str}/partitions/done",
    operation_id="end_partitions",
    summary="Mark partitions as done",
    tags=_TAGS,
    status_code=200,
    request_max_body_size=_BODY_BYTES_MAX,
    opt=needs(KeyScope.WRITE),
)
async def end_partitions(
    data: JSONBody[EndPartitions],
    path_dataset: Provided[Dataset],
    partition_marks: Provided[Partitions],
    threads: Provided[Threads],
) -> PartitionMarkList:
    """Marks partitions as done, which receive no more data: all of them as of the head's version, or none.

    A partition that is already done is not changed. If data is written to it later, it is open again, and can be done
    again.
    """
    return PartitionMarkList(items=await threads.run(partition_marks.end, path_dataset, data.partitions))


@get(
    "/datasets/{dataset:str}/partitions/events",
    operation_id="read_partition_events",
    summary="Read the events of partitions",
    tags=_TAGS,
    opt=needs(KeyScope.READ) | documented(problems=[409]),
)
async def read_partition_events(
    options: Provided[ReadPartitionEventsOptions],
    path_dataset: Provided[Dataset],
    partition_marks: Provided[Partitions],
    threads: Provided[Threads],
) -> PartitionEventPage:
    """Returns which partitions were done or reopened, in order. Events are numbered without gaps and never expire."""
    since = parse_position(options.since)
    return event_page(await threads.run(partition_marks.events, path_dataset, since, options.limit))
