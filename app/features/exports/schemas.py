"""The JSON of exports and of their runs: what requests send and what responses hold."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final, TypeAlias
from urllib.parse import quote

import msgspec
from litestar.params import PathParameter

from app.core.changes.position_parameters import Offset, Position, SinceTime, SinceVersion, start_of
from app.core.changes.positions import FeedStart, StartingPosition
from app.core.consumers.values import MaxLag
from app.core.jobs.values import JobState
from app.features.exports.schedules import check_schedule, next_times
from app.features.exports.service.exports import AtVersion
from app.features.exports.tasks import TARGET_BYTES_MAX, TARGET_BYTES_MIN, ExportFormat, ExportQuery
from app.features.exports.values import (
    DESTINATION,
    Export,
    ExportChange,
    ExportDefinition,
    ExportRun,
    ExportState,
    ManifestFile,
    ManifestSchema,
    Schedule,
    Versions,
    run_destination,
)
from app.http.encoding import PROBLEM
from app.http.parameters.page_options import PageOptions
from app.http.parameters.query_parameters import INT64_MAX
from app.http.parameters.resource_names import DatasetIdentity
from app.http.problems import fault_document
from app.kernel.changelog.delivery_forms import ChangeForm
from app.kernel.format.definition.settings import DEFAULT_TARGET_BYTES
from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.identifiers import PATTERN_END
from app.kernel.format.member_errors import EXPECTED
from app.kernel.sql.conditions.row_access import RowAccess

_PATH: Final = "/exports/01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2"
_FILE: Final = "part-00000-00000.parquet"
_TARGET: Final = msgspec.Meta(ge=TARGET_BYTES_MIN, le=TARGET_BYTES_MAX)
_NAME: Final = msgspec.Meta(
    min_length=1,
    max_length=200,
    pattern=rf"^[^\x00-\x1f]*{PATTERN_END}",
    examples=["Orders for the warehouse"],
    extra_json_schema={EXPECTED: "a string of 1–200 characters without control characters"},
)
_OF_RANGES: Final = ("since", "since_version", "since_time", "until", "max_lag")
_OF_VERSIONS: Final = ("version", "as_of", "tag")
_RUNS_AHEAD: Final = 3
_Version: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=INT64_MAX)]
_RunPath = Annotated[str, msgspec.Meta(examples=[f"{_PATH}/runs/1"])]


ExportId: TypeAlias = Annotated[str, PathParameter(description="The id of an export.")]
RunNumber: TypeAlias = Annotated[
    int, PathParameter(ge=1, le=INT64_MAX, description="The number of a run, from 1.")
]


class CreateExport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An export to create.

    It goes from its start to `until`, or to the head at the time when a run is accepted. With a `schedule` it continues
    where it stopped; without, it runs once, and again on request. At most one of `since`, `since_version` and
    `since_time` is set; the default is `earliest`. A snapshot has no such range: each run has the whole table.
    """

    query: ExportQuery
    """What is exported: the changes, the latest rows of the keys that changed, or all rows of the table."""
    format: ExportFormat
    """The format of the files."""
    form: ChangeForm | msgspec.UnsetType = msgspec.UNSET
    """The form of the changes; only with query `changes`."""
    meta: bool = False
    """Whether rows have the five meta columns, as rows of pages; not with query `changes`."""
    corrected_since: bool = False
    """Whether rows have two columns that show what has corrected each since the end of the range, as rows of pages;
    not with query `changes`.
    """
    columns: Annotated[list[str], msgspec.Meta(min_length=1)] | None = None
    """The columns of the rows; all by default."""
    where: str | None = None
    """A condition: the rows for which it is true."""
    partitions: Annotated[list[str], msgspec.Meta(min_length=1)] | None = None
    """Globs of partition paths: the rows of partitions that match one."""
    since: Position | None = None
    """The position to start at."""
    since_version: SinceVersion | None = None
    """Starts at the first change that was committed at this version or later."""
    since_time: SinceTime | None = None
    """Starts at the first change that was committed at this time or later."""
    until: Offset | None = None
    """The position to end at; none by default."""
    version: _Version | None = None
    """Only with query `snapshot`, and without a schedule: the version to export; by default the latest."""
    as_of: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    """A time instead of `version`: the last version committed by then."""
    tag: str | None = None
    """The name of a tag or savepoint instead of `version`: the version that has it."""
    schedule: Schedule | None = None
    """When the export runs by itself."""
    target_bytes: Annotated[int, _TARGET] = DEFAULT_TARGET_BYTES
    """The size at which a file is ended."""
    name: Annotated[str, _NAME] | None = None
    """A name for its users."""
    max_lag: MaxLag | None = None
    """How far behind the head the export may be and still keep the changes that it has not written."""
    destination: Annotated[str, DESTINATION] | None = None
    """A folder to which the files of each run are copied, too: `s3://bucket/prefix` or `file:///folder`, below one of
    those that the operator has named.
    """


