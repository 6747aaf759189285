"""Compactions: bring what lies beside the base files into them."""

from __future__ import annotations

from typing import Any

from litestar import Response, post

from app.api.accepted import ACCEPTED_ANSWERS, ACCEPTING_HEADERS, answer_accepted
from app.api.context import ApiRequest, actor_of, services_of, tenant_of
from app.api.documented import documented
from app.api.headers import idempotency_key, preference
from app.api.query import DatasetReference


@post(
    "/datasets/{dataset:str}/compactions",
    operation_id="create_compaction",
    summary="Compact a dataset",
    tags=["compactions"],
    status_code=202,
    opt=documented(ACCEPTED_ANSWERS, request_headers=ACCEPTING_HEADERS, problems=[400, 404, 409, 422]),
)
async def create_compaction(request: ApiRequest, dataset: DatasetReference) -> Response[Any]:
    """Folds logs, postponed writes, deletion vectors and small files into base files.

    It changes no row. Postponed writes become visible by it, and with producer `deferred` the changes of logs appear in
    the feed. Where there is nothing to fold, it makes no version.
    """
    services = services_of(request)
    preferred = preference(request.headers)
    key = idempotency_key(request.headers)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    with services.in_flight.holding(found.tenant_id, found.id, key):
        accepted = await services.threads.run(services.maintain.compact, found, key, actor=actor_of(request))
    return await answer_accepted(request, services, accepted, preferred)
