"""Accepts writes: checks the rows, stores them, and records the job. An accepted write is durable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import msgspec
import pyarrow as pa

from app.access.tenants.repository.quotas import QuotaStore
from app.core.catalog.repository.catalog import CatalogStore
from app.core.catalog.service import refuse_derived
from app.core.catalog.values import Dataset, Upload
from app.core.jobs.repository.jobs import JobStore
from app.core.jobs.service.group_accept import GroupAccept
from app.core.jobs.values import Accepted, Job, NewJob, WriteRequest
from app.core.timeline.service.name_winner import NameWinner
from app.features.writes.values import Body, IncomingWrite, JsonRows, UploadLink, UploadReferences
from app.infra.files.ports import ObjectStorage
from app.infra.files.quarantine_file import QuarantineFileStore
from app.infra.files.received_body import BodySpool, StoredBody
from app.infra.files.s3.links import StorageLinks
from app.infra.files.staged_file import StagedFileStore
from app.kernel.codecs.csv.csv_rows import decode_csv
from app.kernel.codecs.gzip_stream import gunzip_stream
from app.kernel.codecs.json.json_rows import decode_json_rows, decode_ndjson
from app.kernel.codecs.record_errors import BadRecords
from app.kernel.commit.write_options import OnError
from app.kernel.commit.write_rules import brings_rows, check_options, resolve_mode
from app.kernel.format.errors import (
    BodyTooLarge,
    CorruptFile,
    FieldError,
    InvalidRequest,
    LinksUnavailable,
    MalformedBody,
    UploadIncomplete,
)
from app.kernel.format.identifiers import new_id, new_instant_id
from app.kernel.format.operation import Operation, input_schema, matches_equal_rows
from app.kernel.format.paths import (
    body_path,
    dataset_prefix,
    job_of,
    quarantine_prefix,
    staged_path,
    upload_path,
)
from app.kernel.format.rows.formats import Format
from app.kernel.format.rows.row_limits import RowLimits
from app.kernel.format.rows.staged import RawInput, StagedFile
from app.kernel.format.schema.schema import Schema


def checked_write(incoming: IncomingWrite, dataset: Dataset) -> IncomingWrite:
    """The write in terms of operations alone.

    Raises InvalidRequest for what does not go together, DerivedDataset.
    """
    refuse_derived(dataset)
    operation, options = resolve_mode(incoming.operation, incoming.options)
    check_options(operation, options, dataset.definition)
    if brings_rows(operation, options) == (incoming.source is None):
        what = "this member is required: the write needs rows"
        if incoming.source is not None:
            what = f"{operation.value} takes no rows here: leave the source out"
        raise InvalidRequest(f"source: {what}", [FieldError(pointer="/source", detail=what)])
    if incoming.idempotency_key is not None and options.batch_id is not None:
        what = "writer_id and batch_id make a retry safe by themselves: leave the Idempotency-Key out"
        raise InvalidRequest(what, [FieldError(pointer="/Idempotency-Key", detail=what)])
    return msgspec.structs.replace(incoming, operation=operation, options=options)


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceptWrite:
    """Accepts writes and uploads. `wake` is called after a job was recorded; losing it costs latency only."""

    catalog: CatalogStore
    jobs: JobStore
    group: GroupAccept
    quotas: QuotaStore
    storage: ObjectStorage
    staged: StagedFileStore
    quarantine: QuarantineFileStore
    winners: NameWinner
    wake: Callable[[], None]
    inline_bytes_max: int
    upload_bytes_max: int
    limits: RowLimits

    def spool(self, tenant_id: str, dataset_id: str) -> BodySpool:
        """Where the chunks of a raw write body go."""
        path = body_path(dataset_prefix(tenant_id, dataset_id), new_id())
        return BodySpool(
            self.storage, path, memory_bytes_max=self.inline_bytes_max, bytes_max=self.upload_bytes_max
        )

    def check_upload(self, dataset: Dataset) -> None:
        """Called before the body is read. Raises QuotaExceeded if the tenant has stored as much as it may."""
        self.quotas.check_metered(dataset.tenant_id, "storage_bytes")

    def spool_upload(self, dataset: Dataset, upload_id: str) -> BodySpool:
        """Where the chunks of an upload go."""
        path = upload_path(dataset_prefix(dataset.tenant_id, dataset.id), upload_id)
        return BodySpool(self.storage, path, memory_bytes_max=0, bytes_max=self.upload_bytes_max)

    def record_upload(self, dataset: Dataset, upload: Upload) -> None:
        """Makes a finished upload known, so that writes can name it."""
        self.catalog.add_upload(dataset.tenant_id, upload)

    def link_upload(
        self, dataset: Dataset, links: StorageLinks | None, *, size_bytes: int, sha256: str
    ) -> UploadLink:
        """An upload whose bytes go to the storage by themselves.

        Raises LinksUnavailable, BodyTooLarge, QuotaExceeded, StorageUnavailable, NotFound.
        """
        if links is None:
            raise LinksUnavailable(
                "this service gives no links to its storage; send the bytes to POST /datasets/{dataset}/uploads"
            )
        if size_bytes > self.upload_bytes_max:
            most = self.upload_bytes_max
            raise BodyTooLarge(
                f"the upload has {size_bytes} bytes, over the limit of {most}", limit_bytes=most
            )
        self.check_upload(dataset)
        now, upload_id = datetime.now(UTC), new_id()
        upload = Upload(
            id=upload_id,
            dataset_id=dataset.id,
            path=upload_path(dataset_prefix(dataset.tenant_id, dataset.id), upload_id),
            size_bytes=size_bytes,
            checksum=sha256,
            created_at=now,
        )
        url, headers = links.upload(upload.path, size_bytes=size_bytes, sha256=sha256)
        self.record_upload(dataset, upload)
        return UploadLink(
            upload=upload, url=url, headers=headers, expires_at=now + timedelta(seconds=links.seconds)
        )

    def accept(self, dataset: Dataset, incoming: IncomingWrite) -> Accepted:
        """Checks and records a write.

        Raises InvalidRequest, InvalidFilter, SchemaMismatch, MalformedBody, RowTooLarge, TooManyRows, NotFound,
        IdempotencyMismatch, BatchOutOfOrder, CommitConflict, DerivedDataset, StorageFull.
        """
        incoming = checked_write(incoming, dataset)
        known = self._known(dataset, incoming)
        if known is not None:
            self.discard(incoming)
            return Accepted(job=known, replayed=True)
        new = self.prepare(dataset, incoming)
        accepted = self.group.accept(dataset.tenant_id, new)
        if accepted.replayed:
            self.withdraw(new)
            self.discard(incoming)
        else:
            self.wake()
        return accepted

    def prepare(self, dataset: Dataset, incoming: IncomingWrite) -> NewJob:
        """The job of a write that was checked, its rows staged; it is still to be recorded. Raises as `accept`."""
        expected = incoming.options.expected_version
        if expected is not None and expected < dataset.version:
            # It only grows; what is still to come is judged at the commit.
            self.winners.check_version(dataset.tenant_id, dataset.id, expected, dataset.version)
        job_id = new_id()
        return NewJob(
            id=job_id,
            instant_id=new_instant_id(),
            dataset_id=dataset.id,
            request=self._request(dataset, incoming, job_id),
            idempotency_key=incoming.idempotency_key,
            request_hash=incoming.request_hash,
            actor=incoming.actor,
        )

    def withdraw(self, new: NewJob) -> None:
        """Removes what was written for a job that will not be recorded."""
        request = new.write
        made = [file.path for file in request.staged if file.content is None]
        made += [file.path for file in request.quarantined]
        if request.raw is not None and job_of(request.raw.path) == new.id:
            made.append(request.raw.path)
        self.storage.delete(made)

    def _known(self, dataset: Dataset, incoming: IncomingWrite) -> Job | None:
        """The job of an earlier identical request. Raises IdempotencyMismatch, BatchOutOfOrder."""
        options = incoming.options
        if incoming.idempotency_key is not None:
            return self.jobs.find_by_key(
                dataset.tenant_id, dataset.id, incoming.idempotency_key, incoming.request_hash
            )
        if options.writer_id is not None and options.batch_id is not None:
            return self.jobs.find_by_batch(dataset.tenant_id, dataset.id, options.writer_id, options.batch_id)
        return None

    def discard(self, incoming: IncomingWrite) -> None:
        """Removes the body of a write that is not accepted."""
        match incoming.source:
            case Body(content=StoredBody(path=path)):
                self.storage.delete([path])

    def _request(self, dataset: Dataset, incoming: IncomingWrite, job_id: str) -> WriteRequest:
        request = WriteRequest(
            operation=incoming.operation,
            options=incoming.options,
            schema_id=dataset.definition.schema.id,
            by_value=matches_equal_rows(incoming.operation, dataset.definition),
        )
        prefix = dataset_prefix(dataset.tenant_id, dataset.id)
        with self.quarantine.sink(f"{quarantine_prefix(prefix, job_id, 0)}.parquet") as sink:
            bad_records = (
                BadRecords(write=sink.write) if incoming.options.on_error is OnError.QUARANTINE else None
            )
            rows = self._rows(dataset, incoming, job_id, bad_records)
            if bad_records is not None:
                bad_records.close()
        if isinstance(rows, RawInput):
            return msgspec.structs.replace(request, raw=rows)
        return msgspec.structs.replace(
            request,
            staged=() if rows is None else self._stage(dataset, incoming.operation, rows, job_id),
            quarantined=() if sink.file is None else (sink.file,),
        )

    def _rows(
        self, dataset: Dataset, incoming: IncomingWrite, job_id: str, bad_records: BadRecords | None
    ) -> RawInput | pa.Table | None:
        """The rows of a small text, where the others are to be read from, or None for a write without rows."""
        schema = input_schema(incoming.operation, dataset.definition)
        match incoming.source:
            case UploadReferences(upload_ids=upload_ids, format=form, gzip=gzip):
                return self._uploaded(dataset, upload_ids, form, gzip)
            case Body(
                content=StoredBody(path=path, size_bytes=size, checksum=checksum), format=form, gzip=gzip
            ):
                return RawInput(path=path, size_bytes=size, checksum=checksum, format=form, gzip=gzip)
            case JsonRows(text=text) if incoming.options.merge_schema:
                # Workers infer the schema from all values before they decode the first.
                return self._store(dataset, text, Format.JSON_ROWS, False, job_id)
            case Body(content=bytes() as content, format=form, gzip=gzip) if incoming.options.merge_schema:
                return self._store(dataset, content, form, gzip, job_id)
            case JsonRows(text=text):
                return decode_json_rows(text, schema, bad_records=bad_records, limits=self.limits)
            case Body(content=bytes() as content, format=form, gzip=gzip):
                decoded = self._decode_small(content, form, gzip, schema, bad_records)
                return self._store(dataset, content, form, gzip, job_id) if decoded is None else decoded
            case _:
                return None

    def _uploaded(self, dataset: Dataset, upload_ids: tuple[str, ...], form: Format, gzip: bool) -> RawInput:
        uploads = self.catalog.get_uploads(dataset.tenant_id, dataset.id, upload_ids)
        size, most = sum(upload.size_bytes for upload in uploads), self.upload_bytes_max
        if size > most:
            raise BodyTooLarge(f"the uploads have {size} bytes, over the limit of {most}", limit_bytes=most)
        for upload in uploads:
            self._check_arrived(upload)
        first, *others = (
            RawInput(
                path=upload.path,
                size_bytes=upload.size_bytes,
                checksum=upload.checksum,
                format=form,
                gzip=gzip,
            )
            for upload in uploads
        )
        return msgspec.structs.replace(first, others=tuple(others))

    def _check_arrived(self, upload: Upload) -> None:
        """Raises UploadIncomplete if the bytes of an upload that were to be sent to a link are not there."""
        if not upload.linked:
            return
        try:
            size = self.storage.size(upload.path)
        except CorruptFile:
            size = None
        if size != upload.size_bytes:
            found = "no bytes were" if size is None else f"{size} bytes were"
            raise UploadIncomplete(
                f"upload {upload.id} was to have {upload.size_bytes} bytes, and {found} sent to its link; send them, "
                "or request another link",
                upload_id=upload.id,
                size_bytes=upload.size_bytes,
            )

    def _decode_small(
        self, content: bytes, form: Format, gzip: bool, schema: Schema, bad_records: BadRecords | None
    ) -> pa.Table | None:
        """The rows of a small text body; None where a worker must decode it.

        Parquet and Arrow can expand without bound, so they are decoded by Spark's processes, never in the API.
        """
        if form not in _TEXT_DECODERS:
            return None
        if gzip:
            try:
                content = b"".join(gunzip_stream(iter((content,)), expanded_bytes_max=self.inline_bytes_max))
            except BodyTooLarge:
                return None
            if not content:
                raise MalformedBody("the body is empty once decompressed")
        return _TEXT_DECODERS[form](content, schema, bad_records=bad_records, limits=self.limits)

    def _store(self, dataset: Dataset, content: bytes, form: Format, gzip: bool, job_id: str) -> RawInput:
        path = body_path(dataset_prefix(dataset.tenant_id, dataset.id), job_id)
        spool = BodySpool(self.storage, path, memory_bytes_max=0, bytes_max=self.upload_bytes_max)
        with spool:
            spool.feed(content)
            stored = spool.finish()
        if not isinstance(stored, StoredBody):
            raise AssertionError("a spool without memory stores every body")
        return RawInput(
            path=path, size_bytes=stored.size_bytes, checksum=stored.checksum, format=form, gzip=gzip
        )

    def _stage(
        self, dataset: Dataset, operation: Operation, rows: pa.Table, job_id: str
    ) -> tuple[StagedFile, ...]:
        path = staged_path(dataset_prefix(dataset.tenant_id, dataset.id), job_id)
        file = self.staged.stage(dataset.definition, operation, rows, path)
        return () if file is None else (file,)


_TEXT_DECODERS: dict[Format, Callable[..., pa.Table]] = {
    Format.NDJSON: decode_ndjson,
    Format.CSV: decode_csv,
    Format.JSON_ROWS: decode_json_rows,
}
