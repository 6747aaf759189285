"""The quarantine of a dataset: listing bad records, redriving them after repair, discarding them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from app.access.errors import NotFound
from app.core.catalog.service import refuse_derived
from app.core.catalog.values import Dataset
from app.core.jobs.kinds.write import WriteRequest
from app.core.jobs.repository.jobs import JobStore
from app.core.jobs.values import Accepted, NewJob, RequestKey
from app.features.quarantine.errors import AlreadyRedriven
from app.features.quarantine.repository import QuarantineStore
from app.features.quarantine.values import QuarantinePart, RecordRange
from app.infra.files.ports import ObjectStorage
from app.infra.files.quarantine_file import QuarantineFileStore
from app.infra.identifiers import new_id, new_instant_id
from app.kernel.codecs.record_errors import BadRecord, BadRecords
from app.kernel.commit.write_options import OnError, WriteOptions
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.operation import Operation, matches_equal_rows
from app.kernel.format.paths import body_path, dataset_prefix
from app.kernel.format.quarantine import QuarantineFile
from app.kernel.format.rows.formats import Format
from app.kernel.format.rows.staged import RawInput
from app.kernel.paging import Page, PageTokens

REDRIVE_RECORDS_MAX: Final = 100_000
_PAGE_BYTES: Final = 8 << 20


class QuarantinedRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record in quarantine. `redriven_by`: the job that redrove it, unless it failed."""

    id: str
    job_id: str
    record: BadRecord
    written_at: datetime
    redriven_by: str | None


