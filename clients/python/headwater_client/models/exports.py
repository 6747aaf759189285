"""Values of exports. Generated from openapi/openapi.json by `make openapi`."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

from headwater_client.models.changes import ChangeForm
from headwater_client.models.consumers import MaxLag
from headwater_client.models.datasets import Field
from headwater_client.models.writes import DatasetIdentity

ExportFormat = Literal["parquet", "csv", "ndjson", "arrow"]
"""The file formats of exports."""


ExportQuery = Literal["changes", "incremental", "snapshot"]
"""What is exported: the changes of a range, the latest rows of the keys that changed in it, or all rows of a version.
"""


ExportState = Literal["active", "paused", "ended"]
"""`active` exports keep the feed after their position. So do `paused` ones, whose schedule does not start runs. `ended`
exports have reached their end, or have no schedule and have run: only their files are kept.
"""


class CreateExport(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"delivery_format": "form"}
):
    """An export to create. It goes from its start to `until`, or to the head at the time when a run is accepted. With a
    `schedule` it continues where it stopped; without, it runs once, and again on request. At most one of `since`,
    `since_version` and `since_time` is set; the default is `earliest`. A snapshot has no such range: each run has the
    whole table.
    """

    query: ExportQuery
    """What is exported: the changes, the latest rows of the keys that changed, or all rows of the table."""
    format: ExportFormat
    """The format of the files."""
    delivery_format: ChangeForm | None = None
    """The form of the changes; only with query `changes`."""
    meta: bool = False
    """Whether rows have the five meta columns, as rows of pages; not with query `changes`."""
    corrected_since: bool = False
    """Whether rows have two columns that show what has corrected each since the end of the range, as rows of pages; not
    with query `changes`.
    """
    columns: tuple[str, ...] | None = None
    """The columns of the rows; all by default."""
    where: str | None = None
    """A condition: the rows for which it is true."""
    partitions: tuple[str, ...] | None = None
    """Globs of partition paths: the rows of partitions that match one."""
    since: Position | None = None
    """The position to start at."""
    since_version: int | None = None
    """Starts at the first change that was committed at this version or later."""
    since_time: datetime | None = None
    """Starts at the first change that was committed at this time or later."""
    until: int | None = None
    """The position to end at; none by default."""
    version: int | None = None
    """Only with query `snapshot`, and without a schedule: the version to export; by default the latest."""
    as_of: datetime | None = None
    """A time instead of `version`: the last version committed by then."""
    tag: str | None = None
    """The name of a tag or savepoint instead of `version`: the version that has it."""
    schedule: Schedule | None = None
    """When the export runs by itself."""
    target_bytes: int = 268435456
    """The size at which a file is ended."""
    name: str | None = None
    """A name for its users."""
    max_lag: MaxLag | None = None
    """How far behind the head the export may be and still keep the changes that it has not written."""
    destination: str | None = None
    """A folder to which the files of each run are copied, too: `s3://bucket/prefix` or `file:///folder`, below one of
    those that the operator has named.
    """


class Export(msgspec.Struct, frozen=True, kw_only=True, rename={"delivery_format": "form"}):
    """An export."""

    id: str
    """Its id."""
    dataset: DatasetIdentity
    """The dataset that is exported."""
    name: str | None
    """A name for its users."""
    query: str
    """What is exported."""
    format: str
    """The format of the files."""
    delivery_format: str | None
    """The form of the changes; null where rows are exported."""
    meta: bool
    """Whether rows have the five meta columns."""
    corrected_since: bool
    """Whether rows have two columns that show what has corrected each since."""
    columns: tuple[str, ...] | None
    """The columns of the rows; null for all."""
    where: str | None
    """The condition that rows must match; null for none."""
    partitions: tuple[str, ...] | None
    """Globs of the partitions that are exported; null for all."""
    since: int
    """The position at which it started."""
    until: int | None
    """The position at which it ends; null for none."""
    version: int | None
    """Of a snapshot of one version: the version; null for the latest at each run, and for ranges."""
    schedule: Schedule | None
    """When it runs by itself; null for not at all."""
    next_runs: tuple[str, ...]
    """The next times of its schedule; empty without a schedule, and unless it is `active`. A time at which there is
    nothing new makes no run.
    """
    target_bytes: int
    """The size at which a file is ended."""
    max_lag: MaxLag | None
    """How far behind the head it may be and still keep the changes that it has not written; null for no limit."""
    destination: str | None
    """The folder to which the files are copied; null for none."""
    state: str
    """`active`, `paused`, or `ended`."""
    offset: int | None
    """The position at which its next run starts; null for a snapshot without a run that has succeeded."""
    error: dict[str, Any] | None
    """Why its last run failed; null if it did not."""
    runs: tuple[ExportRunSummary, ...]
    """Its latest runs, the last one first."""
    created_at: datetime
    """When it was created."""
    links: ExportLinks
    """The paths of its resources."""


class ExportFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a run."""

    name: str
    """Its name."""
    rows: int
    """How many rows it has."""
    size_bytes: int
    """Its size."""
    checksum: str
    """`xxh3-128:` and the digest in hexadecimal."""
    sha256: str
    """Its SHA-256 in hexadecimal."""
    first_offset: int | None
    """Of changes: the position from which the file has all that is exported; null of rows."""
    next_offset: int | None
    """Of changes: the position up to which it has all; null of rows."""
    links: FileLinks
    """Its path."""


class ExportLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """The paths of an export's resources."""

    self_: str
    """The export."""
    runs: str
    """Its runs."""
    dataset: str
    """Its dataset."""


class ExportPage(msgspec.Struct, frozen=True, kw_only=True):
    """Exports, the latest first."""

    items: tuple[Export, ...]
    """The exports of this page."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class ExportRun(msgspec.Struct, frozen=True, kw_only=True, rename={"delivery_format": "form"}):
    """A run of an export with its manifest, the list of the files that it has written."""

    export_id: str
    """The id of the export."""
    number: int
    """Its number, from 1."""
    state: str
    """The state of its job."""
    job_id: str
    """The id of its job."""
    error: dict[str, Any] | None
    """Why it failed; null if it did not."""
    dataset: DatasetIdentity
    """The dataset that is exported."""
    query: str
    """What is exported."""
    delivery_format: str | None
    """The form of the changes; null where rows are exported."""
    format: str
    """The format of the files."""
    offsets: RunOffsets
    """The changes of the run."""
    versions: Versions | None
    """The versions of its first and its last change; null without changes."""
    version: int | None
    """Of a snapshot: the version of its rows; null for a range."""
    schema: ManifestSchema | None
    """The schema of the rows; null before the run has succeeded."""
    files: tuple[ExportFile, ...]
    """The files that it has written; none before it has succeeded."""
    file_count: int | None
    """How many files it has written; null before it has succeeded."""
    rows: int | None
    """How many rows it has written; null before it has succeeded."""
    destination: str | None
    """The folder with copies of the files and the manifest; null before the run has succeeded, and for none."""
    created_at: datetime | None
    """When the manifest was written; null before the run has succeeded."""
    links: RunLinks
    """The paths of its resources."""


class ExportRunPage(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of an export, the latest first."""

    items: tuple[ExportRunSummary, ...]
    """The runs of this page."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class ExportRunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A run of an export, as lists have it. What it has written is null before it has succeeded."""

    number: int
    """Its number, from 1."""
    state: str
    """The state of its job."""
    since: int
    """The position of its first change."""
    until: int
    """The position to which it goes."""
    version: int | None
    """Of a snapshot: the version of its rows, which all changes before `until` result in; null for a range."""
    next_since: int | None
    """The position to which it went; one less than `until` where that would split an update."""
    rows: int | None
    """How many rows it has written."""
    file_count: int | None
    """How many files it has written."""
    size_bytes: int | None
    """The size of its files together."""
    job_id: str
    """The id of its job."""
    error: dict[str, Any] | None
    """Why it failed; null if it did not."""
    created_at: datetime
    """When it was created."""
    links: RunLinks
    """The paths of its resources."""


class FileLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """The path of a file."""

    self_: str
    """The file."""


class ManifestSchema(msgspec.Struct, frozen=True, kw_only=True):
    """The schema of the dataset under which rows are written."""

    id: int
    """Its id."""
    fields: tuple[Field, ...]
    """Its columns."""


class RunLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """The paths of a run's resources."""

    self_: str
    """The run."""
    export: str
    """Its export."""
    job: str
    """Its job."""
    manifest: str
    """The manifest as a file; there once the run has succeeded."""


class RunOffsets(msgspec.Struct, frozen=True, kw_only=True):
    """The changes of a run."""

    since: int
    """The position of the first change."""
    next_since: int | None
    """The position after the last change; null before the run has succeeded."""


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """When an export runs, if there is something new: at an interval, or at times of day. One of the two is set."""

    every_seconds: int | None = None
    """Seconds from the start of one run to the next."""
    cron: str | None = None
    """Times as a cron expression of five fields: minute, hour, day of the month, month, day of the week."""
    zone: str | None = None
    """Beside `cron`: the time zone of its times, by its name in the IANA database; UTC by default."""


class Versions(msgspec.Struct, frozen=True, kw_only=True):
    """The versions of the first and of the last change of a range."""

    first: int
    """The version of the first change."""
    last: int
    """The version of the last change."""


Position = int | str
