"""The input of writes: rows that are decoded and staged at once, and bodies that workers decode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec
import pyarrow as pa

from app.core.catalog.repository.catalog import CatalogStore
from app.core.catalog.values import Dataset, Upload
from app.core.jobs.kinds.write import WriteRequest
from app.core.jobs.values import NewJob
from app.features.writes.errors import UploadIncomplete
from app.features.writes.values import Body, IncomingWrite, UploadReferences
from app.infra.files.errors import CorruptFile
from app.infra.files.ports import ObjectStorage
from app.infra.files.quarantine_file import QuarantineFileStore
from app.infra.files.received_body import BodySpool, StoredBody
from app.infra.files.staged_file import StagedFileStore
from app.infra.identifiers import new_id
from app.kernel.codecs.csv.csv_rows import decode_csv
from app.kernel.codecs.gzip_stream import gunzip_stream
from app.kernel.codecs.json.json_rows import decode_json_rows, decode_ndjson
from app.kernel.codecs.record_errors import BadRecords
from app.kernel.commit.write_options import OnError
from app.kernel.format.errors import BodyTooLarge, MalformedBody
from app.kernel.format.operation import Operation, input_schema, matches_equal_rows
from app.kernel.format.paths import body_path, dataset_prefix, job_of, quarantine_prefix, staged_path
from app.kernel.format.rows.formats import Format
from app.kernel.format.rows.row_limits import RowLimits
from app.kernel.format.rows.staged import RawInput, StagedFile
from app.kernel.format.schema.schema import Schema

_TEXT_DECODERS: Final[dict[Format, Callable[..., pa.Table]]] = {
    Format.NDJSON: decode_ndjson,
    Format.CSV: decode_csv,
    Format.JSON_ROWS: decode_json_rows,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class WriteInputs:
    """Stores the input of writes, and removes that of writes that are not accepted."""

    catalog: CatalogStore
    storage: ObjectStorage
    staged_files: StagedFileStore
    quarantine: QuarantineFileStore
    inline_bytes_max: int
    """The size up to which a body is decoded by the API."""
    upload_bytes_max: int
    limits: RowLimits

    def spool(self, tenant_id: str, dataset_id: str) -> BodySpool:
        """Where the chunks of a raw write body go."""
        path = body_path(dataset_prefix(tenant_id, dataset_id), new_id())
        return BodySpool(
            self.storage, path, memory_bytes_max=self.inline_bytes_max, bytes_max=self.upload_bytes_max
        )

    def store(self, dataset: Dataset, incoming: IncomingWrite, job_id: str) -> WriteRequest:
        """The request of a job whose input is durable: staged, or stored as it was sent.

        Raises SchemaMismatch, MalformedBody, RowTooLarge, TooManyRows, BodyTooLarge, UploadIncomplete, NotFound,
        StorageFull.
        """
        request = WriteRequest(
            operation=incoming.operation,
            options=incoming.options,
            schema_id=dataset.definition.schema.id,
            by_value=matches_equal_rows(incoming.operation, dataset.definition),
        )
        schema = input_schema(incoming.operation, dataset.definition)
        prefix = dataset_prefix(dataset.tenant_id, dataset.id)
        with self.quarantine.sink(f"{quarantine_prefix(prefix, job_id, 0)}.parquet") as sink:
            bad_records = (
                BadRecords(write=sink.write) if incoming.options.on_error is OnError.QUARANTINE else None
            )
            ignored_fields: set[str] = set()
            rows = self._rows(dataset, incoming, schema, job_id, bad_records, ignored_fields)
            if bad_records is not None:
                bad_records.close()
        if isinstance(rows, RawInput):
            return msgspec.structs.replace(request, raw=rows)
        return msgspec.structs.replace(
            request,
            staged=() if rows is None else self._stage(dataset, incoming.operation, rows, job_id),
            quarantined=() if sink.file is None else (sink.file,),
            ignored_fields=tuple(sorted(ignored_fields)) or msgspec.UNSET,
        )

    def _rows(
        self,
        dataset: Dataset,
        incoming: IncomingWrite,
        schema: Schema,
        job_id: str,
        bad_records: BadRecords | None,
        ignored_fields: set[str],
    ) -> RawInput | pa.Table | None:
        """The rows of a small text, where the others are to be read from, or None for a write without rows."""
        match incoming.source:
            case UploadReferences(upload_ids=upload_ids, format=form, gzip=gzip):
                return self._uploaded(dataset, upload_ids, form, gzip)
            case Body(
                content=StoredBody(path=path, size_bytes=size, checksum=checksum), format=form, gzip=gzip
            ):
                return RawInput(path=path, size_bytes=size, checksum=checksum, format=form, gzip=gzip)
            case Body(content=bytes() as content, format=form, gzip=gzip) if incoming.options.merge_schema:
                # Workers infer the schema from all values before they decode the first.
                return self._store(dataset, content, form, gzip, job_id)
            case Body(content=bytes() as content, format=form, gzip=gzip):
                rows = self._decode_small(content, form, gzip, schema, bad_records, ignored_fields)
                return self._store(dataset, content, form, gzip, job_id) if rows is None else rows
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
            actual = "no bytes were" if size is None else f"{size} bytes were"
            raise UploadIncomplete(
                f"upload {upload.id} was to have {upload.size_bytes} bytes, and {actual} sent to its link; send them, "
                "or request another link",
                upload_id=upload.id,
                size_bytes=upload.size_bytes,
            )

    def _decode_small(
        self,
        content: bytes,
        form: Format,
        gzip: bool,
        schema: Schema,
        bad_records: BadRecords | None,
        ignored_fields: set[str],
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
        return _TEXT_DECODERS[form](
            content, schema, bad_records=bad_records, limits=self.limits, ignored_fields=ignored_fields
        )

    def _store(self, dataset: Dataset, content: bytes, form: Format, gzip: bool, job_id: str) -> RawInput:
        path = body_path(dataset_prefix(dataset.tenant_id, dataset.id), job_id)
        spool = BodySpool(self.storage, path, memory_bytes_max=0, bytes_max=self.upload_bytes_max)
        with spool:
            spool.feed(content)
            body = spool.finish()
        if not isinstance(body, StoredBody):
            raise AssertionError("a spool without memory stores every body")
        return RawInput(path=path, size_bytes=body.size_bytes, checksum=body.checksum, format=form, gzip=gzip)

    def _stage(
        self, dataset: Dataset, operation: Operation, rows: pa.Table, job_id: str
    ) -> tuple[StagedFile, ...]:
        path = staged_path(dataset_prefix(dataset.tenant_id, dataset.id), job_id)
        file = self.staged_files.stage(dataset.definition, operation, rows, path)
        return () if file is None else (file,)

    def withdraw(self, new: NewJob) -> None:
        """Removes what was written for a job that will not be recorded."""
        request = new.write
        paths = [file.path for file in request.staged if file.content is None]
        paths += [file.path for file in request.quarantined]
        if request.raw is not None and job_of(request.raw.path) == new.id:
            paths.append(request.raw.path)
        self.storage.delete(paths)

    def discard(self, incoming: IncomingWrite) -> None:
        """Removes the body of a write that is not accepted."""
        match incoming.source:
            case Body(content=StoredBody(path=path)):
                self.storage.delete([path])
