"""Writes: rows in any format, deletes without rows, compaction, clustering and analysis."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from headwater_client.arrow import encoded_stream
from headwater_client.calls.jobs import JobCalls
from headwater_client.models import (
    ClusterOrder,
    CreateClean,
    CreateClustering,
    CreateCompaction,
    CreateUploadLink,
    Dataset,
    Format,
    Job,
    Operation,
    Upload,
    UploadLink,
)
from headwater_client.transport.connection import dataset_path, decoded, made_up
from headwater_client.transport.driver import Body
from headwater_client.transport.encode import ndjson
from headwater_client.transport.pages import ARROW_STREAM
from headwater_client.write_options import DEFAULTS, WriteOptions

_MEDIA_TYPES: Final[Mapping[Format, str]] = {
    "ndjson": "application/x-ndjson",
    "csv": "text/csv",
    "arrow": ARROW_STREAM,
    "parquet": "application/vnd.apache.parquet",
}


class WriteCalls(JobCalls):
    """Writes to one dataset at a time."""

    async def write_rows(
        self,
        dataset: Dataset | str,
        rows: Iterable[Mapping[str, Any]],
        *,
        operation: Operation = "upsert",
        options: WriteOptions = DEFAULTS,
        idempotency_key: str | None = None,
        wait: float = 0,
    ) -> Job:
        """Writes rows of Python values; see `write` for the other parameters.

        Datetimes, dates, decimals and bytes are sent in the forms that the service reads. The rows of a `changelog` are
        changes, in the feed's form or Debezium's. Raises ValueError for NaN and infinity, TypeError for values without
        a JSON form.
        """
        return await self.write(
            dataset,
            ndjson(rows),
            "ndjson",
            operation=operation,
            options=options,
            idempotency_key=idempotency_key,
            wait=wait,
        )

    async def write_arrow(
        self,
        dataset: Dataset | str,
        table: Any,
        *,
        operation: Operation = "upsert",
        options: WriteOptions = DEFAULTS,
        idempotency_key: str | None = None,
        wait: float = 0,
    ) -> Job:
        """Writes a pyarrow table, batch or reader, or a data frame of polars or pandas; see `write` for the other
        parameters.

        Raises MissingPackage without pyarrow.
        """
        return await self.write(
            dataset,
            encoded_stream(table),
            "arrow",
            operation=operation,
            options=options,
            idempotency_key=idempotency_key,
            wait=wait,
        )

    async def write(
        self,
        dataset: Dataset | str,
        body: Body,
        format: Format,  # noqa: A002
        *,
        operation: Operation = "upsert",
        options: WriteOptions = DEFAULTS,
        gzip: bool = False,
        idempotency_key: str | None = None,
        wait: float = 0,
    ) -> Job:
        """Writes encoded rows: NDJSON, CSV, an Arrow stream or Parquet; a Path is streamed.

        Returns the job as soon as the write is durable. With `wait`, returns it once it has succeeded, and raises
        JobUnfinished after this number of seconds, Problem if it fails.
        """
        return await self._start(
            f"{dataset_path(dataset)}/writes",
            body=body,
            headers={"Content-Type": _MEDIA_TYPES[format]} | ({"Content-Encoding": "gzip"} if gzip else {}),
            params={"operation": operation} | options.params(),
            idempotency_key=_key(options, idempotency_key),
            wait=wait,
        )

    async def upload(
        self, dataset: Dataset | str, body: Body, *, idempotency_key: str | None = None
    ) -> Upload:
        """Stores a large input unchanged, to be written by `write_upload`; a Path is streamed."""
        answer = await self._send(
            "POST",
            f"{dataset_path(dataset)}/uploads",
            body=body,
            headers={
                "Content-Type": "application/octet-stream",
                "Idempotency-Key": made_up(idempotency_key),
            },
        )
        return decoded(Upload, answer)

    async def create_upload_link(
        self, dataset: Dataset | str, *, size_bytes: int, sha256: str, idempotency_key: str | None = None
    ) -> UploadLink:
        """Where to send a large input: a PUT to `url` with `headers`, to the storage. `sha256`: hexadecimal.

        Once it is there, `write_upload` writes it. Raises Problem `links-unavailable` if the service gives no links.
        """
        new = CreateUploadLink(size_bytes=size_bytes, sha256=sha256)
        return decoded(
            UploadLink, await self._create(f"{dataset_path(dataset)}/upload-links", new, idempotency_key)
        )

    async def write_upload(
        self,
        dataset: Dataset | str,
        upload: Upload | UploadLink | Sequence[Upload | UploadLink],
        format: Format,  # noqa: A002
        *,
        operation: Operation = "upsert",
        options: WriteOptions = DEFAULTS,
        gzip: bool = False,
        idempotency_key: str | None = None,
        wait: float = 0,
    ) -> Job:
        """Writes the rows of an upload, or of up to 1,000 uploads in one commit; see `write` for the other parameters.

        Several uploads cannot be compressed with gzip.
        """
        source: dict[str, Any] = {"kind": "upload", "format": format}
        if isinstance(upload, Upload | UploadLink):
            source["upload_id"] = upload.id
        else:
            source |= {"kind": "uploads", "upload_ids": [each.id for each in upload]}
        source |= {"compression": "gzip"} if gzip else {}
        envelope = {"operation": operation, "source": source} | options.members()
        return await self._write_envelope(dataset, envelope, _key(options, idempotency_key), wait)

    async def delete_where(
        self,
        dataset: Dataset | str,
        where: str,
        *,
        expected_version: int | None = None,
        metadata: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
        wait: float = 0,
    ) -> Job:
        """Deletes the rows that a filter selects, such as `price > 10 AND day < DATE '2026-01-01'`."""
        options = WriteOptions(expected_version=expected_version, metadata=metadata)
        envelope = {"operation": "delete", "where": where} | options.members()
        return await self._write_envelope(dataset, envelope, _key(options, idempotency_key), wait)

    async def delete_partitions(
        self,
        dataset: Dataset | str,
        globs: Sequence[str],
        *,
        expected_version: int | None = None,
        metadata: Mapping[str, str] | None = None,
        idempotency_key: str | None = None,
        wait: float = 0,
    ) -> Job:
        """Deletes the partitions whose paths match one of `globs`, such as `day=2026-11-*`."""
        options = WriteOptions(expected_version=expected_version, metadata=metadata)
        envelope = {"operation": "delete_partition", "partitions": list(globs)} | options.members()
        return await self._write_envelope(dataset, envelope, _key(options, idempotency_key), wait)

    async def compact(
        self,
        dataset: Dataset | str,
        *,
        partitions: Sequence[str] | None = None,
        idempotency_key: str | None = None,
        wait: float = 0,
    ) -> Job:
        """Folds logs, postponed writes, deletion vectors and small files into base files; see `write` for the other
        parameters.

        `partitions`: globs of those to compact. The job's `result` lists the rewritten files.
        """
        return await self._start(
            f"{dataset_path(dataset)}/compactions",
            CreateCompaction(partitions=None if partitions is None else tuple(partitions)),
            idempotency_key=made_up(idempotency_key),
            wait=wait,
        )

    async def analyze(
        self, dataset: Dataset | str, *, idempotency_key: str | None = None, wait: float = 0
    ) -> Job:
        """Counts the distinct values of each column, for the statistics of the dataset; see `write` for the parameters.

        The counts are estimates.
        """
        return await self._start(
            f"{dataset_path(dataset)}/analyses", idempotency_key=made_up(idempotency_key), wait=wait
        )

    async def clean(
        self,
        dataset: Dataset | str,
        *,
        versions: int | None = None,
        seconds: int | None = None,
        idempotency_key: str | None = None,
        wait: float = 0,
    ) -> Job:
        """Expires versions, except the last `versions` and those that were the latest within the last `seconds`.

        With neither, the dataset's `services.history` applies. Named versions and those with readers are kept.
        """
        return await self._start(
            f"{dataset_path(dataset)}/cleans",
            CreateClean(versions=versions, seconds=seconds),
            idempotency_key=made_up(idempotency_key),
            wait=wait,
        )

    async def cluster(
        self,
        dataset: Dataset | str,
        columns: Sequence[str] | None = None,
        *,
        order: ClusterOrder | None = None,
        partitions: Sequence[str] | None = None,
        idempotency_key: str | None = None,
        wait: float = 0,
    ) -> Job:
        """Orders rows by `columns`, so that filters on these read few rows; see `write` for the other parameters.

        The dataset's `services.clustering` is the default. `partitions`: globs; by default all partitions.
        """
        wanted = CreateClustering(
            columns=None if columns is None else tuple(columns),
            order=order,
            partitions=None if partitions is None else tuple(partitions),
        )
        return await self._start(
            f"{dataset_path(dataset)}/clusterings",
            wanted,
            idempotency_key=made_up(idempotency_key),
            wait=wait,
        )

    async def _write_envelope(
        self, dataset: Dataset | str, envelope: Mapping[str, Any], key: str | None, wait: float
    ) -> Job:
        return await self._start(
            f"{dataset_path(dataset)}/writes",
            envelope,
            idempotency_key=key,
            wait=wait,
        )


def _key(options: WriteOptions, idempotency_key: str | None) -> str | None:
    """The idempotency key; None for a batch of a stream, which is safe to repeat by its number."""
    return idempotency_key if options.writer_id is not None else made_up(idempotency_key)
