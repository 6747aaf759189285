"""Views: datasets that are derived from others by SQL. Register, find, pause, refresh, delete."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final, TypeAlias

from litestar import delete, get, patch, post
from litestar.params import JSONBody, PathParameter

from app.access.tenants.values import KeyScope, Principal
from app.core.catalog.service import GrantedDatasets
from app.core.changes.position_parameters import parse_position
from app.core.idempotency.providers import Idempotency
from app.core.jobs.handlers.accepted import Acceptance, JobReply
from app.features.views.new_view import CreateView
from app.features.views.schemas import (
    ChangeOriginsPage,
    FindOriginsOptions,
    ListViewsOptions,
    UpdateView,
    ViewPage,
    ViewResponse,
    origins_page,
    view_path,
    view_response,
)
from app.features.views.service.origins import FindOrigins
from app.features.views.service.views import DerivedViews
from app.features.views.values import ViewState
from app.http.auth import needs
from app.http.dependencies import Provided
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import documented
from app.http.response import Created, Tagged

_BODY_BYTES_MAX: Final = 1024 * 1024
_TAGS: Final = ["views"]

ViewReference: TypeAlias = Annotated[str, PathParameter(description="The id or the name of a view.")]


@post(
    "/views",
    operation_id="create_view",
    summary="Register a view",
    tags=_TAGS,
    request_max_body_size=_BODY_BYTES_MAX,
    opt=needs(KeyScope.WRITE) | documented(problems=[404]),
)
async def create_view(
    data: JSONBody[CreateView],
    views: Provided[DerivedViews],
    granted_datasets: Provided[GrantedDatasets],
    principal: Provided[Principal],
    idempotency: Provided[Idempotency],
) -> Created[ViewResponse]:
    """Registers a dataset whose rows are the result of SQL over others, and queues its first refresh.

    It is refreshed whenever its inputs change. Its columns are those of the SQL, and it has a feed like any other
    dataset.
    """

    granted_datasets.check_new(data.name)

    def create() -> Created[ViewResponse]:
        view = views.register(principal.tenant_id, data, granted_datasets.reading(), actor=principal.actor)
        return Created(view_response(view), path=view_path(view), revision=view.revision)

    return await idempotency.run(create)


@get("/views", operation_id="list_views", summary="List views", tags=_TAGS, opt=needs(KeyScope.READ))
async def list_views(
    options: Provided[ListViewsOptions],
    views: Provided[DerivedViews],
    granted_datasets: Provided[GrantedDatasets],
    threads: Provided[Threads],
) -> ViewPage:
    """Lists the tenant's views by name."""
    page = await threads.run(
        views.list, granted_datasets, page_size=options.page_size, page_token=options.page_token
    )
    return ViewPage(items=[view_response(view) for view in page.items], next_page_token=page.next_token)


@get("/views/{view:str}", operation_id="get_view", summary="Get a view", tags=_TAGS, opt=needs(KeyScope.READ))
async def get_view(
    view: ViewReference,
    views: Provided[DerivedViews],
    granted_datasets: Provided[GrantedDatasets],
    threads: Provided[Threads],
) -> Tagged[ViewResponse]:
    """Returns a view: how far it shows its inputs, and why its last refresh failed, if it did."""
    current = await threads.run(views.read, granted_datasets, view)
    return Tagged(view_response(current), revision=current.revision)


@get(
    "/views/{view:str}/origins",
    operation_id="find_origins",
    summary="Find the origins of a view's changes",
    tags=_TAGS,
    opt=needs(KeyScope.READ) | documented(description="A page of origins.", problems=[409, 410]),
)
async def find_origins(
    view: ViewReference,
    options: Provided[FindOriginsOptions],
    origins: Provided[FindOrigins],
    granted_datasets: Provided[GrantedDatasets],
    page_threads: Provided[Threads],
) -> ChangeOriginsPage:
    """Returns the changes of a view from an offset on, each with the change of the input that it was made of.

    The view must make its rows one by one (`mode` is `row_by_row`). An origin is null if the input's feed is not kept
    that far back, or if the version has taken in more than a million changes.
    """
    page = await page_threads.run(
        origins.page, granted_datasets, view, parse_position(options.since), options.limit
    )
    return origins_page(page)


@patch(
    "/views/{view:str}",
    operation_id="change_view",
    summary="Pause or resume a view",
    tags=_TAGS,
    opt=needs(KeyScope.MANAGE),
)
async def change_view(
    view: ViewReference,
    data: JSONBody[UpdateView],
    required_if_match_revision: Provided[int],
    views: Provided[DerivedViews],
    granted_datasets: Provided[GrantedDatasets],
    threads: Provided[Threads],
) -> Tagged[ViewResponse]:
    """Pauses a view, so that it is refreshed on request only, or resumes it; then it takes in what has changed."""
    current = await threads.run(
        views.pause,
        granted_datasets,
        view,
        paused=data.state is ViewState.PAUSED,
        revision=required_if_match_revision,
    )
    return Tagged(view_response(current), revision=current.revision)


@delete(
    "/views/{view:str}",
    operation_id="delete_view",
    summary="Delete a view",
    tags=_TAGS,
    opt=needs(KeyScope.MANAGE)
    | documented(description="The view is deleted; its name is free at once.", problems=[409]),
)
async def delete_view(
    view: ViewReference,
    views: Provided[DerivedViews],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> None:
    """Deletes a view, and its dataset with it."""
    await threads.run(views.delete, principal.tenant_id, view)


@post(
    "/views/{view:str}/refreshes",
    operation_id="refresh_view",
    summary="Refresh a view",
    tags=_TAGS,
    status_code=202,
    opt=needs(KeyScope.WRITE),
)
async def refresh_view(
    view: ViewReference,
    views: Provided[DerivedViews],
    acceptance: Provided[Acceptance],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> JobReply:
    """Queues a refresh now, such as for a view that failed. If one is queued already, that one is returned."""
    current = await threads.run(views.get, principal.tenant_id, view)
    return await acceptance.accept(current.dataset, partial(views.refresh, current))
