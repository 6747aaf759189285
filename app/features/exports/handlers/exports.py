"""Exports: create, find, change, run, delete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from litestar import delete, get, patch, post
from litestar.params import JSONBody

from app.access.tenants.values import KeyScope, Principal
from app.core.catalog.service import GrantedDatasets
from app.core.catalog.values import Dataset
from app.core.idempotency.providers import Idempotency
from app.features.exports.schemas import (
    CreateExport,
    ExportId,
    ExportPage,
    ExportResponse,
    ExportRunPage,
    ExportRunResponse,
    ExportRunSummary,
    ListAllExportsOptions,
    ListExportRunsOptions,
    ListExportsOptions,
    RunNumber,
    UpdateExport,
    export_change,
    export_definition,
    export_path,
    export_response,
    export_start,
    run_path,
    run_response,
    run_summary,
)
from app.features.exports.service.exports import ManageExports
from app.http.auth import needs, refuse_suspended
from app.http.dependencies import Provided
from app.http.in_flight import InFlight
from app.http.json_body import require_member
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import documented
from app.http.parameters.headers import etag
from app.http.response import ApiResponse, Tagged
from app.kernel.sql.conditions.row_access import RowAccess

_TAGS: Final = ["exports"]
_BODY_BYTES_MAX: Final = 256 * 1024


class AcceptedExport(ApiResponse[ExportResponse]):
    """202 with an export whose first run is queued."""

    header_descriptions: ClassVar[Mapping[str, str]] = {
        "Location": "The path of the export.",
        "ETag": "The revision of the resource, quoted.",
    }


class AcceptedRun(ApiResponse[ExportRunSummary]):
    """202 with a run that is queued, unless it has already ended."""

    header_descriptions: ClassVar[Mapping[str, str]] = {
        "Location": "The path of the run.",
        "Retry-After": "Seconds after which to poll the run.",
        "Idempotency-Replayed": "`true` if an earlier request with the same key started the run.",
    }


@post(
    "/datasets/{dataset:str}/exports",
    operation_id="create_export",
    summary="Create an export",
    tags=_TAGS,
    status_code=202,
    request_max_body_size=_BODY_BYTES_MAX,
    opt=needs(KeyScope.READ, in_part=True) | documented(problems=[409, 410, 422]),
)
async def create_export(
    data: JSONBody[CreateExport],
    path_dataset: Provided[Dataset],
    access: Provided[RowAccess],
    exports: Provided[ManageExports],
    granted_datasets: Provided[GrantedDatasets],
    principal: Provided[Principal],
    idempotency: Provided[Idempotency],
) -> AcceptedExport:
    """Writes a range of the feed to files: its changes, or the rows that the changed keys have at its end.

    An export with a schedule that has nothing to write yet waits for the first change. It needs the scope `manage`,
    too.
    """
    if data.schedule is not None:
        granted_datasets.manage(path_dataset)
        refuse_suspended(principal, KeyScope.MANAGE)
    definition, start = export_definition(data, access), export_start(data)

    def create() -> AcceptedExport:
        export = exports.create(path_dataset, definition, start, actor=principal.actor)
        headers = {"Location": export_path(export.id), "ETag": etag(export.revision)}
        return AcceptedExport(export_response(export), status_code=202, headers=headers)

    return await idempotency.run(create, dataset_id=path_dataset.id)


@get(
    "/datasets/{dataset:str}/exports",
    operation_id="list_exports",
    summary="List exports",
    tags=_TAGS,
    opt=needs(KeyScope.READ, in_part=True),
)
async def list_exports(
    options: Provided[ListExportsOptions],
    path_dataset: Provided[Dataset],
    access: Provided[RowAccess],
    exports: Provided[ManageExports],
    threads: Provided[Threads],
) -> ExportPage:
    """Lists the exports of a dataset, also those that have ended."""
    page = await threads.run(
        exports.list, path_dataset, access, page_size=options.page_size, page_token=options.page_token
    )
    return ExportPage(items=[export_response(each) for each in page.items], next_page_token=page.next_token)


@get(
    "/exports",
    operation_id="list_all_exports",
    summary="List the exports of all datasets",
    tags=_TAGS,
    opt=needs(KeyScope.READ) | documented(problems=[404]),
)
async def list_all_exports(
    options: Provided[ListAllExportsOptions],
    exports: Provided[ManageExports],
    granted_datasets: Provided[GrantedDatasets],
    threads: Provided[Threads],
) -> ExportPage:
    """Lists the exports of the datasets that the key may read, also those that have ended."""
    page = await threads.run(
        exports.list_granted,
        granted_datasets,
        options.dataset,
        options.state,
        page_size=options.page_size,
        page_token=options.page_token,
    )
    return ExportPage(items=[export_response(each) for each in page.items], next_page_token=page.next_token)


@get(
    "/exports/{export:str}",
    operation_id="get_export",
    summary="Get an export",
    tags=_TAGS,
    opt=needs(KeyScope.READ, in_part=True),
)
async def get_export(
    export: ExportId,
    exports: Provided[ManageExports],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> Tagged[ExportResponse]:
    """Returns an export with its latest runs. `offset` is where the next run starts."""
    current = await threads.run(exports.get, principal.tenant_id, export)
    return Tagged(export_response(current), revision=current.revision)


@patch(
    "/exports/{export:str}",
    operation_id="change_export",
    summary="Pause or resume an export, or change its schedule",
    tags=_TAGS,
    opt=needs(KeyScope.MANAGE, in_part=True) | documented(problems=[409, 410]),
)
async def change_export(
    export: ExportId,
    data: JSONBody[UpdateExport],
    required_if_match_revision: Provided[int],
    exports: Provided[ManageExports],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> Tagged[ExportResponse]:
    """Pauses an export, resumes it, or changes its schedule. A run that is queued or running is not affected."""
    require_member(data)
    change = export_change(data, required_if_match_revision)
    current = await threads.run(exports.change, principal.tenant_id, export, change)
    return Tagged(export_response(current), revision=current.revision)


@delete(
    "/exports/{export:str}",
    operation_id="delete_export",
    summary="Delete an export",
    tags=_TAGS,
    opt=needs(KeyScope.MANAGE, in_part=True)
    | documented(description="The export, its runs and their files are deleted."),
)
async def delete_export(
    export: ExportId,
    exports: Provided[ManageExports],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> None:
    """Ends an export, cancels its unfinished run, and deletes its runs with their files."""
    await threads.run(exports.delete, principal.tenant_id, export)


@post(
    "/exports/{export:str}/runs",
    operation_id="start_export_run",
    summary="Run an export now",
    tags=_TAGS,
    status_code=202,
    opt=needs(KeyScope.MANAGE, in_part=True) | documented(problems=[410]),
)
async def start_export_run(
    export: ExportId,
    idempotency_key: Provided[str | None],
    exports: Provided[ManageExports],
    principal: Provided[Principal],
    in_flight: Provided[InFlight],
    threads: Provided[Threads],
) -> AcceptedRun:
    """Exports the changes from where the export stopped to the head.

    If a run is unfinished, it is returned instead, and one that failed is repeated. Without a change, the run has no
    rows.
    """
    current = await threads.run(exports.get, principal.tenant_id, export)
    with in_flight.reserved(current.tenant_id, current.dataset_id, idempotency_key):
        outcome = await threads.run(exports.start, current, idempotency_key, actor=principal.actor)
    headers = {"Location": run_path(outcome.run), "Retry-After": "1"}
    if outcome.is_replay:
        headers["Idempotency-Replayed"] = "true"
    return AcceptedRun(run_summary(outcome.run), status_code=202, headers=headers)


@get(
    "/exports/{export:str}/runs",
    operation_id="list_export_runs",
    summary="List the runs of an export",
    tags=_TAGS,
    opt=needs(KeyScope.READ, in_part=True),
)
async def list_export_runs(
    export: ExportId,
    options: Provided[ListExportRunsOptions],
    exports: Provided[ManageExports],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> ExportRunPage:
    """Lists all runs, also those that failed."""
    page = await threads.run(
        exports.runs,
        principal.tenant_id,
        export,
        page_size=options.page_size,
        page_token=options.page_token,
    )
    return ExportRunPage(items=[run_summary(each) for each in page.items], next_page_token=page.next_token)


@get(
    "/exports/{export:str}/runs/{number:int}",
    operation_id="get_export_run",
    summary="Get a run of an export with its manifest",
    tags=_TAGS,
    opt=needs(KeyScope.READ, in_part=True) | documented(problems=[400]),
)
async def get_export_run(
    export: ExportId,
    number: RunNumber,
    exports: Provided[ManageExports],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> ExportRunResponse:
    """Returns a run with its manifest, the list of the files that it has written."""
    current = await threads.run(exports.get, principal.tenant_id, export)
    run = await threads.run(exports.run, current.tenant_id, current.id, number)
    return run_response(current, run)