class UpdateExport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The members of an export to change; a member that is left out keeps its value."""

    state: ExportState | msgspec.UnsetType = msgspec.UNSET
    """`paused` to stop the export from running by itself, `active` to resume it."""
    schedule: Schedule | msgspec.UnsetType | None = msgspec.UNSET
    """When the export runs by itself; null for not at all, with which it ends."""


class RunLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """The paths of a run's resources."""

    self_: _RunPath
    """The run."""
    export: Annotated[str, msgspec.Meta(examples=[_PATH])]
    """Its export."""
    job: Annotated[str, msgspec.Meta(examples=["/jobs/01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2"])]
    """Its job."""
    manifest: Annotated[str, msgspec.Meta(examples=[f"{_PATH}/runs/1/files/manifest.json"])]
    """The manifest as a file; there once the run has succeeded."""


class ExportRunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A run of an export, as lists have it. What it has written is null before it has succeeded."""

    number: Annotated[int, msgspec.Meta(examples=[1])]
    """Its number, from 1."""
    state: JobState
    """The state of its job."""
    since: int
    """The position of its first change."""
    until: Annotated[int, msgspec.Meta(examples=[145])]
    """The position to which it goes."""
    version: Annotated[int, msgspec.Meta(examples=[7])] | None
    """Of a snapshot: the version of its rows, which all changes before `until` result in; null for a range."""
    next_since: int | None
    """The position to which it went; one less than `until` where that would split an update."""
    rows: Annotated[int, msgspec.Meta(examples=[25])] | None
    """How many rows it has written."""
    file_count: Annotated[int, msgspec.Meta(examples=[1])] | None
    """How many files it has written."""
    size_bytes: Annotated[int, msgspec.Meta(examples=[18_432])] | None
    """The size of its files together."""
    job_id: str
    """The id of its job."""
    error: Annotated[dict[str, Any], PROBLEM] | None
    """Why it failed; null if it did not."""
    created_at: datetime
    """When it was created."""
    links: RunLinks
    """The paths of its resources."""


class ExportRunPage(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of an export, the latest first."""

    items: list[ExportRunSummary]
    """The runs of this page."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class ExportLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """The paths of an export's resources."""

    self_: Annotated[str, msgspec.Meta(examples=[_PATH])]
    """The export."""
    runs: Annotated[str, msgspec.Meta(examples=[f"{_PATH}/runs"])]
    """Its runs."""
    dataset: Annotated[str, msgspec.Meta(examples=["/datasets/01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d3"])]
    """Its dataset."""


