"""Savepoints and tags: versions that are kept under a name."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final
from urllib.parse import quote

import msgspec
from litestar import Response, delete, get, post
from litestar.params import PathParameter

from app.catalog.values import Dataset
from app.http.body_stream import JSON
from app.http.context import ApiRequest, services_of, tenant_of
from app.http.encoding import encode
from app.http.headers import preference
from app.http.openapi.operation_docs import Answer, documented
from app.http.query_parameters import DatasetReference, PageSize, PageToken
from app.jobs.handlers.accepted import ACCEPTED_ANSWERS, ACCEPTING_HEADERS, answer_accepted
from app.jobs.handlers.job_request import read_json, request_identity
from app.jobs.tasks import NamedVersion, SavepointTask, TagTask, VersionKind

_SAVEPOINTS: Final = ["savepoints"]
_TAGS: Final = ["tags"]
_PROBLEMS: Final = [400, 404, 409, 410, 413, 415, 422]

SavepointName = Annotated[str, PathParameter(description="The name of a savepoint.")]
TagName = Annotated[str, PathParameter(description="The name of a tag.")]


class NewNamedVersion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The name, which no other version of the dataset has, and the version: the latest when the job runs, unless said.

    `keep_seconds`: how long the name is kept, for ever unless said.
    """

    name: str
    version: Annotated[int, msgspec.Meta(ge=0)] | None = None
    keep_seconds: Annotated[int, msgspec.Meta(ge=1, le=10**10)] | None = None


class NamedVersionLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """Where the resources of a named version are."""

    self_: str
    dataset: str
    rows: str


class NamedVersionResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A version with a name. `automatic`: the dataset's own services gave it. `expires_at`: null if it stays."""

    name: str
    kind: VersionKind
    version: int
    automatic: bool
    created_at: datetime
    expires_at: datetime | None
    links: NamedVersionLinks


class NamedVersionPage(msgspec.Struct, frozen=True, kw_only=True):
    """Versions by name."""

    items: list[NamedVersionResponse]
    next_page_token: str | None


_ANSWER: Final = {200: Answer(description="The version.", content={JSON: NamedVersionResponse})}
_PAGE: Final = {200: Answer(description="A page, by name.", content={JSON: NamedVersionPage})}
_ENDED: Final = {204: Answer(description="The name is free again.")}


@post(
    "/datasets/{dataset:str}/savepoints",
    operation_id="create_savepoint",
    summary="Keep a version to go back to",
    tags=_SAVEPOINTS,
    status_code=202,
    opt=documented(
        ACCEPTED_ANSWERS,
        body={JSON: NewNamedVersion},
        request_headers=ACCEPTING_HEADERS,
        problems=_PROBLEMS,
    ),
)
async def create_savepoint(request: ApiRequest, dataset: DatasetReference) -> Response[Any]:
    """Gives a version a name, and keeps it as long as it has that: it can be read, and restored.

    The feed is not cut behind it, so that what has happened since can be told, too.
    """
    new = await read_json(request, NewNamedVersion)
    return await _create(
        request,
        dataset,
        SavepointTask(name=new.name, version=new.version, keep_seconds=new.keep_seconds),
    )


@get(
    "/datasets/{dataset:str}/savepoints",
    operation_id="list_savepoints",
    summary="List savepoints",
    tags=_SAVEPOINTS,
    opt=documented(_PAGE, problems=[400, 404]),
)
async def list_savepoints(
    request: ApiRequest, dataset: DatasetReference, page_size: PageSize = 100, page_token: PageToken = None
) -> Response[Any]:
    """The savepoints of a dataset."""
    return await _list(request, dataset, VersionKind.SAVEPOINT, page_size, page_token)


@get(
    "/datasets/{dataset:str}/savepoints/{name:str}",
    operation_id="get_savepoint",
    summary="Get a savepoint",
    tags=_SAVEPOINTS,
    opt=documented(_ANSWER, problems=[404]),
)
async def get_savepoint(request: ApiRequest, dataset: DatasetReference, name: SavepointName) -> Response[Any]:
    """Which version it keeps, and until when."""
    return await _get(request, dataset, VersionKind.SAVEPOINT, name)


