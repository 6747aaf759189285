"""Exports: their definitions and schedules, their runs, and the manifests of these."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Annotated, Final

import msgspec

from app.core.changes.positions import FeedStart
from app.core.consumers.values import MaxLag
from app.core.jobs.values import Claim, Job, JobState, RequestKey
from app.features.exports.tasks import ExportFormat, ExportQuery
from app.kernel.changelog.delivery_forms import ChangeForm
from app.kernel.format.result_file import RunFile
from app.kernel.format.schema.schema import Field
from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess

RUNS_SHOWN: Final = 5
MANIFEST_NAME: Final = "manifest.json"
EVERY_SECONDS_MIN: Final = 10
CRON_CHARACTERS_MAX: Final = 200
DESTINATION: Final = msgspec.Meta(max_length=2_000, examples=["s3://warehouse/orders"])
_EVERY: Final = msgspec.Meta(ge=EVERY_SECONDS_MIN, le=366 * 86_400, examples=[3_600])


class Schedule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """When an export runs, if there is something new: at an interval, or at times of day. One of the two is set."""

    every_seconds: Annotated[int, _EVERY] | None = None
    """Seconds from the start of one run to the next."""
    cron: Annotated[str, msgspec.Meta(examples=["0 6 * * 1-5"])] | None = None
    """Times as a cron expression of five fields: minute, hour, day of the month, month, day of the week."""
    zone: Annotated[str, msgspec.Meta(examples=["Europe/Berlin"])] | None = None
    """Beside `cron`: the time zone of its times, by its name in the IANA database; UTC by default."""


class ExportDefinition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an export writes. `since`, `until`: its range of positions; None for no end.

    `form`: the form of changes. `columns`: None for all. `where`: a filter on rows. `partitions`: globs, one of which a
    row's partition must match. Without a `schedule` it runs on request only. `max_lag`: how far behind the head it may
    be and still keep the changes that it has not written. `access`: what the key that created it may see. `meta`:
    whether rows have the meta columns. `corrected_since`: whether rows are marked that later changes have corrected.
    `destination`: the URI of a folder to which the files are copied, too. `version`: of a snapshot, the version that it
    has; None for the latest version at each run.
    """

    name: str | None
    query: ExportQuery
    format: ExportFormat
    form: ChangeForm
    columns: tuple[str, ...] | None
    where: str | None
    partitions: tuple[str, ...] | None
    since: int
    until: int | None
    schedule: Schedule | None
    target_bytes: int
    max_lag: MaxLag | None = None
    access: RowAccess = EVERYTHING
    meta: bool = False
    corrected_since: bool = False
    destination: str | None = None
    version: int | None = None

    @property
    def with_sources(self) -> bool:
        """Whether rows need what only files of the table have: the version and the change that gave them their
        values.
        """
        return self.meta or self.corrected_since


class ExportState(str, Enum):
    """`active` exports keep the feed after their position. So do `paused` ones, whose schedule does not start runs.

    `ended` exports have reached their end, or have no schedule and have run: only their files are kept.
    """

    ACTIVE = "active"
    PAUSED = "paused"
    ENDED = "ended"


class Offsets(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The changes [since, next_since)."""

    since: int
    next_since: int


class Versions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The versions of the first and of the last change of a range."""

    first: Annotated[int, msgspec.Meta(examples=[5])]
    """The version of the first change."""
    last: Annotated[int, msgspec.Meta(examples=[7])]
    """The version of the last change."""


class ManifestSchema(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The schema of the dataset under which rows are written."""

    id: Annotated[int, msgspec.Meta(examples=[1])]
    """Its id."""
    fields: tuple[Field, ...]
    """Its columns."""


class ManifestFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file of a run."""

    name: Annotated[str, msgspec.Meta(examples=["part-00000-00000.parquet"])]
    """Its name."""
    rows: Annotated[int, msgspec.Meta(examples=[25])]
    """How many rows it has."""
    size_bytes: Annotated[int, msgspec.Meta(examples=[18_432])]
    """Its size."""
    checksum: Annotated[str, msgspec.Meta(examples=["xxh3-128:99aa06d3014798d86001c324468d497f"])]
    """`xxh3-128:` and the digest in hexadecimal."""
    sha256: Annotated[
        str, msgspec.Meta(examples=["e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"])
    ]
    """Its SHA-256 in hexadecimal."""
    first_offset: int | None
    """Of changes: the position from which the file has all that is exported; null of rows."""
    next_offset: Annotated[int, msgspec.Meta(examples=[145])] | None
    """Of changes: the position up to which it has all; null of rows."""


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a run has written. `form`: null for rows. `versions`: null for an empty range. `version`: of a snapshot, the
    version of its rows.
    """

    export_id: str
    number: int
    dataset: str
    dataset_name: str
    query: ExportQuery
    form: ChangeForm | None
    format: ExportFormat
    offsets: Offsets
    versions: Versions | None
    schema: ManifestSchema
    files: tuple[ManifestFile, ...]
    rows: int
    created_at: datetime
    version: int | None = None


class ExportRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of an export, numbered from 1: the changes [since, until), and its latest job.

    `version`: of a snapshot, the version to write; its rows are those that all changes before `until` result in.
    `manifest`: what it has written; None in lists.
    """

    export_id: str
    number: int
    since: int
    until: int
    job: Job
    created_at: datetime
    manifest: Manifest | None = None
    version: int | None = None


def run_destination(destination: str, export_id: str, number: int) -> str:
    """The folder of a run, below the destination of its export."""
    return f"{destination.rstrip('/')}/{export_id}/run-{number:06d}"


class Export(msgspec.Struct, frozen=True, kw_only=True):
    """An export as users see it. `offset` is where the next run starts; `runs` are the latest, the last one first.

    `revision` counts its changes from 1. `planned_at`: the times of its cron schedule up to this one are done; None if
    it was not planned yet.
    """

    id: str
    tenant_id: str
    dataset_id: str
    dataset_name: str
    definition: ExportDefinition
    state: ExportState
    offset: int
    revision: int
    runs: tuple[ExportRun, ...]
    created_at: datetime
    planned_at: datetime | None = None

    @property
    def last_failed(self) -> ExportRun | None:
        """The last run, if it failed."""
        return self.runs[0] if self.runs and self.runs[0].job.state is JobState.FAILED else None


class NewExport(msgspec.Struct, frozen=True, kw_only=True):
    """An export to add, with the id of the job of its first run. `start` gives the definition its `since`.

    `schema_id`: the schema that the definition was checked against.
    """

    id: str
    dataset_id: str
    schema_id: int
    definition: ExportDefinition
    start: FeedStart
    job_id: str
    actor: str | None = None


class ExportChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change of an export, which must still be at `revision`."""

    revision: int
    state: ExportState | msgspec.UnsetType
    schedule: Schedule | msgspec.UnsetType | None


class NewRun(RequestKey, frozen=True, kw_only=True):
    """A run to start, with the id of its job. `actor`: None for a run that the schedule starts."""

    job_id: str


class StartedRun(msgspec.Struct, frozen=True, kw_only=True):
    """The run of a request; `is_replay` if an earlier one with the same idempotency key started it."""

    run: ExportRun
    is_replay: bool


class FinishedRun(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a claimed job for a run: the files of `manifest`, and the manifest as a file of its own, which is
    the last one.
    """

    claim: Claim
    manifest: Manifest
    files: tuple[RunFile, ...]
