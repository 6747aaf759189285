"""Exports: a feed, or the rows that changed in it, written to files, and downloads of these files."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from headwater_client.calls.download import DamagedDownload, DownloadCalls
from headwater_client.models import (
    ChangeForm,
    CreateExport,
    Dataset,
    Export,
    ExportFile,
    ExportFormat,
    ExportPage,
    ExportQuery,
    ExportRun,
    ExportRunPage,
    ExportRunSummary,
    ExportState,
    MaxLag,
    Schedule,
)
from headwater_client.transport.connection import dataset_path, decoded, made_up
from headwater_client.transport.walk import Since

_CHUNK_BYTES: Final = 1024 * 1024
MANIFEST_NAME: Final = "manifest.json"


class ExportCalls(DownloadCalls):
    """Exports of the tenant's datasets."""

    async def create_export(
        self,
        dataset: Dataset | str,
        *,
        query: ExportQuery,
        format: ExportFormat,  # noqa: A002 - the name in the API
        delivery_format: ChangeForm | None = None,
        meta: bool = False,
        corrected_since: bool = False,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        partitions: Sequence[str] | None = None,
        since: Since | None = None,
        since_version: int | None = None,
        since_time: datetime | None = None,
        until: int | None = None,
        version: int | None = None,
        as_of: datetime | None = None,
        tag: str | None = None,
        every_seconds: int | None = None,
        cron: str | None = None,
        zone: str | None = None,
        target_bytes: int = 256 * 1024 * 1024,
        name: str | None = None,
        max_lag: MaxLag | None = None,
        destination: str | None = None,
        idempotency_key: str | None = None,
    ) -> Export:
        """Exports the changes from a position on, the rows that changed since, or with query `snapshot` the whole table
        at a version, by default the latest. Starts the first run.

        The position is `since`, by default `earliest`, or the first change of `since_version` or `since_time` or later.
        With `meta` the rows of query `incremental` have the five meta columns, with `corrected_since` what has
        corrected each row since the end of the range.

        With `every_seconds` further runs continue at the end of the last one, with `cron` at times of day in a `zone`:
        `cron="0 6 * * 1-5", zone="Europe/Berlin"`. Otherwise the export ends after one run. `destination` is a folder
        to which files are copied, too, such as `s3://warehouse/orders`.
        """
        new = CreateExport(
            query=query,
            format=format,
            delivery_format=delivery_format,
            meta=meta,
            corrected_since=corrected_since,
            columns=None if columns is None else tuple(columns),
            where=where,
            partitions=None if partitions is None else tuple(partitions),
            since=since,
            since_version=since_version,
            since_time=since_time,
            until=until,
            version=version,
            as_of=as_of,
            tag=tag,
            schedule=_schedule(every_seconds, cron, zone),
            target_bytes=target_bytes,
            name=name,
            max_lag=max_lag,
            destination=destination,
        )
        return decoded(Export, await self._create(f"{dataset_path(dataset)}/exports", new, idempotency_key))

    def exports(
        self, dataset: Dataset | str | None = None, *, state: ExportState | None = None
    ) -> AsyncGenerator[Export, None]:
        """The exports of a dataset or of all, the latest first, including ended ones; or those in one state."""
        if dataset is not None and state is None:
            return self._items(f"{dataset_path(dataset)}/exports", ExportPage)
        name = dataset.id if isinstance(dataset, Dataset) else dataset
        return self._items("/exports", ExportPage, {"dataset": name, "state": state})

    async def get_export(self, export: Export | str) -> Export:
        """The current state of an export."""
        return decoded(Export, await self._get(export_path(export)))

    async def pause_export(self, export: Export | str) -> Export:
        """Pauses an export with a schedule. A run in progress continues."""
        return await self._change_export(export, {"state": "paused"})

    async def resume_export(self, export: Export | str) -> Export:
        """Resumes an export that was paused or has ended."""
        return await self._change_export(export, {"state": "active"})

    async def schedule_export(
        self,
        export: Export | str,
        every_seconds: int | None = None,
        *,
        cron: str | None = None,
        zone: str | None = None,
    ) -> Export:
        """Changes the schedule of an export to an interval, or to times of day in a zone; None removes it."""
        schedule = _schedule(every_seconds, cron, zone)
        return await self._change_export(export, {"schedule": schedule})

    async def delete_export(self, export: Export | str) -> None:
        """Deletes an export, and its runs with their files."""
        await self._send("DELETE", export_path(export))

    async def run_export(
        self, export: Export | str, *, idempotency_key: str | None = None
    ) -> ExportRunSummary:
        """Exports all changes from the export's position to the head. Returns the run that this starts."""
        answer = await self._send(
            "POST",
            f"{export_path(export)}/runs",
            headers={"Idempotency-Key": made_up(idempotency_key)},
        )
        return decoded(ExportRunSummary, answer)

    def export_runs(self, export: Export | str) -> AsyncGenerator[ExportRunSummary, None]:
        """The runs of an export, the latest first."""
        return self._items(f"{export_path(export)}/runs", ExportRunPage)

    async def get_export_run(self, export: Export | str, number: int) -> ExportRun:
        """The current state of a run, with its manifest once it has succeeded."""
        answer = await self._get(f"{export_path(export)}/runs/{number}")
        return decoded(ExportRun, answer)

    async def wait_for_export(
        self, export: Export | str, number: int | None = None, *, seconds: float = 600
    ) -> ExportRun:
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

    async def download_export(self, run: ExportRun, folder: Path) -> list[Path]:
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
        return decoded(Export, await self._change(export_path(export), change, tag))


def _schedule(every_seconds: int | None, cron: str | None, zone: str | None) -> Schedule | None:
    given = every_seconds, cron, zone
    return None if given == (None,) * 3 else Schedule(every_seconds=every_seconds, cron=cron, zone=zone)


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
