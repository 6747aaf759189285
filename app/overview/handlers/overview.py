"""Files and numbers of a table."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Response, get
from litestar.params import QueryParameter

from app.format.file_group import FileKind
from app.http.body_stream import JSON
from app.http.context import ApiRequest, services_of, tenant_of
from app.http.encoding import encode
from app.http.openapi.operation_docs import Answer, documented
from app.http.query_parameters import AsOf, AtVersion, DatasetReference, OfTag, PageSize, PageToken, moment
from app.overview.schemas import FilePage, StatisticsResponse, file_response, statistics_response
from app.overview.service import ListingRequest
from app.overview.values import FileQuery


@get(
    "/datasets/{dataset:str}/files",
    operation_id="list_files",
    summary="List the data files of a version",
    tags=["overview"],
    opt=documented(
        {200: Answer(description="A page of files.", content={JSON: FilePage})}, problems=[400, 404, 410]
    ),
)
async def list_files(
    request: ApiRequest,
    dataset: DatasetReference,
    version: AtVersion = None,
    as_of: AsOf = None,
    tag: OfTag = None,
    partition: Annotated[
        str | None, QueryParameter(description="The path of a partition: only its files.")
    ] = None,
    kind: Annotated[FileKind | None, QueryParameter(description="Only files of this kind.")] = None,
    statistics: Annotated[
        bool, QueryParameter(description="Show what is known of the columns of each file.")
    ] = False,
    page_size: PageSize = 100,
    page_token: PageToken = None,
) -> Response[Any]:
    """What the table is made of at a version: base files, logs that readers merge in, and postponed writes."""
    services = services_of(request)
    at = ListingRequest(
        version=version,
        as_of=None if as_of is None else moment(as_of, "as_of"),
        tag=tag,
        page_size=page_size,
        page_token=page_token,
    )
    query = FileQuery(partition=partition, kind=kind)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    page = await services.threads.run(services.overview.files, found, query, at)
    schema = None
    if statistics:
        schema = await services.threads.run(services.overview.schema_at, found, page.version)
    response = FilePage(
        items=[file_response(file, schema) for file in page.items],
        version=page.version,
        next_page_token=page.next_token,
    )
    return Response(encode(response), media_type=JSON)


@get(
    "/datasets/{dataset:str}/statistics",
    operation_id="read_statistics",
    summary="Read a table in numbers",
    tags=["overview"],
    opt=documented(
        {200: Answer(description="The table as it is now.", content={JSON: StatisticsResponse})},
        problems=[400, 404],
    ),
)
async def read_statistics(
    request: ApiRequest,
    dataset: DatasetReference,
    columns: Annotated[
        list[str] | None,
        QueryParameter(
            description="Columns to sum up as well, comma-separated or repeated: every file is looked at for them."
        ),
    ] = None,
) -> Response[Any]:
    """Rows, files and bytes by kind, what was written so far, what was kept, who is behind, what waits.

    All of it comes from the catalogue; no file is read.
    """
    services = services_of(request)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    summaries = await services.threads.run(services.overview.columns, found, columns)
    totals = await services.threads.run(services.overview.totals, found)
    return Response(encode(statistics_response(found, totals, summaries)), media_type=JSON)
