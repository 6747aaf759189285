"""Comparisons: what is different between two versions of a dataset."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import msgspec
from litestar import Response, post

from app.http.body_stream import JSON
from app.http.context import ApiRequest, services_of, tenant_of
from app.http.headers import preference
from app.http.openapi.operation_docs import documented
from app.http.query_parameters import DatasetReference
from app.jobs.handlers.accepted import ACCEPTED_ANSWERS, ACCEPTING_HEADERS, answer_accepted
from app.jobs.handlers.job_request import read_json, request_identity
from app.versions.service.comparisons import ComparedVersion

_Version = Annotated[int, msgspec.Meta(ge=0)]
_Moment = Annotated[datetime, msgspec.Meta(tz=True)]


class NewComparison(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The two versions, each by its number, a time, or the name of a tag or savepoint; the latest unless said."""

    from_version: _Version | None = None
    from_as_of: _Moment | None = None
    from_tag: str | None = None
    to_version: _Version | None = None
    to_as_of: _Moment | None = None
    to_tag: str | None = None


@post(
    "/datasets/{dataset:str}/comparisons",
    operation_id="create_comparison",
    summary="Compare two versions",
    tags=["comparisons"],
    status_code=202,
    opt=documented(
        ACCEPTED_ANSWERS,
        body={JSON: NewComparison},
        request_headers=ACCEPTING_HEADERS,
        problems=[400, 404, 409, 410, 413, 415, 422],
    ),
)
async def create_comparison(request: ApiRequest, dataset: DatasetReference) -> Response[Any]:
    """Counts the rows that are there at one version and not at the other, and those that have other values.

    The job's `result` tells them, along with the files that came and went, and how the schema changed.
    """
    new = await read_json(request, NewComparison)
    begin = ComparedVersion(version=new.from_version, as_of=new.from_as_of, tag=new.from_tag)
    end = ComparedVersion(version=new.to_version, as_of=new.to_as_of, tag=new.to_tag)
    services = services_of(request)
    preferred, wanted = preference(request.headers), request_identity(request, "comparison", new)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    with services.in_flight.reserved(found.tenant_id, found.id, wanted.idempotency_key):
        accepted = await services.threads.run(services.comparisons.start, found, begin, end, wanted)
    return await answer_accepted(request, services, accepted, preferred)
