"""Which changes were taken back later, and by what."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Response, get
from litestar.params import QueryParameter

from app.changes.service.read_corrections import CorrectedChange
from app.format.rows.changelog import SYMBOLS
from app.http.body_stream import JSON
from app.http.context import ApiRequest, services_of, tenant_of
from app.http.encoding import encode
from app.http.openapi.operation_docs import Answer, documented
from app.http.query_parameters import INT64_MAX, DatasetReference, PageToken, natural

LIMIT_MAX = 10_000


class CorrectionResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The change at `offset` was taken back at offset `corrected_by`, of `version`, by an `op` `-C` or `-R`.

    A `-C` is directly followed by the `+C` with the row that took its place.
    """

    offset: int
    corrected_by: int
    op: str
    version: int
    system_time: str


class CorrectionsPage(msgspec.Struct, frozen=True, kw_only=True):
    """Corrections in the order in which the feed tells them."""

    corrections: list[CorrectionResponse]
    next_page_token: str | None


@get(
    "/datasets/{dataset:str}/changes/corrected",
    operation_id="read_corrections",
    summary="Read which changes were taken back",
    tags=["changes"],
    opt=documented(
        {200: Answer(description="A page of corrections.", content={JSON: CorrectionsPage})},
        problems=[400, 404, 409, 410],
    ),
)
async def read_corrections(
    request: ApiRequest,
    dataset: DatasetReference,
    from_: Annotated[
        int, QueryParameter(name="from", ge=0, le=INT64_MAX, description="The first offset asked about.")
    ] = 0,
    to: Annotated[
        int | None,
        QueryParameter(
            ge=0, le=INT64_MAX, description="The offset behind the last one; the head unless said."
        ),
    ] = None,
    limit: Annotated[int, QueryParameter(ge=1, le=LIMIT_MAX, description="Corrections on a page.")] = 1_000,
    page_token: PageToken = None,
) -> Response[Any]:
    """Which changes with offsets `from` to before `to` were corrected or retracted by now, and by which change.

    A change is taken back once at most. A page may be empty although another follows, where much of the feed was looked
    at in vain.
    """
    services = services_of(request)
    since = None if page_token is None else natural(page_token, "page_token")
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    page = await services.threads.run(
        services.read_corrections.page, found, from_, to, since=since, limit=limit
    )
    response = CorrectionsPage(
        corrections=[_response(each) for each in page.corrections],
        next_page_token=None if page.next_since is None else str(page.next_since),
    )
    return Response(encode(response), media_type=JSON)


def _response(correction: CorrectedChange) -> CorrectionResponse:
    return CorrectionResponse(
        offset=correction.offset,
        corrected_by=correction.by,
        op=SYMBOLS[correction.op],
        version=correction.version,
        system_time=correction.system_time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    )
