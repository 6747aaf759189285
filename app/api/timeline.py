"""The timeline of a dataset."""

from __future__ import annotations

from typing import Any

from litestar import Response, get

from app.api.bodies import JSON
from app.api.context import ApiRequest, services_of, tenant_of
from app.api.documented import Answer, documented
from app.api.query import DatasetReference, PageSize, PageToken
from app.api.views import InstantPage, encode, instant_views


@get(
    "/datasets/{dataset:str}/timeline",
    operation_id="read_timeline",
    summary="Read the timeline",
    tags=["timeline"],
    opt=documented(
        {200: Answer(description="A page of instants.", content={JSON: InstantPage})}, problems=[400, 404]
    ),
)
async def read_timeline(
    request: ApiRequest, dataset: DatasetReference, page_size: PageSize = 100, page_token: PageToken = None
) -> Response[Any]:
    """Every attempt to change the dataset, latest request first: waiting, running, completed, rolled back."""
    services = services_of(request)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    page = await services.threads.run(
        services.timeline.instants, found.tenant_id, found.id, page_size=page_size, page_token=page_token
    )
    view = InstantPage(items=instant_views(page.items), next_page_token=page.next_token)
    return Response(encode(view), media_type=JSON)
