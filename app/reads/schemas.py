"""JSON forms of the results of read jobs."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from app.format.file_format import FileFormat
from app.format.result_file import RunFile
from app.jobs.tasks import ReadQuery
from app.jobs.values import Job
from app.reads.jobs import ReadResult, ReadSchema


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


class ReadFiles(msgspec.Struct, frozen=True, kw_only=True, tag_field="disposition", tag="files"):
    """A result as files, in the order of their rows."""

    files: list[ResultFile]
    """The files."""
    format: FileFormat
    """The format of the files."""
    query: ReadQuery
    """What was read."""
    version: int
    """The version of the rows."""
    begin: int | None
    """The version after which the rows changed; null if the read was not incremental."""
    rows: int
    """The number of rows in all files."""
    size_bytes: int
    """The size of all files."""
    schema: ReadSchema
    """The columns."""


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
        format=result.format,
        query=result.query,
        version=result.version,
        begin=result.begin,
        rows=result.rows,
        size_bytes=result.size_bytes,
        schema=result.schema,
    )
