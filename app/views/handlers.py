"""Views: datasets that are derived from others by SQL. Register, find, refresh, end."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from litestar import Response, delete, get, patch, post
from litestar.params import PathParameter

from app.catalog.schemas import dataset_path
from app.http.body_stream import JSON, read_body, refuse_encoding, require_media_type
from app.http.context import ApiRequest, actor_of, services_of, tenant_of
from app.http.encoding import PROBLEM, encode
from app.http.headers import etag, preference, required_version
from app.http.json_body import decode_json
from app.http.openapi.operation_docs import Answer, documented
from app.http.problems import fault_document
from app.http.query_parameters import PageSize, PageToken
from app.jobs.handlers.accepted import ACCEPTED_ANSWERS, answer_accepted
from app.jobs.values import Accepted
from app.views.new_view import NewView
from app.views.values import View, ViewInputStatus, ViewMode, ViewState

_BODY_BYTES_MAX: Final = 1024 * 1024
_TAGS: Final = ["views"]
_ETAG: Final = {"ETag": "The view's revision, quoted: it counts what was changed by PATCH."}

ViewReference: TypeAlias = Annotated[str, PathParameter(description="The id or the name of a view.")]


class ViewInputResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset that a view reads: the view shows its changes before `offset`, those of its versions up to `version`.

    `dataset`: its name in the SQL. `lag`: how many changes the view does not show yet.
    """

    dataset: str
    id: str
    offset: int
    version: int
    lag: int


class ViewLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """Where the resources of a view are."""

    self_: str
    refresh: str
    dataset: str
    changes: str
    rows: str
    timeline: str


class ViewResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A view. `paused`: it is refreshed on request only. `error`: why its last refresh failed. `refreshed_at`: when the
    last one that did not fail had ended.
    """

    id: str
    name: str
    sql: str
    record_key: list[str]
    inputs: list[ViewInputResponse]
    mode: ViewMode
    paused: bool
    state: ViewState
    error: Annotated[dict[str, Any], PROBLEM] | None
    version: int
    refreshed_at: datetime | None
    created_at: datetime
    links: ViewLinks


class ViewPatch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What can be changed of a view: whether it follows its inputs by itself."""

    paused: bool


class ViewPage(msgspec.Struct, frozen=True, kw_only=True):
    """Views by name."""

    items: list[ViewResponse]
    next_page_token: str | None


@post(
    "/views",
    operation_id="create_view",
    summary="Register a view",
    tags=_TAGS,
    opt=documented(
        {
            201: Answer(
                description="Registered, its first refresh queued.",
                content={JSON: ViewResponse},
                headers={"Location": "Its path.", **_ETAG},
            )
        },
        body={JSON: NewView},
        problems=[400, 404, 409, 413, 415, 422],
    ),
)
async def create_view(request: ApiRequest) -> Response[Any]:
    """Registers a dataset whose rows are the result of SQL over others. It follows their changes by itself.

    Its columns are those of the SQL, and it has a feed like any other dataset.
    """
    services = services_of(request)
    require_media_type(request, [JSON])
    refuse_encoding(request)
    new = decode_json(await read_body(request, _BODY_BYTES_MAX), NewView)
    view = await services.threads.run(
        services.views.register, tenant_of(request), new, actor=actor_of(request)
    )
    headers = {"Location": view_path(view), "ETag": etag(view.revision)}
    return Response(encode(view_response(view)), status_code=201, media_type=JSON, headers=headers)


@get(
    "/views",
    operation_id="list_views",
    summary="List views",
    tags=_TAGS,
    opt=documented({200: Answer(description="A page, by name.", content={JSON: ViewPage})}, problems=[400]),
)
async def list_views(
    request: ApiRequest, page_size: PageSize = 100, page_token: PageToken = None
) -> Response[Any]:
    """Lists the tenant's views by name."""
    services = services_of(request)
    page = await services.threads.run(
        services.views.list, tenant_of(request), page_size=page_size, page_token=page_token
    )
    items = [view_response(view) for view in page.items]
    return Response(encode(ViewPage(items=items, next_page_token=page.next_token)), media_type=JSON)


