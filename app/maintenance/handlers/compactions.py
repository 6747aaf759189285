"""Compactions: bring what lies beside the base files into them."""

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
from app.jobs.tasks import CompactionTask


class NewCompaction(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to compact: the partitions that match one of these globs; all, unless said."""

    partitions: Annotated[list[str], msgspec.Meta(min_length=1)] | None = None


@post(
    "/datasets/{dataset:str}/compactions",
    operation_id="create_compaction",
    summary="Compact a dataset",
    tags=["compactions"],
    status_code=202,
    opt=documented(
        ACCEPTED_ANSWERS,
        body={JSON: NewCompaction},
        body_required=False,
        request_headers=ACCEPTING_HEADERS,
        problems=[400, 404, 409, 413, 415, 422],
    ),
)
async def create_compaction(request: ApiRequest, dataset: DatasetReference) -> Response[Any]:
    """Folds logs, postponed writes, deletion vectors and small files into base files.

    It changes no row, and runs beside writes, to which it yields. Postponed writes become visible by it, and with
    producer `deferred` the changes of logs appear in the feed. Where there is nothing to fold, it makes no version. The
    job's `result` says what was rewritten. The body may be left out.
    """
    services = services_of(request)
    preferred = preference(request.headers)
    key = idempotency_key(request.headers)
    wanted = await read_json(request, NewCompaction, default=NewCompaction())
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    task = CompactionTask(partitions=None if wanted.partitions is None else tuple(wanted.partitions))
    with services.in_flight.reserved(found.tenant_id, found.id, key):
        accepted = await services.threads.run(
            services.table_services.start, found, task, key, actor_of(request)
        )
    return await answer_accepted(request, services, accepted, preferred)
