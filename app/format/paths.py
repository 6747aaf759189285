"""Names of files below the storage root, and what a name tells of who wrote the file.

    {tenant}/{dataset}/data/{partition}/{bucket}-{attempt}-{random}.parquet       data files
    {tenant}/{dataset}/data/{partition}/_SUCCESS                                  marker of a partition that is done
    {tenant}/{dataset}/changes/{partition}/{bucket}-{attempt}-{random}.parquet    changelog files
    {tenant}/{dataset}/deletes/{partition}/{bucket}-{attempt}-{random}.roaring    deletion vectors
    {tenant}/{dataset}/index/{partition}/{bucket}-{attempt}-{random}.arrow        key indexes
    {tenant}/{dataset}/staged/{job or body}…                                      input of writes
    {tenant}/{dataset}/quarantine/{job}….parquet                                  bad records, of input
    {tenant}/{dataset}/quarantine/{partition}/{bucket}-{attempt}-{random}.parquet … and of rows that met live keys
    {tenant}/{dataset}/uploads/{upload}                                           uploads
    {tenant}/{dataset}/exports/{export}/{run}-{job}-{epoch}/{name}                files of exports
    {tenant}/{dataset}/timeline/{first}-{last}-{job}-{epoch}.parquet              instants of old
    {tenant}/{dataset}/reads/{job}-{epoch}/{name}                                 results of read jobs, and their runs

An attempt is `{instant}-{epoch}-{round}`: with the random part, no two runs of a task ever write the same path. Markers
are the one exception: others look for them by their name, so that they go, and come again, under the same.
"""

from __future__ import annotations

import os
import re
from enum import Enum
from typing import Final

from app.format.rows.staging import Slot

_MARKER: Final = "_SUCCESS"
_ATTEMPT: Final = re.compile(r"/\d{5}-(\d{20}-[0-9a-f]{6})-\d+-\d+-[0-9a-f]{8}\.(?:parquet|roaring|arrow)$")
_JOB: Final = r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
_STAGED: Final = re.compile(rf"/(?:staged|quarantine)/{_JOB}[^/]*$")
_EXPORTED: Final = re.compile(rf"/exports/[^/]+/\d+-{_JOB}-\d+/[^/]+$")
_ARCHIVED: Final = re.compile(
    rf"/timeline/\d{{20}}-[0-9a-f]{{6}}-\d{{20}}-[0-9a-f]{{6}}-{_JOB}-\d+\.parquet$"
)
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
        """What the names of its files end with."""
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


def written_path(prefix: str, folder: Folder, slot: Slot, attempt: str) -> str:
    """A new path for a file of an attempt; never the same twice."""
    name = f"{slot.bucket:05d}-{attempt}-{os.urandom(4).hex()}.{folder.suffix}"
    return "/".join(part for part in (prefix, folder.value, slot.partition_path, name) if part)


def staged_path(prefix: str, job_id: str) -> str:
    """Where the API stages the rows of a small write."""
    return f"{prefix}/staged/{job_id}.arrow"


def decoded_prefix(prefix: str, job_id: str, epoch: int) -> str:
    """What the names of the files start with that a worker decodes a large write into."""
    return f"{prefix}/staged/{job_id}-{epoch}"


def quarantine_prefix(prefix: str, job_id: str, epoch: int) -> str:
    """What the names of the files start with that bad records of a write's input go to."""
    return f"{prefix}/{Folder.QUARANTINE.value}/{job_id}-{epoch}"


def body_path(prefix: str, body_id: str) -> str:
    """Where a large request body is kept as it came."""
    return f"{prefix}/staged/{body_id}.body"


def upload_path(prefix: str, upload_id: str) -> str:
    """Where an upload is kept."""
    return f"{prefix}/uploads/{upload_id}"


def export_folder(prefix: str, export_id: str, number: int, job_id: str, epoch: int) -> str:
    """Where an attempt at a run of an export puts its files."""
    return f"{prefix}/exports/{export_id}/{number}-{job_id}-{epoch}"


def read_folder(prefix: str, job_id: str, epoch: int) -> str:
    """Where an attempt at a read job puts its files."""
    return f"{prefix}/reads/{job_id}-{epoch}"


def data_folder(prefix: str) -> str:
    """Where all data files of a dataset are, in folders of their partitions."""
    return f"{prefix}/{Folder.DATA.value}"


def marker_path(prefix: str, partition_path: str) -> str:
    """Where a file says that a partition is done."""
    return f"{data_folder(prefix)}/{partition_path}/{_MARKER}"


def is_marker(path: str) -> bool:
    """Whether the file says that a partition is done. Only who writes markers removes them while the dataset lives."""
    return path.endswith(f"/{_MARKER}")


def timeline_path(prefix: str, first_instant: str, last_instant: str, job_id: str, epoch: int) -> str:
    """Where an attempt at a clean puts instants that it takes from the catalogue."""
    return f"{prefix}/timeline/{first_instant}-{last_instant}-{job_id}-{epoch}.parquet"


def instant_of(path: str) -> str | None:
    """The instant whose attempt wrote the file; None for input of writes."""
    found = _ATTEMPT.search(path)
    return found.group(1) if found else None


def job_of(path: str) -> str | None:
    """The job that input, bad records, exported files, results or archived instants belong to; None for other files.

    Of a body it is its own id, which is no job's.
    """
    found = _STAGED.search(path) or _EXPORTED.search(path) or _READ.search(path) or _ARCHIVED.search(path)
    return found.group(1) if found else None
