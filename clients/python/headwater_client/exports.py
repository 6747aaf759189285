"""Exports: a feed, or the rows that changed in it, written to files, and downloads of these files."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote

import msgspec

from headwater_client.connection import dataset_path, decoded
from headwater_client.consumers import MaxLag, Start
from headwater_client.download import DamagedDownload, DownloadCalls
from headwater_client.feed import walk_list
from headwater_client.jobs import made_up
from headwater_client.pages import JSON
from headwater_client.values import Dataset, DatasetIdentity, Field
from headwater_client.webhooks import DeliveryFormat

ExportQuery = Literal["changes", "incremental"]
ExportFormat = Literal["parquet", "csv", "ndjson", "arrow"]
_CHUNK_BYTES: Final = 1024 * 1024
MANIFEST_NAME: Final = "manifest.json"


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """The schedule of an export: the interval between the starts of its runs. Runs without changes are skipped."""

    every_seconds: int


class ExportRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run of an export: the changes from `since` up to `until`. Members of the result are None until it ends."""

    number: int
    state: str
    since: int
    until: int
    next_since: int | None
    rows: int | None
    file_count: int | None
    size_bytes: int | None
    job_id: str
    error: dict[str, Any] | None
    created_at: datetime


class Export(msgspec.Struct, frozen=True, kw_only=True, rename={"delivery_format": "form"}):
    """An export. `offset` is the start of its next run; `runs` are the latest runs, the last one first."""

    id: str
    dataset: DatasetIdentity
    name: str | None
    query: str
    format: str
    delivery_format: str | None
    columns: tuple[str, ...] | None
    where: str | None
    partitions: tuple[str, ...] | None
    since: int
    until: int | None
    schedule: Schedule | None
    target_bytes: int
    max_lag: MaxLag | None
    state: str
    offset: int
    error: dict[str, Any] | None
    runs: tuple[ExportRun, ...]
    created_at: datetime


class ExportOffsets(msgspec.Struct, frozen=True, kw_only=True):
    """The changes from `since` up to `next_since`, which is None until the run has succeeded."""

    since: int
    next_since: int | None


class ExportVersions(msgspec.Struct, frozen=True, kw_only=True):
    """The versions of the first and of the last change."""

    first: int
    last: int


class ExportSchema(msgspec.Struct, frozen=True, kw_only=True):
    """The schema of the dataset under which rows are written."""

    id: int
    fields: tuple[Field, ...]


class ExportFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a run. `checksum` is `xxh3-128:` and the digest, `sha256` is SHA-256; both are hexadecimal."""

    name: str
    rows: int
    size_bytes: int
    checksum: str
    sha256: str
    first_offset: int | None
    next_offset: int | None


class ExportManifest(msgspec.Struct, frozen=True, kw_only=True, rename={"delivery_format": "form"}):
    """A run with its files. Until it has succeeded, `files` is empty and members of the result are None."""

    export_id: str
    number: int
    state: str
    job_id: str
    error: dict[str, Any] | None
    dataset: DatasetIdentity
    query: str
    delivery_format: str | None
    format: str
    offsets: ExportOffsets
    versions: ExportVersions | None
    schema: ExportSchema | None
    files: tuple[ExportFile, ...]
    rows: int | None
    created_at: datetime | None


class ExportPage(msgspec.Struct, frozen=True, kw_only=True):
    """Exports of a dataset, the latest first."""

    items: tuple[Export, ...]
    next_page_token: str | None


class ExportRunPage(msgspec.Struct, frozen=True, kw_only=True):
    """Runs of an export, the latest first."""

    items: tuple[ExportRun, ...]
    next_page_token: str | None


class ExportCalls(DownloadCalls):
    """Exports of the tenant's datasets."""

    async def create_export(
        self,
        dataset: Dataset | str,
        *,
        query: ExportQuery,
        format: ExportFormat,  # noqa: A002 - the name in the API
        delivery_format: DeliveryFormat | None = None,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        partitions: Sequence[str] | None = None,
        since: Start = "earliest",
        until: int | None = None,
        every_seconds: int | None = None,
        target_bytes: int | None = None,
        name: str | None = None,
        max_lag: MaxLag | None = None,
    ) -> Export:
        """Exports the changes from `since` on, or the rows that changed since. Starts the first run.

        With `every_seconds` further runs continue at the end of the last one; otherwise the export ends after one run.
        """
        given = {
            "query": query,
            "format": format,
            "form": delivery_format,
            "columns": columns,
            "where": where,
            "partitions": partitions,
            "since": since,
            "until": until,
            "schedule": None if every_seconds is None else {"every_seconds": every_seconds},
            "target_bytes": target_bytes,
            "name": name,
            "max_lag": max_lag,
        }
        body = {member: value for member, value in given.items() if value is not None}
        answer = await self._send(
            "POST",
            f"{dataset_path(dataset)}/exports",
            body=msgspec.json.encode(body),
            headers={"Content-Type": JSON},
        )
        return decoded(Export, answer)

    async def exports(self, dataset: Dataset | str) -> AsyncGenerator[Export, None]:
        """The exports of a dataset, the latest first, including ended ones."""
        fetch = partial(self._get, f"{dataset_path(dataset)}/exports")
        async for page in walk_list(fetch, partial(decoded, ExportPage), {"page_size": 1_000}):
            for item in page.items:
                yield item

    async def get_export(self, export: Export | str) -> Export:
        """The current state of an export."""
        return decoded(Export, await self._get(export_path(export)))

    async def pause_export(self, export: Export | str) -> Export:
        """Pauses an export with a schedule. A run in progress continues."""
        return await self._change_export(export, {"state": "paused"})

    async def resume_export(self, export: Export | str) -> Export:
        """Resumes an export that was paused or has ended."""
        return await self._change_export(export, {"state": "active"})

    async def schedule_export(self, export: Export | str, every_seconds: int | None) -> Export:
        """Changes the schedule of an export; None removes it."""
        schedule = None if every_seconds is None else {"every_seconds": every_seconds}
        return await self._change_export(export, {"schedule": schedule})

    async def delete_export(self, export: Export | str) -> None:
        """Deletes an export, and its runs with their files."""
        await self._send("DELETE", export_path(export))

    async def run_export(self, export: Export | str, *, idempotency_key: str | None = None) -> ExportRun:
        """Exports all changes from the export's position to the head. Returns the run that this starts."""
        answer = await self._send(
            "POST",
            f"{export_path(export)}/runs",
            headers={"Idempotency-Key": made_up(idempotency_key)},
            repeatable=True,
        )
        return decoded(ExportRun, answer)

    async def export_runs(self, export: Export | str) -> AsyncGenerator[ExportRun, None]:
        """The runs of an export, the latest first."""
        fetch = partial(self._get, f"{export_path(export)}/runs")
        async for page in walk_list(fetch, partial(decoded, ExportRunPage), {"page_size": 1_000}):
            for item in page.items:
                yield item

    async def get_export_run(self, export: Export | str, number: int) -> ExportManifest:
        """The current state of a run, with its manifest once it has succeeded."""
        answer = await self._get(f"{export_path(export)}/runs/{number}")
        return decoded(ExportManifest, answer)

    async def wait_for_export(
        self, export: Export | str, number: int | None = None, *, seconds: float = 600
    ) -> ExportManifest:
        """Waits for a run, by default the last one. Returns it once it has succeeded.

        Raises JobUnfinished; Problem if it fails or is cancelled; LookupError if there is no run yet.
        """
        if number is None:
            runs = (await self.get_export(export)).runs
            if not runs:
                raise LookupError("the export has no run yet")
            number = runs[0].number
        run = await self.get_export_run(export, number)
        await self.wait(run.job_id, seconds=seconds)
        return await self.get_export_run(export, number)

    async def download_export(self, run: ExportManifest, folder: Path) -> list[Path]:
        """Downloads the files of a run, and its manifest; returns the paths of the files, in order.

        Files that exist with the right contents are not downloaded again. Raises DamagedDownload.
        """
        await self._driver.run(partial(folder.mkdir, parents=True, exist_ok=True))
        files = f"{export_path(run.export_id)}/runs/{run.number}/files"
        paths = [await self._download(files, file, folder / file.name) for file in run.files]
        manifest = await self._get(f"{files}/{MANIFEST_NAME}")
        await self._driver.run((folder / MANIFEST_NAME).write_bytes, manifest.content)
        return paths

    async def _download(self, files: str, file: ExportFile, path: Path) -> Path:
        if await self._driver.run(_is, file, path):
            return path
        partial_path = path.with_name(f"{path.name}.part")
        await self._download_parts(f"{files}/{quote(file.name)}", file.size_bytes, partial_path)
        if not await self._driver.run(_is, file, partial_path):
            raise DamagedDownload(f"{file.name} does not match the manifest; download it again")
        return await self._driver.run(partial_path.replace, path)

    async def _change_export(self, export: Export | str, change: dict[str, Any]) -> Export:
        tag = (await self._get(export_path(export))).headers["etag"]
        answer = await self._send(
            "PATCH",
            export_path(export),
            body=msgspec.json.encode(change),
            headers={"Content-Type": JSON, "If-Match": tag},
        )
        return decoded(Export, answer)


def export_path(export: Export | str) -> str:
    """The path of an export."""
    return f"/exports/{quote(export.id if isinstance(export, Export) else export, safe='')}"


def _is(file: ExportFile, path: Path) -> bool:
    """Whether the file exists as the manifest lists it."""
    if not path.exists() or path.stat().st_size != file.size_bytes:
        return False
    digest = hashlib.sha256()
    with path.open("rb") as content:
        while chunk := content.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest() == file.sha256
