"""Exports on request: creates, changes and runs them, and reads their files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from app.core.catalog.values import Dataset
from app.core.changes.errors import NoFeed
from app.core.changes.positions import FeedStart
from app.core.changes.service.read_corrections import check_records_corrections
from app.features.exports.repository.exports import ExportStore
from app.features.exports.values import (
    Export,
    ExportChange,
    ExportDefinition,
    ExportRun,
    NewExport,
    NewRun,
    StartedRun,
)
from app.infra.files.errors import CorruptFile
from app.infra.files.folders.admitted import RefusedPath, admitted_root, is_below
from app.infra.files.folders.destination import SETTING
from app.infra.files.ports import ObjectStorage
from app.infra.identifiers import new_id
from app.kernel.changelog.change_selection import ChangeSelection
from app.kernel.format.dataset import ChangelogProducer
from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.result_file import RunFile
from app.kernel.paging import Page
from app.kernel.sql.conditions.row_access import RowAccess


@dataclass(frozen=True, kw_only=True, slots=True)
class ManageExports:
    """The exports of a tenant. `wake` is called after a job or a follower was recorded.

    `roots_of`: the folders below which a tenant, by its id, may have destinations.
    """

    exports: ExportStore
    storage: ObjectStorage
    storage_uri: str
    roots_of: Callable[[str], tuple[str, ...]]
    wake: Callable[[], None]

    def create(
        self,
        dataset: Dataset,
        definition: ExportDefinition,
        start: FeedStart,
        *,
        actor: str | None = None,
    ) -> Export:
        """Adds an export and starts its first run, unless there is no change yet.

        Raises InvalidRequest, InvalidFilter, NoFeed, NotFound, OffsetAhead, OffsetExpired, MaskedColumn,
        GrantNotApplicable, RestrictedGrant, SchemaChanged.
        """
        _check(dataset, definition)
        if definition.destination is not None:
            self._check_destination(dataset.tenant_id, definition.destination)
        new = NewExport(
            id=new_id(),
            dataset_id=dataset.id,
            schema_id=dataset.definition.schema.id,
            definition=definition,
            start=start,
            job_id=new_id(),
            actor=actor,
        )
        export = self.exports.create(dataset.tenant_id, new)
        self.wake()
        return export

    def _check_destination(self, tenant_id: str, uri: str) -> None:
        """Raises InvalidRequest."""
        try:
            admitted_root(uri, self.roots_of(tenant_id), SETTING)
            if is_below(uri, self.storage_uri) or is_below(self.storage_uri, uri):
                raise RefusedPath("the service keeps its own files there")
        except RefusedPath as reason:
            detail = f"{uri} cannot be a destination: {reason}"
            error = FieldError(pointer="/destination", detail=detail)
            raise InvalidRequest(f"destination: {detail}", [error]) from None

    def get(self, tenant_id: str, export_id: str) -> Export:
        """Raises NotFound."""
        return self.exports.get(tenant_id, export_id)

    def list(self, dataset: Dataset, access: RowAccess, *, page_size: int, page_token: str | None) -> Page:
        """Export items, the latest first, without those that show what the access does not."""
        page = self.exports.list(dataset.tenant_id, dataset.id, page_size=page_size, page_token=page_token)
        return page.filtered(lambda export: export.definition.access.within(access))

    def followers(self, tenant_id: str, limit: int) -> Sequence[Export]:
        """Up to `limit` exports that have not ended, of all datasets, the earliest first, without their runs."""
        return self.exports.followers(tenant_id, limit)

    def change(self, tenant_id: str, export_id: str, change: ExportChange) -> Export:
        """Raises NotFound, PreconditionFailed, ExportEnded, OffsetExpired."""
        export = self.exports.change(tenant_id, export_id, change)
        self.wake()
        return export

    def delete(self, tenant_id: str, export_id: str) -> None:
        """Ends the export, its jobs and its files. Raises NotFound."""
        self.exports.delete(tenant_id, export_id)
        self.wake()

    def start(self, export: Export, idempotency_key: str | None, *, actor: str | None = None) -> StartedRun:
        """A run from where the export stopped to the head.

        Raises NotFound, ExportEnded, OffsetExpired, IdempotencyMismatch.
        """
        new = NewRun(
            job_id=new_id(),
            idempotency_key=idempotency_key,
            request_hash=hashlib.sha256(f"run export {export.id}".encode()).hexdigest(),
            actor=actor,
        )
        outcome = self.exports.start(export.tenant_id, export.id, new)
        self.wake()
        return outcome

    def runs(self, tenant_id: str, export_id: str, *, page_size: int, page_token: str | None) -> Page:
        """ExportRun items, the latest first. Raises NotFound."""
        return self.exports.runs(tenant_id, export_id, page_size=page_size, page_token=page_token)

    def run(self, tenant_id: str, export_id: str, number: int) -> ExportRun:
        """A run with its manifest. Raises NotFound."""
        return self.exports.run(tenant_id, export_id, number)

    def file(self, tenant_id: str, export_id: str, number: int, name: str) -> RunFile:
        """A file of a run, after a check of its size. Raises NotFound, CorruptFile."""
        file = self.exports.file(tenant_id, export_id, number, name)
        size = self.storage.size(file.path)
        if size != file.size_bytes:
            raise CorruptFile(
                f"{file.path} has {size} bytes, its run recorded {file.size_bytes}", path=file.path
            )
        return file

    def open(self, file: RunFile) -> pa.NativeFile:
        """Its bytes. Raises CorruptFile."""
        return self.storage.open(file.path)


def _check(dataset: Dataset, definition: ExportDefinition) -> None:
    """Raises InvalidRequest, InvalidFilter, NoFeed."""
    if dataset.definition.changelog.producer is ChangelogProducer.NONE:
        raise NoFeed("an export needs a feed, and changelog.producer of the dataset is 'none'")
    if definition.corrected_since:
        check_records_corrections(dataset)
    ChangeSelection.of(
        dataset.definition,
        dataset.definition.schema,
        columns=definition.columns,
        where=definition.where,
        partitions=definition.partitions,
        access=definition.access,
    )