class ExportResponse(msgspec.Struct, frozen=True, kw_only=True):
    """An export."""

    id: str
    """Its id."""
    dataset: DatasetIdentity
    """The dataset that is exported."""
    name: str | None
    """A name for its users."""
    query: ExportQuery
    """What is exported."""
    format: ExportFormat
    """The format of the files."""
    form: ChangeForm | None
    """The form of the changes; null where rows are exported."""
    meta: bool
    """Whether rows have the five meta columns."""
    corrected_since: bool
    """Whether rows have two columns that show what has corrected each since."""
    columns: list[str] | None
    """The columns of the rows; null for all."""
    where: str | None
    """The condition that rows must match; null for none."""
    partitions: list[str] | None
    """Globs of the partitions that are exported; null for all."""
    since: int
    """The position at which it started."""
    until: int | None
    """The position at which it ends; null for none."""
    version: Annotated[int, msgspec.Meta(examples=[7])] | None
    """Of a snapshot of one version: the version; null for the latest at each run, and for ranges."""
    schedule: Schedule | None
    """When it runs by itself; null for not at all."""
    next_runs: list[datetime]
    """The next times of its schedule; empty without a schedule, and unless it is `active`. A time at which there is
    nothing new makes no run.
    """
    target_bytes: Annotated[int, msgspec.Meta(examples=[DEFAULT_TARGET_BYTES])]
    """The size at which a file is ended."""
    max_lag: MaxLag | None
    """How far behind the head it may be and still keep the changes that it has not written; null for no limit."""
    destination: str | None
    """The folder to which the files are copied; null for none."""
    state: ExportState
    """`active`, `paused`, or `ended`."""
    offset: int | None
    """The position at which its next run starts; null for a snapshot without a run that has succeeded."""
    error: Annotated[dict[str, Any], PROBLEM] | None
    """Why its last run failed; null if it did not."""
    runs: list[ExportRunSummary]
    """Its latest runs, the last one first."""
    created_at: datetime
    """When it was created."""
    links: ExportLinks
    """The paths of its resources."""


class ExportPage(msgspec.Struct, frozen=True, kw_only=True):
    """Exports, the latest first."""

    items: list[ExportResponse]
    """The exports of this page."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class RunOffsets(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of a run."""

    since: int
    """The position of the first change."""
    next_since: int | None
    """The position after the last change; null before the run has succeeded."""


class FileLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """The path of a file."""

    self_: Annotated[str, msgspec.Meta(examples=[f"{_PATH}/runs/1/files/{_FILE}"])]
    """The file."""


class ExportFileResponse(ManifestFile, frozen=True, kw_only=True):
    """A file of a run."""

    links: FileLinks
    """Its path."""


class ExportRunResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A run of an export with its manifest, the list of the files that it has written."""

    export_id: str
    """The id of the export."""
    number: Annotated[int, msgspec.Meta(examples=[1])]
    """Its number, from 1."""
    state: JobState
    """The state of its job."""
    job_id: str
    """The id of its job."""
    error: Annotated[dict[str, Any], PROBLEM] | None
    """Why it failed; null if it did not."""
    dataset: DatasetIdentity
    """The dataset that is exported."""
    query: ExportQuery
    """What is exported."""
    form: ChangeForm | None
    """The form of the changes; null where rows are exported."""
    format: ExportFormat
    """The format of the files."""
    offsets: RunOffsets
    """The changes of the run."""
    versions: Versions | None
    """The versions of its first and its last change; null without changes."""
    version: Annotated[int, msgspec.Meta(examples=[7])] | None
    """Of a snapshot: the version of its rows; null for a range."""
    schema: ManifestSchema | None
    """The schema of the rows; null before the run has succeeded."""
    files: list[ExportFileResponse]
    """The files that it has written; none before it has succeeded."""
    file_count: Annotated[int, msgspec.Meta(examples=[1])] | None
    """How many files it has written; null before it has succeeded."""
    rows: Annotated[int, msgspec.Meta(examples=[25])] | None
    """How many rows it has written; null before it has succeeded."""
    destination: str | None
    """The folder with copies of the files and the manifest; null before the run has succeeded, and for none."""
    created_at: datetime | None
    """When the manifest was written; null before the run has succeeded."""
    links: RunLinks
    """The paths of its resources."""


class ListExportsOptions(PageOptions, frozen=True, kw_only=True):
    """The options of `list_exports`."""


class ListAllExportsOptions(PageOptions, frozen=True, kw_only=True):
    """The options of `list_all_exports`."""

    dataset: str | None = None
    """The id or the name of a dataset: its exports only."""
    state: ExportState | None = None
    """The exports in this state only."""


class ListExportRunsOptions(PageOptions, frozen=True, kw_only=True):
    """The options of `list_export_runs`."""


def export_definition(data: CreateExport, access: RowAccess) -> ExportDefinition:
    """What a request exports for a key with this access. Raises InvalidRequest."""
    if data.schedule is not None:
        check_schedule(data.schedule)
    _check_members(data)
    if data.query is not ExportQuery.CHANGES and data.form is not msgspec.UNSET:
        detail = "only query `changes` has a form; remove it"
        raise InvalidRequest(f"form: {detail}", [FieldError(pointer="/form", detail=detail)])
    of_rows = {"meta": data.meta, "corrected_since": data.corrected_since}
    for member in [name for name, is_set in of_rows.items() if is_set]:
        if data.query is ExportQuery.CHANGES:
            detail = "only for rows (query `incremental` or `snapshot`); remove it"
            raise InvalidRequest(f"{member}: {detail}", [FieldError(pointer=f"/{member}", detail=detail)])
    return ExportDefinition(
        name=data.name,
        query=data.query,
        format=data.format,
        form=ChangeForm.TWO_EVENT if isinstance(data.form, msgspec.UnsetType) else data.form,
        columns=None if data.columns is None else tuple(data.columns),
        where=data.where,
        partitions=None if data.partitions is None else tuple(data.partitions),
        since=0,
        until=data.until,
        schedule=data.schedule,
        target_bytes=data.target_bytes,
        max_lag=data.max_lag,
        access=access,
        meta=data.meta,
        corrected_since=data.corrected_since,
        destination=data.destination,
    )


def _check_members(data: CreateExport) -> None:
    """Raises InvalidRequest for members that do not fit the query."""
    snapshot = data.query is ExportQuery.SNAPSHOT
    names: Sequence[str] = _OF_RANGES if snapshot else _OF_VERSIONS
    reason = "only for query `snapshot`"
    if snapshot:
        reason = "query `snapshot` has the whole table, not a range of changes"
    extra = [name for name in names if getattr(data, name) is not None]
    if not extra and data.schedule is not None:
        extra = [name for name in _OF_VERSIONS if getattr(data, name) is not None]
        reason = "a schedule exports the latest version at each run"
    if extra:
        raise InvalidRequest(
            f"{extra[0]}: {reason}; remove it",
            [FieldError(pointer=f"/{name}", detail=f"{reason}; remove it") for name in extra],
        )


def export_start(data: CreateExport) -> FeedStart | AtVersion:
    """Where an export starts, or the version that a snapshot has. Raises InvalidRequest."""
    if data.query is ExportQuery.SNAPSHOT:
        return AtVersion(version=data.version, as_of=data.as_of, tag=data.tag)
    start = start_of(data.since, data.since_version, data.since_time)
    return StartingPosition.EARLIEST if start is None else start


def export_change(data: UpdateExport, revision: int) -> ExportChange:
    """The change that a request makes. Raises InvalidRequest."""
    if data.state is ExportState.ENDED:
        detail = "expected `active` or `paused`; DELETE ends an export"
        raise InvalidRequest(f"state: {detail}", [FieldError(pointer="/state", detail=detail)])
    if isinstance(data.schedule, Schedule):
        check_schedule(data.schedule)
    return ExportChange(revision=revision, state=data.state, schedule=data.schedule)


def export_path(export_id: str) -> str:
    """The path of an export's resource."""
    return f"/exports/{export_id}"


