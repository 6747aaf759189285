"""Accepts writes that register their dataset: the dataset and the job are recorded together, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from io import BytesIO
from typing import Final

import msgspec

from app.core.catalog.errors import DatasetExists
from app.core.catalog.repository.catalog import CatalogStore
from app.core.catalog.values import Dataset
from app.core.jobs.values import Accepted, NewJob
from app.features.writes.repository import CreationStore
from app.features.writes.service.accept import AcceptWrite, checked_write
from app.features.writes.values import Body, IncomingWrite, NewPlace
from app.infra.errors import Unavailable
from app.infra.files.column_sample import SAMPLE_BYTES_MAX, ColumnSample, SampleTooLarge, sample_columns
from app.infra.files.ports import ObjectStorage
from app.infra.files.received_body import StoredBody
from app.kernel.commit.write_options import OnError
from app.kernel.commit.write_rules import brings_rows
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateDataset, CreateWithRows, schema_of
from app.kernel.format.definition.schema_merge import inferred_types
from app.kernel.format.errors import FieldError, HeadwaterError, InvalidDataset, InvalidRequest
from app.kernel.format.operation import Operation

_COPY_BYTES: Final = 1024 * 1024
_STATE_COLUMNS: Final = "state the columns (create.schema, or the query parameter schema of a raw body)"
_CREATING: Final = (
    Operation.INSERT,
    Operation.UPSERT,
    Operation.BULK_INSERT,
    Operation.OVERWRITE,
    Operation.SNAPSHOT,
    Operation.CHANGELOG,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class AcceptNewDataset:
    """See the module. `wake` is called after a job was recorded."""

    catalog: CatalogStore
    creations: CreationStore
    writes: AcceptWrite
    storage: ObjectStorage
    wake: Callable[[], None]

    def accept(self, place: NewPlace, incoming: IncomingWrite) -> Accepted:
        """Checks the write, infers the columns, and records both. If the dataset has been registered meanwhile, the
        write is accepted as one to that dataset.

        Raises InvalidDataset, QuotaExceeded, and what `AcceptWrite.accept` raises.
        """
        try:
            dataset, incoming = self._defined(place, incoming, incoming.create or CreateWithRows())
            incoming = checked_write(incoming, dataset)
            new = _registering(self.writes.prepare(dataset, incoming))
        except HeadwaterError:
            self.writes.inputs.discard(incoming)
            raise
        try:
            outcome = self.creations.accept(place.tenant_id, dataset.definition, new)
        except DatasetExists:
            self.writes.inputs.withdraw(new)
            return self._accept_there(place, incoming)
        except Unavailable:
            # It may have been recorded.
            raise
        except HeadwaterError:
            self.writes.inputs.withdraw(new)
            self.writes.inputs.discard(incoming)
            raise
        self.wake()
        return outcome

    def _accept_there(self, place: NewPlace, incoming: IncomingWrite) -> Accepted:
        """Accepts the write to the dataset that another request has registered."""
        dataset = self.catalog.get(place.tenant_id, place.name)
        write = incoming
        match incoming.source:
            case Body(content=StoredBody(path=path)) as body:
                # The folder of a dataset that there is not would never be cleaned.
                content = self._copied(dataset, path)
                write = msgspec.structs.replace(
                    incoming, source=msgspec.structs.replace(body, content=content)
                )
        self.writes.inputs.discard(incoming)
        return self.writes.accept(dataset, write)

    def _copied(self, dataset: Dataset, path: str) -> bytes | StoredBody:
        with (
            self.writes.inputs.spool(dataset.tenant_id, dataset.id) as spool,
            self.storage.open(path) as file,
        ):
            for chunk in iter(partial(file.read, _COPY_BYTES), b""):
                spool.feed(chunk)
            return spool.finish()

    def _defined(
        self, place: NewPlace, incoming: IncomingWrite, create: CreateWithRows
    ) -> tuple[Dataset, IncomingWrite]:
        """The dataset that the rows describe, not yet registered, and the write to it."""
        if incoming.operation not in _CREATING or not brings_rows(incoming.operation, incoming.options):
            what = f"{incoming.operation.value} registers no dataset: it only deletes rows"
            raise InvalidRequest(what, [FieldError(pointer="/operation", detail=what)])
        schema = create.schema
        if schema is None:
            sample = self._sampled(incoming)
            shapes = sample.shapes
            if not sample.whole:
                # The worker reads the rest, and adds what is found there.
                merging = msgspec.structs.replace(incoming.options, merge_schema=True)
                incoming = msgspec.structs.replace(incoming, options=merging)
            types = inferred_types(
                shapes,
                explicit_cast=incoming.options.explicit_cast,
                moments=create.moments,
                required={*create.record_key, *create.partition_by, *create.moments},
            )
            if not types:
                nulls = f"the columns {', '.join(map(repr, shapes))} have no values" if shapes else ""
                what = f"{nulls or 'the rows have no columns'}: send rows, or {_STATE_COLUMNS}"
                raise InvalidRequest(what, [FieldError(pointer="/create/schema", detail=what)])
            schema = schema_of(types)
        dataset = Dataset(
            id=place.dataset_id,
            tenant_id=place.tenant_id,
            definition=_definition(
                create.named(place.name, schema),
                raw=isinstance(incoming.source, Body) and not incoming.source.in_envelope,
            ),
            version=0,
            next_offset=0,
            created_at=datetime.now(UTC),
            committed_at=None,
        )
        return dataset, incoming

    def _sampled(self, incoming: IncomingWrite) -> ColumnSample:
        """Raises InvalidRequest for a source of which a part is of no use, MalformedBody, SchemaMismatch."""
        sampled = partial(
            sample_columns,
            changes=incoming.operation is Operation.CHANGELOG,
            outliers=incoming.options.on_error is OnError.QUARANTINE,
            strict=True,
        )
        try:
            match incoming.source:
                case Body(content=bytes() as content, format=form, gzip=gzip):
                    return sampled(form, BytesIO(content), len(content), gzip=gzip)
                case Body(content=StoredBody(path=path, size_bytes=size), format=form, gzip=gzip):
                    with self.storage.open(path) as file:
                        return sampled(form, file, size, gzip=gzip)
        except SampleTooLarge:
            what = (
                f"no columns are inferred from more than {SAMPLE_BYTES_MAX} bytes of this format: {_STATE_COLUMNS}, "
                "register the dataset first, or send NDJSON, Arrow or Parquet"
            )
            raise InvalidRequest(what, [FieldError(pointer="/create/schema", detail=what)]) from None
        what = "rows in the request are required: uploads belong to a dataset that exists"
        raise InvalidRequest(what, [FieldError(pointer="/source", detail=what)])


def _definition(new: CreateDataset, *, raw: bool) -> DatasetDefinition:
    """Raises InvalidDataset whose pointers are those of the request. `raw`: its options are query parameters."""
    try:
        return define_dataset(new)
    except InvalidDataset as error:
        faults = [
            FieldError(
                pointer=each["pointer"] if raw or each["pointer"] == "/name" else f"/create{each['pointer']}",
                detail=each["detail"],
            )
            for each in error.facts["errors"]
        ]
        raise InvalidDataset("the dataset cannot be registered with these rows", faults) from None


def _registering(new: NewJob) -> NewJob:
    return msgspec.structs.replace(new, request=msgspec.structs.replace(new.write, creates=True))
