"""Cleans: forget what the history of a dataset need not keep."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Response, post

from app.format.definition.policy_rules import SECONDS_MAX, VERSIONS_MAX
from app.format.policies import HistoryPolicy
from app.http.body_stream import JSON
from app.http.context import ApiRequest, actor_of, services_of, tenant_of
from app.http.headers import idempotency_key, preference
from app.http.openapi.operation_docs import documented
from app.http.query_parameters import DatasetReference
from app.jobs.handlers.accepted import ACCEPTED_ANSWERS, ACCEPTING_HEADERS, answer_accepted
from app.jobs.handlers.job_request import read_json
from app.jobs.tasks import CleanTask


class NewClean(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which versions to keep, in place of the dataset's `services.history`.

    Those that are among the last `versions`, or were the latest `seconds` ago. With neither it is the dataset's own
    history, and without one no version is forgotten.
    """

    versions: Annotated[int, msgspec.Meta(ge=1, le=VERSIONS_MAX)] | None = None
    seconds: Annotated[int, msgspec.Meta(ge=0, le=SECONDS_MAX)] | None = None


@post(
    "/datasets/{dataset:str}/cleans",
    operation_id="create_clean",
    summary="Clean a dataset",
    tags=["cleans"],
    status_code=202,
    opt=documented(
        ACCEPTED_ANSWERS,
        body={JSON: NewClean},
        body_required=False,
        request_headers=ACCEPTING_HEADERS,
        problems=[400, 404, 409, 413, 415, 422],
    ),
)
async def create_clean(request: ApiRequest, dataset: DatasetReference) -> Response[Any]:
    """Forgets earlier versions, and removes the files that none of those has which are kept.

    Versions that have a name, and those that are being read, stay readable. Instants beyond those that
    `services.timeline` keeps are archived. Neither the table nor its feed changes, and no version is made. The job's
    `result` says what went. The body may be left out.
    """
    services = services_of(request)
    preferred = preference(request.headers)
    key = idempotency_key(request.headers)
    wanted = await read_json(request, NewClean, default=NewClean())
    history = HistoryPolicy(versions=wanted.versions, seconds=wanted.seconds)
    task = CleanTask(history=None if history == HistoryPolicy() else history)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    with services.in_flight.reserved(found.tenant_id, found.id, key):
        accepted = await services.threads.run(
            services.table_services.start, found, task, key, actor_of(request)
        )
    return await answer_accepted(request, services, accepted, preferred)
