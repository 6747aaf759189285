"""JSON forms of the results of read jobs, and of the plans of scans."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from urllib.parse import urlencode

import msgspec

from app.core.jobs.kinds.read import ReadResult, ReadSchema, ReadSummary
from app.core.jobs.values import Job
from app.features.reads.scans import PartFormat, PlannedPart, PlannedScan, link_options
from app.kernel.format.commit_metadata import CommitMetadata
from app.kernel.format.result_file import RunFile


class ReadRows(msgspec.Struct, frozen=True, kw_only=True, tag_field="disposition", tag="inline"):
    """A result in JSON: the rows at a version, or those that changed in a range of versions."""

    rows: Annotated[list[dict[str, Any]], msgspec.Meta(examples=[[{"id": 1, "amount": 120}]])]
    """The rows."""
    version: int
    """The version of the rows."""
    begin: int | None
    """The version after which the rows changed; null if the read was not incremental."""
    schema: ReadSchema
    """The columns."""
    corrected: bool | msgspec.UnsetType = msgspec.UNSET
    """As in the result of the job."""
    commits: tuple[CommitMetadata, ...] | msgspec.UnsetType = msgspec.UNSET
    """As in the result of the job."""
    commits_truncated: bool | msgspec.UnsetType = msgspec.UNSET
    """As in the result of the job."""


class ResultLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """Where a file of a result is."""

    self_: str
    """The file."""


class ResultFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a result."""

    name: Annotated[str, msgspec.Meta(examples=["part-00001.parquet"])]
    """The name."""
    rows: int
    """The number of rows in it."""
    size_bytes: int
    """The size of the file."""
    checksum: Annotated[str, msgspec.Meta(examples=["xxh3-128:99aa06d3014798d86001c324468d497f"])]
    """`xxh3-128:` and the hexadecimal digest of the file."""
    links: ResultLinks
    """Paths of related resources."""


class ReadFiles(ReadSummary, frozen=True, kw_only=True, tag_field="disposition", tag="files"):
    """A result as files, in the order of their rows."""

    files: list[ResultFile]
    """The files."""


def read_files(job: Job, result: ReadResult, files: list[RunFile]) -> ReadFiles:
    """The JSON form of a result as files."""
    return ReadFiles(
        files=[
            ResultFile(
                name=file.name,
                rows=file.row_count,
                size_bytes=file.size_bytes,
                checksum=f"xxh3-128:{file.checksum}",
                links=ResultLinks(self_=f"/jobs/{job.id}/result/files/{file.name}"),
            )
            for file in files
        ],
        **{name: getattr(result, name) for name in ReadSummary.__struct_fields__},
    )


class ScanPartLinks(msgspec.Struct, frozen=True, kw_only=True, rename={"self_": "self"}):
    """Where a part of a scan is."""

    self_: str
    """The part. `Prefer: redirect` gives a link to a Parquet file in the storage, if the service gives such links."""


class ScanPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a scan: some rows of the table, which are in no other part."""

    name: str
    """The name."""
    format: PartFormat
    """`parquet`: a file of the table. It may have more columns than were requested, and has two of the service's own,
    `_hw_version` and `_hw_offset`; for a key that sees a part of the dataset, a file with what it sees of one. `arrow`:
    an Arrow IPC stream of the requested columns.
    """
    rows: int | None
    """The number of rows in it; null where only reading it shows how many there are."""
    size_bytes: int | None
    """Of a Parquet file its size; otherwise the approximate size of the files that are read for it, or null where these
    have rows or values that the key does not see.
    """
    checksum: Annotated[str, msgspec.Meta(examples=["xxh3-128:99aa06d3014798d86001c324468d497f"])] | None
    """Of a Parquet file `xxh3-128:` and its hexadecimal digest; otherwise null."""
    links: ScanPartLinks
    """Paths of related resources."""


class Scan(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a table at a version. Together they have each of its rows once."""

    version: int
    """The version of the rows."""
    kept_until: datetime
    """Until when the version is kept at least. Each request for a part keeps it for ten more minutes."""
    schema: ReadSchema
    """The requested columns, in order."""
    parts: list[ScanPart]
    """The parts, in no particular order."""


def scan_of(dataset: str, plan: PlannedScan) -> Scan:
    """The JSON form of a plan. `dataset`: its id."""
    prefix = f"/datasets/{dataset}/scans/{plan.version}"
    of_file = urlencode(link_options(plan.columns))
    of_rows = urlencode(link_options(plan.columns, plan.partitions))
    return Scan(
        version=plan.version,
        kept_until=datetime.now(UTC) + timedelta(seconds=plan.kept_seconds),
        schema=ReadSchema(
            id=plan.schema.id,
            fields=tuple(msgspec.structs.replace(each, nullable=True) for each in plan.schema.fields),
        ),
        parts=[
            _scan_part(part, f"{prefix}/rows/{part.name}", of_rows)
            if part.checksum is None
            else _scan_part(part, f"{prefix}/files/{part.name}", of_file)
            for part in plan.parts
        ],
    )


def _scan_part(part: PlannedPart, path: str, options: str) -> ScanPart:
    return ScanPart(
        name=part.name,
        format=PartFormat.ARROW if part.checksum is None else PartFormat.PARQUET,
        rows=part.rows,
        size_bytes=part.size_bytes,
        checksum=None if part.checksum is None else f"xxh3-128:{part.checksum}",
        links=ScanPartLinks(self_=f"{path}?{options}" if options else path),
    )
