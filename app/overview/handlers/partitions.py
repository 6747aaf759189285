"""Partitions of a table."""

from __future__ import annotations

from typing import Any

from litestar import Response, get

from app.http.body_stream import JSON
from app.http.context import ApiRequest, services_of, tenant_of
from app.http.encoding import encode
from app.http.openapi.operation_docs import Answer, documented
from app.http.query_parameters import AsOf, AtVersion, DatasetReference, OfTag, PageSize, PageToken, moment
from app.overview.schemas import PartitionPage, partition_response
from app.overview.service import ListingRequest


@get(
    "/datasets/{dataset:str}/partitions",
    operation_id="list_partitions",
    summary="List the partitions of a version",
    tags=["partitions"],
    opt=documented(
        {200: Answer(description="A page of partitions.", content={JSON: PartitionPage})},
        problems=[400, 404, 410],
    ),
)
async def list_partitions(
    request: ApiRequest,
    dataset: DatasetReference,
    version: AtVersion = None,
    as_of: AsOf = None,
    tag: OfTag = None,
    page_size: PageSize = 100,
    page_token: PageToken = None,
) -> Response[Any]:
    """Partitions that have files, with their rows and bytes. A table without partitions has one, whose path is empty.

    Whether a partition is done is told as it stands now, of whichever version its files are.
    """
    services = services_of(request)
    at = ListingRequest(
        version=version,
        as_of=None if as_of is None else moment(as_of, "as_of"),
        tag=tag,
        page_size=page_size,
        page_token=page_token,
    )
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    page = await services.threads.run(services.overview.partitions, found, at)
    marks = await services.threads.run(services.partitions.marked, found, [each.path for each in page.items])
    fields = found.definition.partition_by
    response = PartitionPage(
        items=[partition_response(each, fields, marks.get(each.path)) for each in page.items],
        version=page.version,
        next_page_token=page.next_token,
    )
    return Response(encode(response), media_type=JSON)
