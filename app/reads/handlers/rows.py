"""Small pages of the table, at any version."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final

import msgspec
from litestar import Response, get
from litestar.params import QueryParameter

from app.codecs.json.encode import encode_rows_json, encode_rows_ndjson
from app.http.body_stream import JSON
from app.http.context import ApiRequest, services_of, tenant_of
from app.http.headers import negotiate
from app.http.openapi.operation_docs import BINARY, TEXT, Answer, documented
from app.http.query_parameters import AsOf, AtVersion, Columns, DatasetReference, OfTag, PageToken, moment
from app.http.table_response import ARROW_STREAM, NDJSON, arrow_stream
from app.reads.service.rows import QueryType, RowQuery
from app.reads.values import RowPage

LIMIT_MAX: Final = 10_000


class RowsPage(msgspec.Struct, frozen=True, kw_only=True):
    """Rows at `version`, under the schema it had then; every page of one walk is of the same version."""

    rows: list[dict[str, Any]]
    version: int
    schema_id: int
    next_page_token: str | None


@get(
    "/datasets/{dataset:str}/rows",
    operation_id="read_rows",
    summary="Read rows of the table",
    tags=["rows"],
    opt=documented(
        {
            200: Answer(
                description="A page of rows, in no particular order but always the same.",
                content={JSON: RowsPage, NDJSON: TEXT, ARROW_STREAM: BINARY},
                headers={
                    "Headwater-Version": "The version of the rows.",
                    "Headwater-Schema-Id": "The schema that the dataset had at that version.",
                    "Headwater-Next-Page-Token": "The next page's token; absent on the last.",
                },
            )
        },
        problems=[400, 404, 406, 410],
    ),
)
async def read_rows(
    request: ApiRequest,
    dataset: DatasetReference,
    query_type: Annotated[
        QueryType,
        QueryParameter(
            description="`read_optimized` reads base files only: faster where merge_on_read keeps logs, but without "
            "what is in them until a compaction."
        ),
    ] = QueryType.SNAPSHOT,
    version: AtVersion = None,
    as_of: AsOf = None,
    tag: OfTag = None,
    columns: Columns = None,
    where: Annotated[
        str | None, QueryParameter(description="A filter: the rows for which it is true.")
    ] = None,
    partitions: Annotated[
        list[str] | None,
        QueryParameter(
            description="Globs of partition paths, repeated: the rows of partitions that match one."
        ),
    ] = None,
    meta: Annotated[
        bool, QueryParameter(description="Show the five meta columns behind the others.")
    ] = False,
    corrected_since: Annotated[
        bool,
        QueryParameter(
            description="Show beside each row of an earlier version what has taken it back since: the columns "
            "`_hw_corrected_by` (an offset) and `_hw_corrected_version`, null where nothing has."
        ),
    ] = False,
    limit: Annotated[int, QueryParameter(ge=1, le=LIMIT_MAX, description="Rows on a page, at most.")] = 1_000,
    page_token: PageToken = None,
) -> Response[Any]:
    """Rows of the table now or back in time, without a job."""
    services = services_of(request)
    media_type = negotiate(request.headers, (JSON, NDJSON, ARROW_STREAM))
    time: datetime | None = None if as_of is None else moment(as_of, "as_of")
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    wanted = RowQuery(
        limit=limit,
        query_type=query_type,
        version=version,
        as_of=time,
        tag=tag,
        columns=None if columns is None else tuple(columns),
        where=where,
        partitions=None if partitions is None else tuple(partitions),
        meta=meta,
        corrected_since=corrected_since,
        page_token=page_token,
    )
    page = await services.threads.run(services.read_table.page, found, wanted)
    content = await services.threads.run(partial(_ENCODERS[media_type], page))
    headers = {"Headwater-Version": str(page.version), "Headwater-Schema-Id": str(page.schema_id)}
    if page.next_page_token is not None:
        headers["Headwater-Next-Page-Token"] = page.next_page_token
    return Response(content, media_type=media_type, headers=headers)


def _as_json(page: RowPage) -> bytes:
    position = msgspec.json.encode(page.next_page_token)
    state = b'"version":%d,"schema_id":%d' % (page.version, page.schema_id)
    rows = encode_rows_json(page.rows)
    return b"".join((b'{"rows":', rows, b",", state, b',"next_page_token":', position, b"}"))


def _as_ndjson(page: RowPage) -> bytes:
    return encode_rows_ndjson(page.rows)


def _as_arrow(page: RowPage) -> bytes:
    return arrow_stream(page.rows)


_ENCODERS: Final = {JSON: _as_json, NDJSON: _as_ndjson, ARROW_STREAM: _as_arrow}
