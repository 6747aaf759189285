"""Exports: a feed, or the rows that changed in it, written to files."""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

import msgspec
from litestar import Response, delete, get, patch, post
from litestar.params import PathParameter

from app.changelog.forms import ChangeForm
from app.changes.positions import StartingPosition
from app.consumers.values import MaxLag
from app.exports.schemas import (
    ExportPage,
    ExportResponse,
    ExportRunPage,
    ExportRunResponse,
    ExportRunSummary,
    export_path,
    export_response,
    run_path,
    run_response,
    run_summary,
)
from app.exports.tasks import TARGET_BYTES_MAX, TARGET_BYTES_MIN, ExportFormat, ExportQuery
from app.exports.values import Export, ExportChange, ExportDefinition, ExportState, Schedule
from app.format.dataset import DEFAULT_TARGET_BYTES
from app.format.errors import FieldError, InvalidRequest
from app.http.body_stream import JSON, read_body, refuse_encoding, require_media_type
from app.http.context import ApiRequest, actor_of, services_of, tenant_of
from app.http.encoding import encode
from app.http.headers import etag, idempotency_key, required_version
from app.http.json_body import decode_json
from app.http.openapi.operation_docs import Answer, documented
from app.http.query_parameters import INT64_MAX, DatasetReference, PageSize, PageToken

TAGS: Final = ["exports"]
_BODY_BYTES_MAX: Final = 256 * 1024
_ETAG: Final = {"ETag": "The export's revision, quoted."}
_NATURAL: Final = msgspec.Meta(ge=0, le=INT64_MAX)

ExportId: TypeAlias = Annotated[str, PathParameter(description="The id of an export.")]
RunNumber: TypeAlias = Annotated[
    int, PathParameter(ge=1, le=INT64_MAX, description="The number of a run, from 1.")
]


class NewExport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to export. `form` is for `changes`. `columns`: all unless named; `where`, `partitions`: which rows.

    It goes from `since` (a position, `earliest` or `now`) to `until`, or to the head as it is when a run is accepted.
    With a `schedule` it goes on from where it stopped; without, it runs once, and again when it is asked to. A file is
    ended at `target_bytes`. `max_lag`: how far behind it may be and still keep the feed from being cut before it.
    """

    query: ExportQuery
    format: ExportFormat
    form: ChangeForm | msgspec.UnsetType = msgspec.UNSET
    columns: Annotated[list[str], msgspec.Meta(min_length=1)] | None = None
    where: str | None = None
    partitions: Annotated[list[str], msgspec.Meta(min_length=1)] | None = None
    since: Annotated[int, _NATURAL] | StartingPosition = StartingPosition.EARLIEST
    until: Annotated[int, _NATURAL] | None = None
    schedule: Schedule | None = None
    target_bytes: Annotated[int, msgspec.Meta(ge=TARGET_BYTES_MIN, le=TARGET_BYTES_MAX)] = (
        DEFAULT_TARGET_BYTES
    )
    name: Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern="^[^\\x00-\\x1f]*$")] | None = (
        None
    )
    max_lag: MaxLag | None = None


class ExportSwitch(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What changes of an export: whether it runs by itself, and when; `null` takes the schedule away."""

    state: ExportState | msgspec.UnsetType = msgspec.UNSET
    schedule: Schedule | msgspec.UnsetType | None = msgspec.UNSET


@post(
    "/datasets/{dataset:str}/exports",
    operation_id="create_export",
    summary="Export changes, or changed rows",
    tags=TAGS,
    status_code=202,
    opt=documented(
        {
            202: Answer(
                description="Accepted; its first run is on its way.",
                content={JSON: ExportResponse},
                headers={"Location": "Its path.", **_ETAG},
            )
        },
        body={JSON: NewExport},
        problems=[400, 404, 409, 410, 413, 415, 422],
    ),
)
async def create_export(request: ApiRequest, dataset: DatasetReference) -> Response[Any]:
    """Writes a range of the feed to files: its changes, or the rows that the changed keys have at its end.

    One with a schedule that has nothing to write yet waits for the first change.
    """
    services = services_of(request)
    require_media_type(request, [JSON])
    refuse_encoding(request)
    new = decode_json(await read_body(request, _BODY_BYTES_MAX), NewExport)
    definition = _definition(new)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    export = await services.threads.run(
        services.exports.create, found, definition, new.since, actor=actor_of(request)
    )
    return _answer(export, status=202, location=export_path(export.id))


@get(
    "/datasets/{dataset:str}/exports",
    operation_id="list_exports",
    summary="List exports",
    tags=TAGS,
    opt=documented(
        {200: Answer(description="A page, the latest first.", content={JSON: ExportPage})},
        problems=[400, 404],
    ),
)
async def list_exports(
    request: ApiRequest, dataset: DatasetReference, page_size: PageSize = 100, page_token: PageToken = None
) -> Response[Any]:
    """The exports of a dataset, those that have ended too."""
    services = services_of(request)
    found = await services.threads.run(services.datasets.get, tenant_of(request), dataset)
    page = await services.threads.run(
        services.exports.list, found, page_size=page_size, page_token=page_token
    )
    items = [export_response(export) for export in page.items]
    return Response(encode(ExportPage(items=items, next_page_token=page.next_token)), media_type=JSON)


@get(
    "/exports/{export:str}",
    operation_id="get_export",
    summary="Get an export",
    tags=TAGS,
    opt=documented(
        {200: Answer(description="The export.", content={JSON: ExportResponse}, headers=_ETAG)},
        problems=[404],
    ),
)
async def get_export(request: ApiRequest, export: ExportId) -> Response[Any]:
    """An export with its latest runs. `offset` is where the next one starts."""
    services = services_of(request)
    return _answer(await services.threads.run(services.exports.get, tenant_of(request), export))


