"""Small pages of the table, at any version."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from litestar import get

from app.access.tenants.values import KeyScope
from app.core.catalog.values import Dataset
from app.features.reads.handlers.corrected import CORRECTED_HEADER, corrected_header, corrected_member
from app.features.reads.service.rows import ReadTable, RowQuery
from app.features.reads.values import RowPage
from app.http.auth import needs
from app.http.body_stream import JSON
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import BINARY, TEXT, documented
from app.http.response import ApiResponse
from app.http.table_response import ARROW_STREAM, CSV, NDJSON, arrow_stream
from app.kernel.codecs.csv.encode_csv import csv_header, encode_csv
from app.kernel.codecs.json.encode import encode_rows_json, encode_rows_ndjson
from app.kernel.sql.conditions.row_access import RowAccess


class RowsPage(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of a version, in the requested order, or in one that is always the same; all pages are of one version."""

    rows: Annotated[list[dict[str, Any]], msgspec.Meta(examples=[[{"id": 1, "amount": 120}]])]
    """The rows."""
    version: int
    """The version of the rows."""
    schema_id: Annotated[int, msgspec.Meta(examples=[1])]
    """The schema that the dataset had at that version."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""
    corrected: bool | msgspec.UnsetType = msgspec.UNSET
    """Of an earlier version: whether later commits have corrected one of the rows. Absent for the latest version, and
    if it is not known: the feed does not record or keep it, or too many changes follow.
    """


@get(
    "/datasets/{dataset:str}/rows",
    operation_id="read_rows",
    summary="Read rows of the table",
    tags=["rows"],
    opt=needs(KeyScope.READ, in_part=True)
    | documented(
        description="A page of rows.",
        content={JSON: RowsPage, NDJSON: TEXT, CSV: TEXT, ARROW_STREAM: BINARY},
        headers={
            "Headwater-Version": "The version of the rows.",
            "Headwater-Schema-Id": "The schema that the dataset had at that version.",
            "Headwater-Next-Page-Token": "The next page's token; absent on the last.",
            **CORRECTED_HEADER,
        },
        problems=[409, 410],
    ),
)
async def read_rows(
    media_type: Provided[str],
    options: Provided[RowQuery],
    path_dataset: Provided[Dataset],
    access: Provided[RowAccess],
    read_table: Provided[ReadTable],
    page_threads: Provided[Threads],
) -> ApiResponse[bytes]:
    """Reads rows of the table now or back in time, without a job."""

    def read() -> tuple[RowPage, bytes]:
        page = read_table.page(path_dataset, options, access)
        return page, _ENCODERS[media_type](page)

    page, content = await page_threads.run(read)
    headers = {"Headwater-Version": str(page.version), "Headwater-Schema-Id": str(page.schema_id)}
    headers |= corrected_header(page.corrected)
    if page.next_page_token is not None:
        headers["Headwater-Next-Page-Token"] = page.next_page_token
    return ApiResponse(content, media_type=media_type, headers=headers)


def _as_json(page: RowPage) -> bytes:
    position = msgspec.json.encode(page.next_page_token)
    state = b'"version":%d,"schema_id":%d' % (page.version, page.schema_id)
    rows = encode_rows_json(page.rows)
    return b"".join(
        (
            b'{"rows":',
            rows,
            b",",
            state,
            b',"next_page_token":',
            position,
            corrected_member(page.corrected),
            b"}",
        )
    )


def _as_ndjson(page: RowPage) -> bytes:
    return encode_rows_ndjson(page.rows)


def _as_csv(page: RowPage) -> bytes:
    return csv_header(page.rows.schema) + encode_csv(page.rows)


def _as_arrow(page: RowPage) -> bytes:
    return arrow_stream(page.rows)


_ENCODERS: Final = {JSON: _as_json, NDJSON: _as_ndjson, CSV: _as_csv, ARROW_STREAM: _as_arrow}
