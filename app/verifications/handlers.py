"""Verifications: is a table what its feed says?"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Response, post

from app.http.body_stream import JSON
from app.http.context import ApiRequest, actor_of, services_of, tenant_of
from app.http.headers import idempotency_key, preference
from app.http.openapi.operation_docs import documented
from app.http.query_parameters import DatasetReference
from app.jobs.handlers.accepted import ACCEPTED_ANSWERS, ACCEPTING_HEADERS, answer_accepted
from app.jobs.handlers.job_request import read_json


class NewVerification(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to verify: the dataset at `version`, at the latest when the job runs unless said."""

    version: Annotated[int, msgspec.Meta(ge=0)] | None = None


@post(
    "/datasets/{dataset:str}/verify",
    operation_id="verify_dataset",
    summary="Verify that a dataset is what its feed says",
    tags=["verify"],
    status_code=202,
    opt=documented(
        ACCEPTED_ANSWERS,
        body={JSON: NewVerification},
        body_required=False,
        request_headers=ACCEPTING_HEADERS,
        problems=[400, 404, 409, 413, 415, 422],
    ),
)
async def verify_dataset(request: ApiRequest, dataset: DatasetReference) -> Response[Any]:
    """Folds the feed up to a version and compares what that makes with the table, row by row.

    The job's `result` says whether they are equal, and where first they are not. The body may be left out.
    """
    services = services_of(request)
    preferred = preference(request.headers)
    key = idempotency_key(request.headers)
    wanted = await read_json(request, NewVerification, default=NewVerification())
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    with services.in_flight.reserved(found.tenant_id, found.id, key):
        accepted = await services.threads.run(
            services.verify.start, found, wanted.version, key, actor=actor_of(request)
        )
    return await answer_accepted(request, services, accepted, preferred)