class Redrive(RequestKey, frozen=True, kw_only=True):
    """Which records to redrive: all of a job that wait, or those named, some with another payload.

    `records`: repaired payloads by record id; None where the record is as it was. `request_hash` covers all of it.
    `accept_late`: records behind the watermark are written.
    """

    job_id: str | None = None
    records: Mapping[str, bytes | None] = {}
    accept_late: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Quarantine:
    """Bad records of a dataset's writes."""

    index: QuarantineStore
    files: QuarantineFileStore
    jobs: JobStore
    storage: ObjectStorage
    wake: Callable[[], None]

    def page(self, dataset: Dataset, *, job_id: str | None, page_size: int, page_token: str | None) -> Page:
        """QuarantinedRecord items in the order in which they were quarantined; a page of few megabytes ends early.

        Raises InvalidRequest, CorruptFile.
        """
        tokens = PageTokens("quarantine", dataset.id, job_id)
        after = None if page_token is None else _position(tokens.position(page_token), "/page_token")
        parts = self.index.parts(dataset.tenant_id, dataset.id, job_id, after, page_size + 1)
        items: list[QuarantinedRecord] = []
        size = 0
        for part in parts:
            with closing(self.files.read(part.file, part.first, part.count)) as records:
                for number, record in enumerate(records, part.first):
                    if len(items) == page_size or size > _PAGE_BYTES:
                        return Page(items=items, next_token=tokens.encode(items[-1].id))
                    items.append(_quarantined(part, number, record))
                    size += len(record.payload)
        return Page(items=items, next_token=None)

    def redrive(self, dataset: Dataset, redrive: Redrive) -> Accepted:
        """Accepts a write of the records, like the one that they were part of; bad ones are quarantined again.

        At most 100,000 records of a job are taken at a time.
        Raises InvalidRequest, NotFound, AlreadyRedriven, IdempotencyMismatch, DerivedDataset, CorruptFile, StorageFull.
        """
        refuse_derived(dataset)
        tenant_id = dataset.tenant_id
        if redrive.idempotency_key is not None:
            earlier_job = self.jobs.find_by_key(
                tenant_id, dataset.id, redrive.idempotency_key, redrive.request_hash
            )
            if earlier_job is not None:
                return Accepted(job=earlier_job, is_replay=True)
        part_ranges = (
            self._named(dataset, redrive)
            if redrive.job_id is None
            else self._waiting(dataset, redrive.job_id)
        )
        original = self.jobs.get(tenant_id, part_ranges[0][0].job_id)
        if original.write.transforms:
            raise InvalidRequest(
                f"the records of job {original.id} were read by a source with a transform, so they are no rows of the "
                "dataset: read them, repair them, and let the source read them again, or write the rows they make"
            )
        job_id = new_id()
        raw = self._body(dataset, job_id, part_ranges, redrive.records)
        operation, options = redriven_write(
            original.write, dataset.definition, accept_late=redrive.accept_late
        )
        new = NewJob(
            id=job_id,
            instant_id=new_instant_id(),
            dataset_id=dataset.id,
            request=WriteRequest(
                operation=operation,
                options=options,
                schema_id=dataset.definition.schema.id,
                by_value=matches_equal_rows(operation, dataset.definition),
                raw=raw,
            ),
            idempotency_key=redrive.idempotency_key,
            request_hash=redrive.request_hash,
            actor=redrive.actor,
        )
        try:
            redrive_job = self.index.redrive(tenant_id, new, [each for _, each in part_ranges])
        except AlreadyRedriven:
            self.storage.delete([raw.path])
            raise
        if redrive_job.is_replay:
            self.storage.delete([raw.path])
        else:
            self.wake()
        return redrive_job

    def discard(self, dataset: Dataset, job_id: str) -> None:
        """Removes the bad records of a job. Raises NotFound if it has none."""
        if not self.index.discard(dataset.tenant_id, dataset.id, job_id):
            raise NotFound(f"Job {job_id} has no records in quarantine")

    def _waiting(self, dataset: Dataset, job_id: str) -> list[tuple[QuarantinePart, RecordRange]]:
        part_ranges: list[tuple[QuarantinePart, RecordRange]] = []
        after: tuple[int, int] | None = None
        remaining_records = REDRIVE_RECORDS_MAX
        while remaining_records > 0:
            parts = self.index.parts(dataset.tenant_id, dataset.id, job_id, after, remaining_records)
            if not parts:
                break
            for part in parts:
                after = (part.number, part.first + part.count - 1)
                numbers = [n for n in range(part.first, part.first + part.count) if n not in part.redriven]
                remaining_records -= len(numbers)
                part_ranges += [(part, each) for each in ranges_of(part.file.path, numbers)]
        if not part_ranges:
            raise NotFound(f"Job {job_id} has no records in quarantine that wait")
        return part_ranges

    def _named(self, dataset: Dataset, redrive: Redrive) -> list[tuple[QuarantinePart, RecordRange]]:
        """The named records by part. Raises InvalidRequest for ids that are not valid or of several jobs."""
        records_by_part: dict[int, list[int]] = {}
        for place, reference in enumerate(redrive.records):
            number, record = _position(reference, f"/records/{place}/id")
            records_by_part.setdefault(number, []).append(record)
        parts = {
            part.number: part for part in self.index.named(dataset.tenant_id, dataset.id, records_by_part)
        }
        jobs = list(dict.fromkeys(parts[number].job_id for number in records_by_part if number in parts))
        faults = []
        for place, reference in enumerate(redrive.records):
            number, record = _position(reference, f"/records/{place}/id")
            part = parts.get(number)
            if part is None or record >= part.count:
                faults.append(_fault(place, f"there is no record {reference} in quarantine"))
            elif part.job_id != jobs[0]:
                faults.append(
                    _fault(
                        place,
                        f"it is of job {part.job_id}, others are of job {jobs[0]}; send one request for each job",
                    )
                )
        if faults:
            raise InvalidRequest(f"{faults[0].pointer}: {faults[0].detail}", faults)
        redriven_ids = [
            record_id(number, record)
            for number, records in records_by_part.items()
            for record in records
            if record in parts[number].redriven
        ]
        if redriven_ids:
            raise AlreadyRedriven(f"record {redriven_ids[0]} was redriven already", records=redriven_ids[:50])
        return [
            (parts[number], each)
            for number in sorted(records_by_part)
            for each in ranges_of(parts[number].file.path, records_by_part[number])
        ]

    def _body(
        self,
        dataset: Dataset,
        job_id: str,
        part_ranges: Sequence[tuple[QuarantinePart, RecordRange]],
        repairs: Mapping[str, bytes | None],
    ) -> RawInput:
        path = body_path(dataset_prefix(dataset.tenant_id, dataset.id), job_id)
        with self.files.sink(path) as sink:
            bad_records = BadRecords(write=sink.write)
            for part, each in part_ranges:
                for number, record in enumerate(
                    self.files.read(part.file, each.first, each.count), each.first
                ):
                    payload = repairs.get(record_id(part.number, number))
                    bad_records.put(_sent_again(record, payload))
            bad_records.close()
        file = _written(sink.file)
        return RawInput(
            path=path,
            size_bytes=file.size_bytes,
            checksum=file.checksum,
            format=Format.PARQUET,
            records=True,
        )


