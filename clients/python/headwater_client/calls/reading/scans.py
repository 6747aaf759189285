"""Scans: a table in parts, which are files of the table, or rows that the service merges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict

import msgspec

from headwater_client.arrow import ArrowData, required
from headwater_client.calls.download import DamagedDownload
from headwater_client.calls.jobs import JobCalls
from headwater_client.models import Dataset, Scan, ScanPart
from headwater_client.problem import Problem
from headwater_client.transport.connection import dataset_path, decoded
from headwater_client.transport.pages import JSON

if TYPE_CHECKING:
    import httpx2
    from typing_extensions import Unpack

_OPTIONS: Final = frozenset({"query", "version", "as_of", "tag", "columns", "partitions"})
# Very many files, or much to merge, is left to a read job.
_LEFT_TO_JOBS: Final = "scan-too-large"
MERGED_BYTES_MAX: Final = 1024**3
"""Of files that the API merges. The workers of the service merge more of them in a read job, many at a time."""
_STEP_BYTES: Final = 8 * 1024 * 1024


class ScanOptions(TypedDict, total=False):
    """Options of a scan. `query`: `snapshot` (the table, the default) or `read_optimized` (its base files).

    `version`, `as_of` or `tag`: by default the latest version. `columns` and `partitions` (globs) select columns and
    rows. `keep_seconds`: for how long the version is kept, 3,600 by default and 86,400 at most.
    """

    query: Literal["snapshot", "read_optimized"]
    version: int
    as_of: datetime
    tag: str
    columns: Sequence[str]
    partitions: Sequence[str]
    keep_seconds: int


class ScanCalls(JobCalls):
    """Plans scans, and fetches their parts."""

    async def scan(self, dataset: Dataset | str, **options: Unpack[ScanOptions]) -> Scan:
        """The parts of a table at a version: see `ScanOptions`.

        Raises Problem: `scan-too-large` where a read job has to read instead.
        """
        # It changes nothing but the time for which the version is kept.
        sent = await self._send(
            "POST",
            f"{dataset_path(dataset)}/scans",
            body=msgspec.json.encode(options),
            headers={"Content-Type": JSON},
            repeatable=True,
        )
        return decoded(Scan, sent)

    async def scan_unless_job(self, dataset: Dataset | str, options: Mapping[str, Any]) -> Scan | None:
        """The scan for options of a read; None where a read job has to read instead.

        A read job reads what a scan has no option for, and where the API would have to merge more than
        `MERGED_BYTES_MAX`. Raises Problem.
        """
        if not options.keys() <= {*_OPTIONS, "keep_seconds"} or options.get("query") == "incremental":
            return None
        try:
            found = await self.scan(dataset, **options)
        except Problem as problem:
            if problem.code == _LEFT_TO_JOBS:
                return None
            raise
        # The service itself refuses to merge more for a key that sees a part, to which it shows no sizes.
        merged = sum(part.size_bytes or 0 for part in found.parts if part.format == "arrow")
        return None if merged > MERGED_BYTES_MAX else found

    async def read_scan(self, scan: Scan) -> ArrowData:
        """The rows of a scan, all in memory. Raises DamagedDownload, MissingPackage, Problem."""
        contents = []
        for part in scan.parts:
            content = (await self._part(part, None)).content
            _check_bytes(part, content)
            contents.append(content)
        return ArrowData(parts=tuple(contents), columns=tuple(field.name for field in scan.schema.fields))

    async def download_scan_part(self, part: ScanPart, path: Path) -> Path:
        """Downloads a part of a scan, whose `format` says what it is.

        Raises DamagedDownload, MissingPackage, Problem.
        """
        partial_path = path.with_name(f"{path.name}.part")
        await self._part(part, partial_path)
        await self._driver.run(partial(_check_file, part, partial_path))
        return await self._driver.run(partial_path.replace, path)

    async def read_scan_part_range(self, part: ScanPart, first: int, count: int) -> bytes:
        """Bytes [first, first + count) of a Parquet part. Raises DamagedDownload, Problem."""
        last = first + count - 1
        sent = await self._part(part, None, {"Range": f"bytes={first}-{last}"})
        if (
            sent.headers.get("content-range") != f"bytes {first}-{last}/{part.size_bytes}"
            or len(sent.content) != count
        ):
            raise DamagedDownload(f"part {part.name} does not match the scan; plan the scan again")
        return sent.content

    async def _part(
        self, part: ScanPart, destination: Path | None, more: Mapping[str, str] | None = None
    ) -> httpx2.Response:
        headers = {"Prefer": "redirect", **(more or {})}
        return await self._send(
            "GET", part.links.self_, headers=headers, linked=True, destination=destination
        )


def _check_file(part: ScanPart, path: Path) -> None:
    """Raises DamagedDownload, MissingPackage."""
    if part.checksum is None:
        return
    digest = _digest()
    size = 0
    with path.open("rb") as file:
        while chunk := file.read(_STEP_BYTES):
            digest.update(chunk)
            size += len(chunk)
    _check(part, size, digest.hexdigest())


def _check_bytes(part: ScanPart, content: bytes) -> None:
    if part.checksum is not None:
        digest = _digest()
        digest.update(content)
        _check(part, len(content), digest.hexdigest())


def _digest() -> Any:
    return required("xxhash", extra="arrow").xxh3_128()


def _check(part: ScanPart, size: int, digest: str) -> None:
    if (size, f"xxh3-128:{digest}") != (part.size_bytes, part.checksum):
        raise DamagedDownload(f"part {part.name} does not match the scan; download it again")