@patch(
    "/exports/{export:str}",
    operation_id="change_export",
    summary="Pause an export, or change when it runs",
    tags=TAGS,
    opt=documented(
        {200: Answer(description="Changed.", content={JSON: ExportResponse}, headers=_ETAG)},
        body={JSON: ExportSwitch},
        request_headers={"If-Match": "The ETag that the export must still have; required."},
        problems=[400, 404, 409, 410, 412, 413, 415, 428],
    ),
)
async def change_export(request: ApiRequest, export: ExportId) -> Response[Any]:
    """Pauses an export, has it go on, or gives it another schedule. What is under way goes on."""
    services = services_of(request)
    require_media_type(request, [JSON])
    refuse_encoding(request)
    revision = required_version(request.headers)
    switch = decode_json(await read_body(request, _BODY_BYTES_MAX), ExportSwitch)
    if switch.state is ExportState.ENDED:
        detail = "expected active or paused; DELETE ends an export"
        raise InvalidRequest(f"/state: {detail}", [FieldError(pointer="/state", detail=detail)])
    change = ExportChange(revision=revision, state=switch.state, schedule=switch.schedule)
    return _answer(await services.threads.run(services.exports.change, tenant_of(request), export, change))


@delete(
    "/exports/{export:str}",
    operation_id="delete_export",
    summary="Delete an export",
    tags=TAGS,
    status_code=204,
    opt=documented({204: Answer(description="Ended, and its runs and files forgotten.")}, problems=[404]),
)
async def delete_export(request: ApiRequest, export: ExportId) -> None:
    """Ends an export, cancels what is under way, and removes its runs with their files."""
    services = services_of(request)
    await services.threads.run(services.exports.delete, tenant_of(request), export)


@post(
    "/exports/{export:str}/runs",
    operation_id="start_export_run",
    summary="Run an export now",
    tags=TAGS,
    status_code=202,
    opt=documented(
        {
            202: Answer(
                description="On its way, unless it has ended already.",
                content={JSON: ExportRunSummary},
                headers={
                    "Location": "The run's path.",
                    "Idempotency-Replayed": "`true` if an earlier request with the same key started the run.",
                },
            )
        },
        request_headers={
            "Idempotency-Key": "Makes a retry safe: the same key with the same request gives the same run."
        },
        problems=[400, 404, 409, 410, 422],
    ),
)
async def start_export_run(request: ApiRequest, export: ExportId) -> Response[Any]:
    """Exports what there is from where the export stopped to the head.

    A run that is under way is answered instead, and one that failed is made again. Where there is no change, the run
    has no rows.
    """
    services = services_of(request)
    key = idempotency_key(request.headers)
    found = await services.threads.run(services.exports.get, tenant_of(request), export)
    with services.in_flight.reserved(found.tenant_id, found.dataset_id, key):
        started = await services.threads.run(services.exports.start, found, key, actor=actor_of(request))
    headers = {"Location": run_path(started.run), "Retry-After": "1"}
    if started.replayed:
        headers["Idempotency-Replayed"] = "true"
    return Response(encode(run_summary(started.run)), status_code=202, media_type=JSON, headers=headers)


@get(
    "/exports/{export:str}/runs",
    operation_id="list_export_runs",
    summary="List the runs of an export",
    tags=TAGS,
    opt=documented(
        {200: Answer(description="A page, the latest first.", content={JSON: ExportRunPage})},
        problems=[400, 404],
    ),
)
async def list_export_runs(
    request: ApiRequest, export: ExportId, page_size: PageSize = 100, page_token: PageToken = None
) -> Response[Any]:
    """Every run, also those that failed."""
    services = services_of(request)
    page = await services.threads.run(
        services.exports.runs, tenant_of(request), export, page_size=page_size, page_token=page_token
    )
    items = [run_summary(run) for run in page.items]
    return Response(encode(ExportRunPage(items=items, next_page_token=page.next_token)), media_type=JSON)


@get(
    "/exports/{export:str}/runs/{number:int}",
    operation_id="get_export_run",
    summary="Get the manifest of a run",
    tags=TAGS,
    opt=documented(
        {200: Answer(description="The run.", content={JSON: ExportRunResponse})}, problems=[400, 404]
    ),
)
async def get_export_run(request: ApiRequest, export: ExportId, number: RunNumber) -> Response[Any]:
    """A run, and its manifest: what it has written. Before it has succeeded, `files` is empty."""
    services = services_of(request)
    found = await services.threads.run(services.exports.get, tenant_of(request), export)
    run = await services.threads.run(services.exports.run, found.tenant_id, found.id, number)
    return Response(encode(run_response(found, run)), media_type=JSON)


def _definition(new: NewExport) -> ExportDefinition:
    """Raises InvalidRequest."""
    if new.query is ExportQuery.INCREMENTAL and new.form is not msgspec.UNSET:
        detail = "only query changes has forms; remove it"
        raise InvalidRequest(f"/form: {detail}", [FieldError(pointer="/form", detail=detail)])
    return ExportDefinition(
        name=new.name,
        query=new.query,
        format=new.format,
        form=ChangeForm.TWO_EVENT if isinstance(new.form, msgspec.UnsetType) else new.form,
        columns=None if new.columns is None else tuple(new.columns),
        where=new.where,
        partitions=None if new.partitions is None else tuple(new.partitions),
        since=0,
        until=new.until,
        schedule=new.schedule,
        target_bytes=new.target_bytes,
        max_lag=new.max_lag,
    )


def _answer(export: Export, *, status: int = 200, location: str | None = None) -> Response[Any]:
    headers = {"ETag": etag(export.revision), **({} if location is None else {"Location": location})}
    return Response(encode(export_response(export)), status_code=status, media_type=JSON, headers=headers)
