"""Names of files below the storage root, and the writer of a file from its name.

    {tenant}/{dataset}/data/{partition}/{bucket}-{attempt}-{random}.parquet       data files, some also of changes
    {tenant}/{dataset}/data/{partition}/_SUCCESS                                  marker of a partition that is done
    {tenant}/{dataset}/changes/{partition}/{bucket}-{attempt}-{random}.parquet    changelog files
    {tenant}/{dataset}/changes/merged-{epoch}-{random}.parquet                    … merged by a table service
    {tenant}/{dataset}/deletes/{partition}/{bucket}-{attempt}-{random}.roaring    large deletion vectors
    {tenant}/{dataset}/index/{partition}/{bucket}-{attempt}-{random}.arrow        key indexes
    {tenant}/{dataset}/staged/{job or body}…                                      input of writes
    {tenant}/{dataset}/quarantine/{job}….parquet                                  bad records, of input
    {tenant}/{dataset}/quarantine/{partition}/{bucket}-{attempt}-{random}.parquet … and rows whose key was live
    {tenant}/{dataset}/uploads/{upload}                                           uploads
    {tenant}/{dataset}/exports/{export}/{run}-{job}-{epoch}/{name}                files of exports
    {tenant}/{dataset}/timeline/{first}-{last}-{job}-{epoch}.parquet              archived instants
    {tenant}/{dataset}/reads/{job}-{epoch}/{name}                                 results of read jobs, and their runs
    {tenant}/{dataset}/rendered/{random}                                          files as some readers see them

An attempt is `{instant}-{epoch}-{round}`: with the random part, no two runs of a task ever write the same path. Markers
are the exception: other systems find them by name, so a marker is deleted and written again under one path.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final

from app.kernel.format.file_group import Slot

_MARKER: Final = "_SUCCESS"
_ATTEMPT: Final = re.compile(r"/\d{5}-(\d{20}-[0-9a-f]{6})-\d+-\d+-[0-9a-f]{8}\.(?:parquet|roaring|arrow)$")
_JOB: Final = r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
_STAGED: Final = re.compile(rf"/(?:staged|quarantine)/{_JOB}[^/]*$")
_EXPORTED: Final = re.compile(rf"/exports/[^/]+/\d+-{_JOB}-\d+/[^/]+$")
_ARCHIVED: Final = re.compile(
    rf"/timeline/\d{{20}}-[0-9a-f]{{6}}-\d{{20}}-[0-9a-f]{{6}}-{_JOB}-\d+\.parquet$"
)
_MERGED: Final = re.compile(r"/changes/merged-(\d+)-[0-9a-f]{16}\.parquet$")
_READ: Final = re.compile(rf"/reads/{_JOB}-\d+/[^/]+$")


class Folder(str, Enum):
    """The folders of a dataset that commits refer to."""

    DATA = "data"
    CHANGES = "changes"
    DELETES = "deletes"
    INDEX = "index"
    QUARANTINE = "quarantine"

    @property
    def suffix(self) -> str:
        """The file name extension, or its equivalent, of the folder's files."""
        match self:
            case Folder.DELETES:
                return "roaring"
            case Folder.INDEX:
                return "arrow"
            case _:
                return "parquet"


def dataset_prefix(tenant_id: str, dataset_id: str) -> str:
    """The folder of a dataset."""
    return f"{tenant_id}/{dataset_id}"


def attempt_name(instant_id: str, epoch: int, number: int) -> str:
    """The name of the `number`-th pass of a claim over a write's data."""
    return f"{instant_id}-{epoch}-{number}"


def written_path(prefix: str, folder: Folder, slot: Slot, attempt: str, mark: str) -> str:
    """The path for a file of an attempt. `mark`: 8 random hexadecimal digits, so that it is never the same twice."""
    name = f"{slot.bucket:05d}-{attempt}-{mark}.{folder.suffix}"
    return "/".join(part for part in (prefix, folder.value, slot.partition_path, name) if part)


def merged_changelog_path(prefix: str, epoch: int, mark: str) -> str:
    """The path for a merged changelog file. `epoch`: the claim of the dataset's maintenance that writes it. `mark`: 16
    random hexadecimal digits, so that it is never the same twice.
    """
    return f"{prefix}/{Folder.CHANGES.value}/merged-{epoch}-{mark}.parquet"


def staged_path(prefix: str, job_id: str) -> str:
    """The path to which the API stages the rows of a small write."""
    return f"{prefix}/staged/{job_id}.arrow"


def decoded_prefix(prefix: str, job_id: str, epoch: int) -> str:
    """The path prefix of the files that a worker decodes a large write into."""
    return f"{prefix}/staged/{job_id}-{epoch}"


def quarantine_prefix(prefix: str, job_id: str, epoch: int) -> str:
    """The path prefix of the files for bad records of a write's input."""
    return f"{prefix}/{Folder.QUARANTINE.value}/{job_id}-{epoch}"


def body_path(prefix: str, body_id: str) -> str:
    """The path of a large request body, which is kept unchanged."""
    return f"{prefix}/staged/{body_id}.body"


def upload_path(prefix: str, upload_id: str) -> str:
    """The path of an upload."""
    return f"{prefix}/uploads/{upload_id}"


def export_folder(prefix: str, export_id: str, number: int, job_id: str, epoch: int) -> str:
    """The folder of an attempt at a run of an export."""
    return f"{prefix}/exports/{export_id}/{number}-{job_id}-{epoch}"


def read_folder(prefix: str, job_id: str, epoch: int) -> str:
    """The folder of an attempt at a read job."""
    return f"{prefix}/reads/{job_id}-{epoch}"


def rendered_path(prefix: str, mark: str) -> str:
    """The path of a rendered file. `mark`: 32 random hexadecimal digits, so that it is never the same twice."""
    return f"{prefix}/rendered/{mark}"


def data_folder(prefix: str) -> str:
    """The folder of all data files of a dataset, with a folder per partition."""
    return f"{prefix}/{Folder.DATA.value}"


def marker_path(prefix: str, partition_path: str) -> str:
    """The path of the file that marks a partition as done."""
    return f"{data_folder(prefix)}/{partition_path}/{_MARKER}"


def is_marker(path: str) -> bool:
    """Whether the file marks a partition as done. Only the code that writes markers deletes those of a live dataset."""
    return path.endswith(f"/{_MARKER}")


def timeline_path(prefix: str, first_instant: str, last_instant: str, job_id: str, epoch: int) -> str:
    """The path to which an attempt at a clean archives instants of the catalogue."""
    return f"{prefix}/timeline/{first_instant}-{last_instant}-{job_id}-{epoch}.parquet"


def instant_of(path: str) -> str | None:
    """The instant whose attempt wrote the file; None for input of writes."""
    match = _ATTEMPT.search(path)
    return match.group(1) if match else None


def maintenance_epoch_of(path: str) -> int | None:
    """The claim of the dataset's maintenance that wrote the file; None for other files."""
    match = _MERGED.search(path)
    return int(match.group(1)) if match else None


def job_of(path: str) -> str | None:
    """The job that input, bad records, exported files, results or archived instants belong to; None for other files.

    For a body this is the body's own id, which is not a job's.
    """
    match = _STAGED.search(path) or _EXPORTED.search(path) or _READ.search(path) or _ARCHIVED.search(path)
    return match.group(1) if match else None