@get(
    "/views/{view:str}",
    operation_id="get_view",
    summary="Get a view",
    tags=_TAGS,
    opt=documented(
        {200: Answer(description="The view.", content={JSON: ViewResponse}, headers=_ETAG)}, problems=[404]
    ),
)
async def get_view(request: ApiRequest, view: ViewReference) -> Response[Any]:
    """A view by its id or its name: how far it has followed its inputs, and what is wrong if it does not."""
    services = services_of(request)
    found = await services.threads.run(services.views.get, tenant_of(request), view)
    return Response(encode(view_response(found)), media_type=JSON, headers={"ETag": etag(found.revision)})


@patch(
    "/views/{view:str}",
    operation_id="change_view",
    summary="Pause or resume a view",
    tags=_TAGS,
    opt=documented(
        {200: Answer(description="Changed.", content={JSON: ViewResponse}, headers=_ETAG)},
        body={JSON: ViewPatch},
        request_headers={"If-Match": "The ETag that the view must still have; required."},
        problems=[400, 404, 412, 413, 415, 422, 428],
    ),
)
async def change_view(request: ApiRequest, view: ViewReference) -> Response[Any]:
    """Stops a view from following its inputs by itself, or has it go on, with all that came meanwhile."""
    services = services_of(request)
    require_media_type(request, [JSON])
    refuse_encoding(request)
    revision = required_version(request.headers)
    wanted = decode_json(await read_body(request, _BODY_BYTES_MAX), ViewPatch)
    changed = await services.threads.run(
        services.views.pause, tenant_of(request), view, paused=wanted.paused, revision=revision
    )
    headers = {"ETag": etag(changed.revision)}
    return Response(encode(view_response(changed)), media_type=JSON, headers=headers)


@delete(
    "/views/{view:str}",
    operation_id="delete_view",
    summary="End a view",
    tags=_TAGS,
    status_code=204,
    opt=documented({204: Answer(description="Ended; its name is free at once.")}, problems=[404, 409]),
)
async def delete_view(request: ApiRequest, view: ViewReference) -> None:
    """Ends a view, and its dataset with it."""
    services = services_of(request)
    await services.threads.run(services.views.delete, tenant_of(request), view)


@post(
    "/views/{view:str}/refresh",
    operation_id="refresh_view",
    summary="Refresh a view",
    tags=_TAGS,
    status_code=202,
    opt=documented(
        ACCEPTED_ANSWERS,
        request_headers={"Prefer": "`wait=N` waits up to N seconds (60 at most) for the job to end."},
        problems=[400, 404, 409, 422],
    ),
)
async def refresh_view(request: ApiRequest, view: ViewReference) -> Response[Any]:
    """Queues a refresh now: for a view that failed, say. If one is queued already, the answer is that one."""
    services = services_of(request)
    preferred = preference(request.headers)
    job = await services.threads.run(
        services.views.refresh, tenant_of(request), view, actor=actor_of(request)
    )
    return await answer_accepted(request, services, Accepted(job=job, replayed=False), preferred)


def view_path(view: View) -> str:
    """The path of a view's resource."""
    return f"/views/{view.dataset.id}"


def view_response(view: View) -> ViewResponse:
    """The JSON form of a view."""
    dataset, path = dataset_path(view.dataset), view_path(view)
    return ViewResponse(
        id=view.dataset.id,
        name=view.dataset.definition.name,
        sql=view.definition.sql,
        record_key=list(view.dataset.definition.record_key),
        inputs=[_input_response(each) for each in view.inputs],
        mode=view.definition.mode,
        paused=view.paused,
        state=view.state,
        error=None if view.error is None else fault_document(view.error),
        version=view.dataset.version,
        refreshed_at=view.refreshed_at,
        created_at=view.created_at,
        links=ViewLinks(
            self_=path,
            refresh=f"{path}/refresh",
            dataset=dataset,
            changes=f"{dataset}/changes",
            rows=f"{dataset}/rows",
            timeline=f"{dataset}/timeline",
        ),
    )


def _input_response(source: ViewInputStatus) -> ViewInputResponse:
    return ViewInputResponse(
        dataset=source.relation,
        id=source.dataset.id,
        offset=source.position,
        version=source.position_version,
        lag=source.lag,
    )
