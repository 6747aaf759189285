"""Read jobs: any number of rows, as an Arrow table or as files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from headwater_client.arrow import ArrowData
from headwater_client.calls.download import DamagedDownload, DownloadCalls
from headwater_client.models import Dataset, FileFormat, Job, ReadFiles, ReadOrder, ReadQuery, ResultFile
from headwater_client.transport.connection import dataset_path, decoded, job_path, made_up

if TYPE_CHECKING:
    from typing_extensions import Unpack


class ReadOptions(TypedDict, total=False):
    """Options of a read. `query`: `snapshot` (the table, the default), `read_optimized` or `incremental`.

    For a table: `version`, `as_of` or `tag`, by default the latest version. For changed rows: after `begin` or
    `begin_time`, up to `end` or `end_time`. `columns`, `where` (a filter) and `partitions` (globs) select columns and
    rows; `order_by` has names of columns, or `OrderBy` values for other orders; `limit` is the greatest number of rows.
    `meta` adds the five meta columns, `corrected_since` what has corrected each row since the version that is read.
    `destination` is a folder to which the files are copied, too, such as `s3://warehouse/reports`.
    """

    query: ReadQuery
    version: int
    as_of: datetime
    tag: str
    begin: int
    begin_time: datetime
    end: int
    end_time: datetime
    columns: Sequence[str]
    where: str
    partitions: Sequence[str]
    order_by: Sequence[str | ReadOrder]
    limit: int
    meta: bool
    destination: str
    corrected_since: bool


class ReadJobCalls(DownloadCalls):
    """Runs read jobs and downloads their results."""

    async def read(
        self, dataset: Dataset | str, *, wait: float = 600, **options: Unpack[ReadOptions]
    ) -> ArrowData:
        """The rows of a read job, all in memory: see `ReadOptions`.

        Raises JobUnfinished; Problem if it fails.
        """
        return await self.read_result(await self.start_read(dataset, format="arrow", wait=wait, **options))

    async def read_result(self, job: Job | str) -> ArrowData:
        """The rows of a succeeded read job of the format `arrow`, all in memory."""
        answer = await self._get(f"{job_path(job)}/result")
        if answer.headers["headwater-disposition"] == "inline":
            return ArrowData(parts=(answer.content,))
        files = decoded(ReadFiles, answer).files
        return ArrowData(parts=tuple([(await self._get(file.links.self_)).content for file in files]))

    async def read_to_files(
        self,
        dataset: Dataset | str,
        folder: Path,
        *,
        format: FileFormat = "parquet",  # noqa: A002
        wait: float = 600,
        **options: Unpack[ReadOptions],
    ) -> list[Path]:
        """Reads rows to files and downloads these into a folder. Returns their paths, in order: see `ReadOptions`.

        Raises JobUnfinished, DamagedDownload; Problem if the job fails.
        """
        job = await self.start_read(dataset, format=format, disposition="files", wait=wait, **options)
        return await self.download_result(job, folder)

    async def start_read(
        self,
        dataset: Dataset | str,
        *,
        format: FileFormat = "json",  # noqa: A002
        disposition: Literal["inline", "files"] = "inline",
        idempotency_key: str | None = None,
        wait: float = 0,
        **options: Unpack[ReadOptions],
    ) -> Job:
        """A read job, whose result `result_files`, `download_result`, or `GET /jobs/{id}/result` gives."""
        request: dict[str, Any] = {**options, "format": format, "disposition": disposition}
        if "order_by" in options:
            request["order_by"] = [
                ReadOrder(column=each) if isinstance(each, str) else each for each in options["order_by"]
            ]
        return await self._start(
            f"{dataset_path(dataset)}/reads",
            request,
            idempotency_key=made_up(idempotency_key),
            wait=wait,
        )

    async def result_files(self, job: Job | str) -> ReadFiles:
        """The files of a read job that was requested in files, or whose result was too large for one answer."""
        return decoded(ReadFiles, await self._get(f"{job_path(job)}/result"))

    async def download_result(self, job: Job | str, folder: Path) -> list[Path]:
        """Downloads the files of a result; returns their paths, in order. Raises DamagedDownload."""
        await self._driver.run(partial(folder.mkdir, parents=True, exist_ok=True))
        listed = await self.result_files(job)
        return [await self.download_result_file(file, folder / file.name) for file in listed.files]

    async def download_result_file(self, file: ResultFile, path: Path) -> Path:
        """Downloads a file of a result to a path, which it has once it is complete. Raises DamagedDownload."""
        partial_path = path.with_name(f"{path.name}.part")
        await self._download_parts(file.links.self_, file.size_bytes, partial_path)
        if (await self._driver.run(partial_path.stat)).st_size != file.size_bytes:
            raise DamagedDownload(f"{file.name} does not match the result's list; download it again")
        return await self._driver.run(partial_path.replace, path)