@delete(
    "/datasets/{dataset:str}/savepoints/{name:str}",
    operation_id="delete_savepoint",
    summary="End a savepoint",
    tags=_SAVEPOINTS,
    status_code=204,
    opt=documented(_ENDED, problems=[404]),
)
async def delete_savepoint(request: ApiRequest, dataset: DatasetReference, name: SavepointName) -> None:
    """Ends the name. The version is kept no longer than its history says, and so is the feed."""
    await _delete(request, dataset, VersionKind.SAVEPOINT, name)


@post(
    "/datasets/{dataset:str}/tags",
    operation_id="create_tag",
    summary="Name a version",
    tags=_TAGS,
    status_code=202,
    opt=documented(
        ACCEPTED_ANSWERS,
        body={JSON: NewNamedVersion},
        request_headers=ACCEPTING_HEADERS,
        problems=_PROBLEMS,
    ),
)
async def create_tag(request: ApiRequest, dataset: DatasetReference) -> Response[Any]:
    """Gives a version a name by which it is read, and keeps it as long as it has that."""
    new = await read_json(request, NewNamedVersion)
    return await _create(
        request, dataset, TagTask(name=new.name, version=new.version, keep_seconds=new.keep_seconds)
    )


@get(
    "/datasets/{dataset:str}/tags",
    operation_id="list_tags",
    summary="List tags",
    tags=_TAGS,
    opt=documented(_PAGE, problems=[400, 404]),
)
async def list_tags(
    request: ApiRequest, dataset: DatasetReference, page_size: PageSize = 100, page_token: PageToken = None
) -> Response[Any]:
    """The tags of a dataset, those that it gets by itself included."""
    return await _list(request, dataset, VersionKind.TAG, page_size, page_token)


@get(
    "/datasets/{dataset:str}/tags/{name:str}",
    operation_id="get_tag",
    summary="Get a tag",
    tags=_TAGS,
    opt=documented(_ANSWER, problems=[404]),
)
async def get_tag(request: ApiRequest, dataset: DatasetReference, name: TagName) -> Response[Any]:
    """Which version it names, and until when."""
    return await _get(request, dataset, VersionKind.TAG, name)


@delete(
    "/datasets/{dataset:str}/tags/{name:str}",
    operation_id="delete_tag",
    summary="End a tag",
    tags=_TAGS,
    status_code=204,
    opt=documented(_ENDED, problems=[404]),
)
async def delete_tag(request: ApiRequest, dataset: DatasetReference, name: TagName) -> None:
    """Ends the name. The version is kept no longer than its history says."""
    await _delete(request, dataset, VersionKind.TAG, name)


async def _create(request: ApiRequest, dataset: str, task: SavepointTask | TagTask) -> Response[Any]:
    services = services_of(request)
    preferred, wanted = preference(request.headers), request_identity(request, task.kind, task)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    with services.in_flight.reserved(found.tenant_id, found.id, wanted.idempotency_key):
        accepted = await services.threads.run(services.name_versions.start, found, task, wanted)
    return await answer_accepted(request, services, accepted, preferred)


async def _list(
    request: ApiRequest, dataset: str, kind: VersionKind, page_size: int, page_token: str | None
) -> Response[Any]:
    services = services_of(request)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    page = await services.threads.run(
        services.name_versions.list, found, kind, page_size=page_size, page_token=page_token
    )
    items = [_response(found, named) for named in page.items]
    return Response(encode(NamedVersionPage(items=items, next_page_token=page.next_token)), media_type=JSON)


async def _get(request: ApiRequest, dataset: str, kind: VersionKind, name: str) -> Response[Any]:
    services = services_of(request)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    named = await services.threads.run(services.name_versions.get, found, kind, name)
    return Response(encode(_response(found, named)), media_type=JSON)


async def _delete(request: ApiRequest, dataset: str, kind: VersionKind, name: str) -> None:
    services = services_of(request)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    await services.threads.run(services.name_versions.remove, found, kind, name)


def _response(dataset: Dataset, named: NamedVersion) -> NamedVersionResponse:
    path = f"/datasets/{dataset.id}"
    name = quote(named.name, safe="")
    return NamedVersionResponse(
        name=named.name,
        kind=named.kind,
        version=named.version,
        automatic=named.automatic,
        created_at=named.created_at,
        expires_at=named.expires_at,
        links=NamedVersionLinks(
            self_=f"{path}/{named.kind.value}s/{name}", dataset=path, rows=f"{path}/rows?tag={name}"
        ),
    )
