"""Clusterings: put rows in an order in which filters read few of them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import Response, post

from app.format.clustering import COLUMNS_MAX, cluster_by
from app.format.policies import ClusterOrder
from app.http.body_stream import JSON
from app.http.context import ApiRequest, actor_of, services_of, tenant_of
from app.http.headers import idempotency_key, preference
from app.http.openapi.operation_docs import documented
from app.http.query_parameters import DatasetReference
from app.jobs.handlers.accepted import ACCEPTED_ANSWERS, ACCEPTING_HEADERS, answer_accepted
from app.jobs.handlers.job_request import read_json
from app.jobs.tasks import ClusteringTask


class NewClustering(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """By which columns rows are put in order: unless said, those of `services.clustering` of the dataset, in its order.

    `partitions`: only those that match one of these globs.
    """

    columns: Annotated[list[str], msgspec.Meta(min_length=1, max_length=COLUMNS_MAX)] | None = None
    order: ClusterOrder | None = None
    partitions: Annotated[list[str], msgspec.Meta(min_length=1)] | None = None


@post(
    "/datasets/{dataset:str}/clusterings",
    operation_id="create_clustering",
    summary="Cluster a dataset",
    tags=["clusterings"],
    status_code=202,
    opt=documented(
        ACCEPTED_ANSWERS,
        body={JSON: NewClustering},
        body_required=False,
        request_headers=ACCEPTING_HEADERS,
        problems=[400, 404, 409, 413, 415, 422],
    ),
)
async def create_clustering(request: ApiRequest, dataset: DatasetReference) -> Response[Any]:
    """Writes files anew with their rows in the order of some columns, so that filters on these read few of them.

    It changes no row, tells nothing in the feed, and runs beside writes, to which it yields. What is in that order
    already stays as it is; where that is all, it makes no version. The job's `result` says what was rewritten. The body
    may be left out.
    """
    services = services_of(request)
    preferred = preference(request.headers)
    key = idempotency_key(request.headers)
    wanted = await read_json(request, NewClustering, default=NewClustering())
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    by = cluster_by(found.definition, wanted.columns, wanted.order)
    task = ClusteringTask(
        columns=by.columns,
        order=by.order,
        partitions=None if wanted.partitions is None else tuple(wanted.partitions),
    )
    with services.in_flight.reserved(found.tenant_id, found.id, key):
        accepted = await services.threads.run(
            services.table_services.start, found, task, key, actor_of(request)
        )
    return await answer_accepted(request, services, accepted, preferred)
