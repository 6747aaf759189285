"""Read jobs: as many rows as there are, in any format, in order."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final

import msgspec
from litestar import Response, post

from app.format.file_format import FileFormat
from app.format.rows.read_order import ReadOrder
from app.http.auth import SCOPE
from app.http.body_stream import JSON, announces_body, read_body, refuse_encoding, require_media_type
from app.http.context import ApiRequest, actor_of, services_of, tenant_of
from app.http.headers import idempotency_key, preference
from app.http.json_body import decode_json
from app.http.openapi.operation_docs import documented
from app.http.query_parameters import INT64_MAX, DatasetReference
from app.jobs.handlers.accepted import ACCEPTED_ANSWERS, ACCEPTING_HEADERS, answer_accepted
from app.jobs.tasks import Disposition, ReadQuery
from app.reads.jobs import NewRead

TAGS: Final = ["reads"]
_BODY_BYTES_MAX: Final = 256 * 1024
_ORDERS_MAX: Final = 100

_Version = Annotated[int, msgspec.Meta(ge=0, le=INT64_MAX)]
_Time = Annotated[datetime, msgspec.Meta(tz=True)]


class ReadRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to read. `snapshot` is the table, `read_optimized` only its base files, both as of `version`, `as_of` or
    the version named `tag`, the latest unless said.

    `incremental`: the rows that changed after `begin` (or `begin_time`) and up to `end` (or `end_time`), as they are
    then, under the latest schema. `columns`: all unless named, in the order in which they are named; `where`,
    `partitions`: which rows; `limit`: how many at most. `inline`: the result in one answer where it fits.
    """

    query: ReadQuery = ReadQuery.SNAPSHOT
    version: _Version | None = None
    as_of: _Time | None = None
    tag: str | None = None
    begin: _Version | None = None
    begin_time: _Time | None = None
    end: _Version | None = None
    end_time: _Time | None = None
    columns: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] | None = None
    where: str | None = None
    partitions: Annotated[tuple[str, ...], msgspec.Meta(min_length=1)] | None = None
    order_by: Annotated[tuple[ReadOrder, ...], msgspec.Meta(max_length=_ORDERS_MAX)] = ()
    limit: Annotated[int, msgspec.Meta(ge=1, le=INT64_MAX)] | None = None
    format: FileFormat = FileFormat.JSON
    disposition: Disposition = Disposition.INLINE


@post(
    "/datasets/{dataset:str}/reads",
    operation_id="create_read",
    summary="Read a table, or what changed in it, with a job",
    tags=TAGS,
    status_code=202,
    opt={
        # It changes nothing.
        SCOPE: "read",
        **documented(
            ACCEPTED_ANSWERS,
            body={JSON: ReadRequest},
            body_required=False,
            request_headers=ACCEPTING_HEADERS,
            problems=[400, 404, 409, 410, 413, 415, 422],
        ),
    },
)
async def create_read(request: ApiRequest, dataset: DatasetReference) -> Response[Any]:
    """Reads rows of any number. The version is settled now, and held while they are read; `GET /jobs/{id}/result` has
    them once the job has succeeded. Without a body it reads the whole table as it is.
    """
    services = services_of(request)
    preferred = preference(request.headers)
    key = idempotency_key(request.headers)
    body = ReadRequest()
    if announces_body(request):
        require_media_type(request, [JSON])
        refuse_encoding(request)
        body = decode_json(await read_body(request, _BODY_BYTES_MAX), ReadRequest)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    new = NewRead(**msgspec.structs.asdict(body))
    with services.in_flight.reserved(found.tenant_id, found.id, key):
        accepted = await services.threads.run(
            services.read_jobs.start, found, new, key, actor=actor_of(request)
        )
    return await answer_accepted(request, services, accepted, preferred)
