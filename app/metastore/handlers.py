"""Reports to a Hive metastore: how far a dataset's are."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
from litestar import Response, get

from app.http.body_stream import JSON
from app.http.context import ApiRequest, services_of, tenant_of
from app.http.encoding import encode
from app.http.openapi.operation_docs import Answer, documented
from app.http.query_parameters import DatasetReference


class MetastoreReportResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The Hive table of a dataset, and which of its versions was reported last; null before the first report.

    `error`: why reports fail, `failures` of them in a row; the next is tried at `retry_at`.
    """

    database: str
    table: str
    version: int | None
    head: int
    reported_at: datetime | None
    error: str | None
    failures: int
    retry_at: datetime | None


@get(
    "/datasets/{dataset:str}/metastore",
    operation_id="get_metastore_report",
    summary="See what a Hive metastore was told",
    tags=["partitions"],
    opt=documented(
        {200: Answer(description="The last report.", content={JSON: MetastoreReportResponse})}, problems=[404]
    ),
)
async def get_metastore_report(request: ApiRequest, dataset: DatasetReference) -> Response[Any]:
    """How far the dataset was reported to the Hive metastore that its `services.metastore` names a table of."""
    services = services_of(request)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    state = await services.threads.run(services.metastore_reports.state, found)
    response = msgspec.convert(
        {**msgspec.structs.asdict(state), "head": found.version}, MetastoreReportResponse
    )
    return Response(encode(response), media_type=JSON)