def run_path(run: ExportRun) -> str:
    """The path of a run's resource."""
    return f"{export_path(run.export_id)}/runs/{run.number}"


def export_response(export: Export) -> ExportResponse:
    """The JSON of an export."""
    definition = export.definition
    path = export_path(export.id)
    failed_run = export.last_failed
    return ExportResponse(
        id=export.id,
        dataset=_dataset(export),
        name=definition.name,
        query=definition.query,
        format=definition.format,
        form=_form(export),
        meta=definition.meta,
        corrected_since=definition.corrected_since,
        columns=None if definition.columns is None else list(definition.columns),
        where=definition.where,
        partitions=None if definition.partitions is None else list(definition.partitions),
        since=definition.since,
        until=definition.until,
        version=definition.version,
        schedule=definition.schedule,
        next_runs=_next_runs(export),
        target_bytes=definition.target_bytes,
        max_lag=definition.max_lag,
        destination=definition.destination,
        state=export.state,
        offset=_offset(export),
        error=None if failed_run is None else _error(failed_run),
        runs=[run_summary(run) for run in export.runs],
        created_at=export.created_at,
        links=ExportLinks(self_=path, runs=f"{path}/runs", dataset=f"/datasets/{export.dataset_id}"),
    )


def _offset(export: Export) -> int | None:
    """A snapshot has no position before its first one was written."""
    has_rows = any(run.job.state is JobState.SUCCEEDED for run in export.runs)
    earlier = bool(export.runs) and export.runs[-1].number > 1
    snapshot = export.definition.query is ExportQuery.SNAPSHOT
    return None if snapshot and not has_rows and not earlier else export.offset


def _next_runs(export: Export) -> list[datetime]:
    schedule = export.definition.schedule
    if schedule is None or export.state is not ExportState.ACTIVE:
        return []
    last_start = export.runs[0].job.created_at if export.runs else None
    return next_times(schedule, last_start, datetime.now(UTC), _RUNS_AHEAD)


def run_summary(run: ExportRun) -> ExportRunSummary:
    """The JSON of a run in a list."""
    result = run.job.result or {}
    return ExportRunSummary(
        number=run.number,
        state=run.job.state,
        since=run.since,
        until=run.until,
        version=run.version,
        next_since=result.get("next_since"),
        rows=result.get("rows"),
        file_count=result.get("files"),
        size_bytes=result.get("size_bytes"),
        job_id=run.job.id,
        error=_error(run),
        created_at=run.created_at,
        links=_links(run),
    )


def run_response(export: Export, run: ExportRun) -> ExportRunResponse:
    """The JSON of a run with its manifest."""
    # Files that are not in their destination yet belong to no run that has succeeded.
    manifest = run.manifest if run.job.state is JobState.SUCCEEDED else None
    destination = None if manifest is None else export.definition.destination
    return ExportRunResponse(
        export_id=run.export_id,
        number=run.number,
        state=run.job.state,
        job_id=run.job.id,
        error=_error(run),
        dataset=_dataset(export),
        query=export.definition.query,
        form=_form(export),
        format=export.definition.format,
        offsets=RunOffsets(
            since=run.since, next_since=None if manifest is None else manifest.offsets.next_since
        ),
        versions=None if manifest is None else manifest.versions,
        version=run.version if manifest is None else manifest.version,
        schema=None if manifest is None else manifest.schema,
        files=[] if manifest is None else [_file_response(run, file) for file in manifest.files],
        file_count=None if manifest is None else len(manifest.files),
        rows=None if manifest is None else manifest.rows,
        destination=None if destination is None else run_destination(destination, run.export_id, run.number),
        created_at=None if manifest is None else manifest.created_at,
        links=_links(run),
    )


def _dataset(export: Export) -> DatasetIdentity:
    return DatasetIdentity(id=export.dataset_id, name=export.dataset_name)


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