def redriven_write(
    original: WriteRequest, dataset: DatasetDefinition, *, accept_late: bool = False
) -> tuple[Operation, WriteOptions]:
    """The request of a redrive: that of the original write, except that it removes no rows but those of its keys.

    An overwrite or a snapshot of a few repaired records would replace the whole table by them, so these are upserted,
    or inserted without a key. The expected version and the batch of the original write are omitted.
    `accept_late`: late rows are written, whatever the watermark of the dataset says.
    """
    options = WriteOptions(
        on_error=OnError.QUARANTINE,
        merge_schema=original.options.merge_schema,
        explicit_cast=original.options.explicit_cast,
        tombstone=original.options.tombstone,
        accept_late=accept_late,
    )
    if original.operation.replaces:
        return (Operation.UPSERT if dataset.keyed else Operation.INSERT), options
    return original.operation, msgspec.structs.replace(
        options, drop_duplicates=original.options.drop_duplicates, order=original.options.order
    )


def record_id(number: int, record: int) -> str:
    """The id of a record: the number of its file, and its row in it."""
    return f"{number}-{record}"


def ranges_of(path: str, records: Iterable[int]) -> list[RecordRange]:
    """Records of a file, by number, as few ranges."""
    ranges: list[RecordRange] = []
    for record in sorted(records):
        last = ranges[-1] if ranges else None
        if last is not None and last.first + last.count == record:
            ranges[-1] = RecordRange(path=path, first=last.first, count=last.count + 1)
        else:
            ranges.append(RecordRange(path=path, first=record, count=1))
    return ranges


def _position(text: str, pointer: str) -> tuple[int, int]:
    parts = text.split("-")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() and len(part) < 19 for part in parts):
        detail = "expected the id of a record in quarantine, such as 12-0"
        if pointer == "/page_token":
            detail = "expected next_page_token of the page before"
        raise InvalidRequest(f"{pointer}: {detail}", [FieldError(pointer=pointer, detail=detail)])
    return int(parts[0]), int(parts[1])


def _fault(place: int, detail: str) -> FieldError:
    return FieldError(pointer=f"/records/{place}/id", detail=detail)


def _quarantined(part: QuarantinePart, number: int, record: BadRecord) -> QuarantinedRecord:
    return QuarantinedRecord(
        id=record_id(part.number, number),
        job_id=part.job_id,
        record=msgspec.structs.replace(record, position=part.file.first_row + record.position),
        written_at=part.written_at,
        redriven_by=part.redriven.get(number),
    )


def _sent_again(record: BadRecord, payload: bytes | None) -> BadRecord:
    """The record without its faults, repaired if there is another payload."""
    return msgspec.structs.replace(record, errors=(), payload=record.payload if payload is None else payload)


def _written(file: QuarantineFile | None) -> QuarantineFile:
    if file is None:
        raise AssertionError("records were chosen, so there is a file of them")
    return file
