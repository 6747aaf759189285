"""The JSON forms of exports and of their runs."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote

import msgspec

from app.changelog.forms import ChangeForm
from app.consumers.values import MaxLag
from app.exports.tasks import ExportFormat, ExportQuery
from app.exports.values import (
    Export,
    ExportRun,
    ExportState,
    ManifestFile,
    ManifestSchema,
    Schedule,
    Versions,
)
from app.http.encoding import PROBLEM
from app.http.problems import fault_document
from app.jobs.values import JobState


class RunLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """Where a run's resources are."""

    self_: str
    export: str
    job: str
    manifest: str


class ExportRunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A run: the changes from `since` up to `until`. `error` says why it failed.

    `next_since`, `rows`, `files` and `size_bytes` are those that it has written, null before.
    """

    number: int
    state: JobState
    since: int
    until: int
    next_since: int | None
    rows: int | None
    files: int | None
    size_bytes: int | None
    job_id: str
    error: Annotated[dict[str, Any], PROBLEM] | None
    created_at: datetime
    links: RunLinks


class ExportRunPage(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of an export, the latest first."""

    items: list[ExportRunSummary]
    next_page_token: str | None


class ExportLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """Where an export's resources are."""

    self_: str
    runs: str
    dataset: str


class ExportResponse(msgspec.Struct, frozen=True, kw_only=True):
    """An export of `dataset` (its id). `offset` is where its next run starts.

    `runs` are the latest, the last one first; `error` is that of the last one, if it failed.
    """

    id: str
    dataset: str
    name: str | None
    query: ExportQuery
    format: ExportFormat
    form: ChangeForm | None
    columns: list[str] | None
    where: str | None
    partitions: list[str] | None
    since: int
    until: int | None
    schedule: Schedule | None
    target_bytes: int
    max_lag: MaxLag | None
    state: ExportState
    offset: int
    error: Annotated[dict[str, Any], PROBLEM] | None
    runs: list[ExportRunSummary]
    created_at: datetime
    links: ExportLinks


class ExportPage(msgspec.Struct, frozen=True, kw_only=True):
    """Exports of a dataset, the latest first."""

    items: list[ExportResponse]
    next_page_token: str | None


class RunOffsets(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of a run: those from `since` up to `next_since`, which is null before it has succeeded."""

    since: int
    next_since: int | None


class FileLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """Where a file is."""

    self_: str


class ExportFileResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a run. `checksum` is `xxh3-128:` and the digest, `sha256` another; both hexadecimal.

    Of changes, `first_offset` and `next_offset` are the positions between which the file has all that was asked for.
    """

    name: str
    rows: int
    size_bytes: int
    checksum: str
    sha256: str
    first_offset: int | None
    next_offset: int | None
    links: FileLinks


class ExportRunResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A run with its manifest. `versions` are those of the first and of the last change, null if there was none.

    `schema`, `rows` and `created_at` are null before the run has succeeded.
    """

    export_id: str
    number: int
    state: JobState
    job_id: str
    error: Annotated[dict[str, Any], PROBLEM] | None
    dataset: str
    query: ExportQuery
    form: ChangeForm | None
    format: ExportFormat
    offsets: RunOffsets
    versions: Versions | None
    schema: ManifestSchema | None
    files: list[ExportFileResponse]
    rows: int | None
    created_at: datetime | None
    links: RunLinks


def export_path(export_id: str) -> str:
    """The path of an export's resource."""
    return f"/exports/{export_id}"


def run_path(run: ExportRun) -> str:
    """The path of a run's resource."""
    return f"{export_path(run.export_id)}/runs/{run.number}"


def export_response(export: Export) -> ExportResponse:
    """The JSON form of an export."""
    definition = export.definition
    path = export_path(export.id)
    failed = export.last_failed
    return ExportResponse(
        id=export.id,
        dataset=export.dataset_id,
        name=definition.name,
        query=definition.query,
        format=definition.format,
        form=_form(export),
        columns=None if definition.columns is None else list(definition.columns),
        where=definition.where,
        partitions=None if definition.partitions is None else list(definition.partitions),
        since=definition.since,
        until=definition.until,
        schedule=definition.schedule,
        target_bytes=definition.target_bytes,
        max_lag=definition.max_lag,
        state=export.state,
        offset=export.offset,
        error=None if failed is None else _error(failed),
        runs=[run_summary(run) for run in export.runs],
        created_at=export.created_at,
        links=ExportLinks(self_=path, runs=f"{path}/runs", dataset=f"/datasets/{export.dataset_id}"),
    )


def run_summary(run: ExportRun) -> ExportRunSummary:
    """The JSON form of a run in a listing."""
    written = run.job.result or {}
    return ExportRunSummary(
        number=run.number,
        state=run.job.state,
        since=run.since,
        until=run.until,
        next_since=written.get("next_since"),
        rows=written.get("rows"),
        files=written.get("files"),
        size_bytes=written.get("size_bytes"),
        job_id=run.job.id,
        error=_error(run),
        created_at=run.created_at,
        links=_links(run),
    )


def run_response(export: Export, run: ExportRun) -> ExportRunResponse:
    """The JSON form of a run by itself."""
    manifest = run.manifest
    return ExportRunResponse(
        export_id=run.export_id,
        number=run.number,
        state=run.job.state,
        job_id=run.job.id,
        error=_error(run),
        dataset=export.dataset_id,
        query=export.definition.query,
        form=_form(export),
        format=export.definition.format,
        offsets=RunOffsets(
            since=run.since, next_since=None if manifest is None else manifest.offsets.next_since
        ),
        versions=None if manifest is None else manifest.versions,
        schema=None if manifest is None else manifest.schema,
        files=[] if manifest is None else [_file_response(run, file) for file in manifest.files],
        rows=None if manifest is None else manifest.rows,
        created_at=None if manifest is None else manifest.created_at,
        links=_links(run),
    )


def _file_response(run: ExportRun, file: ManifestFile) -> ExportFileResponse:
    return ExportFileResponse(
        **msgspec.structs.asdict(file),
        links=FileLinks(self_=f"{run_path(run)}/files/{quote(file.name)}"),
    )


def _links(run: ExportRun) -> RunLinks:
    path = run_path(run)
    return RunLinks(
        self_=path,
        export=export_path(run.export_id),
        job=f"/jobs/{run.job.id}",
        manifest=f"{path}/files/manifest.json",
    )


def _form(export: Export) -> ChangeForm | None:
    definition = export.definition
    return definition.form if definition.query is ExportQuery.CHANGES else None


def _error(run: ExportRun) -> dict[str, Any] | None:
    return None if run.job.error is None else fault_document(run.job.error)
