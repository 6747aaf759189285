"""The timeline of a dataset."""

from __future__ import annotations

from typing import Annotated, Any

from litestar import Response, get
from litestar.params import QueryParameter

from app.format.instant import Action, InstantState
from app.http.body_stream import JSON
from app.http.context import ApiRequest, services_of, tenant_of
from app.http.encoding import encode
from app.http.openapi.operation_docs import Answer, documented
from app.http.query_parameters import DatasetReference, PageSize, PageToken, moment
from app.timeline.instants import InstantFilter
from app.timeline.schemas import InstantPage, instant_response


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
    request: ApiRequest,
    dataset: DatasetReference,
    action: Annotated[
        list[Action] | None, QueryParameter(description="Only instants that do this; repeated, one of these.")
    ] = None,
    states: Annotated[
        list[InstantState] | None,
        QueryParameter(name="state", description="Only instants in this state; repeated, in one of these."),
    ] = None,
    since: Annotated[
        str | None, QueryParameter(description="An RFC 3339 time: only what was requested then or later.")
    ] = None,
    until: Annotated[
        str | None, QueryParameter(description="An RFC 3339 time: only what was requested before.")
    ] = None,
    page_size: PageSize = 100,
    page_token: PageToken = None,
) -> Response[Any]:
    """Every attempt to change the dataset, latest request first: waiting, running, completed, rolled back.

    Also what has been archived. Where much of that is passed over, a page may have less than it has room for.
    """
    services = services_of(request)
    wanted = InstantFilter(
        actions=None if action is None else tuple(action),
        states=None if states is None else tuple(states),
        since=None if since is None else moment(since, "since"),
        until=None if until is None else moment(until, "until"),
    )
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    page = await services.threads.run(
        services.read_timeline.page,
        found,
        page_size=page_size,
        page_token=page_token,
        wanted=wanted,
    )
    response = InstantPage(
        items=[instant_response(each) for each in page.items], next_page_token=page.next_token
    )
    return Response(encode(response), media_type=JSON)
