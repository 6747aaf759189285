"""What the manifests of an export contain."""

from __future__ import annotations

from datetime import datetime

import msgspec


class ExportError(Exception):
    """The export cannot begin or continue. The message has the reason."""


class FileRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A file. `path` is relative to the folder of the document; `rows` is null if the file is not one of rows."""

    path: str
    rows: int | None
    size_bytes: int
    sha256: str


class FeedRange(msgspec.Struct, frozen=True, kw_only=True):
    """The changes with offsets from `since` to before `next_since`."""

    since: int
    next_since: int


class DatasetRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A dataset's files: its rows at `version`, and the changes of its feed up to that version.

    `changes` is null if the dataset has no feed. `read_job` is there while the export is incomplete: the job whose
    result is downloaded.
    """

    id: str
    name: str
    version: int
    rows: int
    changes: FeedRange | None
    files: tuple[FileRecord, ...]
    read_job: str | None = None


class FailedDataset(msgspec.Struct, frozen=True, kw_only=True):
    """A dataset that could not be exported, with the reason."""

    name: str
    reason: str


class TenantManifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a folder contains. `files` are those of no dataset.

    `failed` are the datasets that the last run could not export.
    """

    tenant_id: str
    tenant_name: str
    finished_at: datetime
    datasets: tuple[DatasetRecord, ...]
    failed: tuple[FailedDataset, ...]
    files: tuple[FileRecord, ...]
