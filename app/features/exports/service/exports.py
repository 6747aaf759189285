"""Exports on request: creates, changes and runs them, and reads their files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache

import msgspec
import pyarrow as pa

from app.core.catalog.service import GrantedDatasets
from app.core.catalog.values import Dataset
from app.core.changes.errors import NoFeed
from app.core.changes.positions import FeedStart, StartingPosition
from app.core.changes.service.read_corrections import check_records_corrections
from app.core.timeline.ports import VersionReader
from app.core.timeline.service.accept_pinned import lease_for_job
from app.core.timeline.service.version_definition import definition_at
from app.features.exports.repository.exports import ExportStore
from app.features.exports.selection import export_selection, export_spec
from app.features.exports.service.destinations import Destinations
from app.features.exports.tasks import ExportQuery
from app.features.exports.values import (
    Export,
    ExportChange,
    ExportDefinition,
    ExportRun,
    ExportState,
    NewExport,
    NewRun,
    StartedRun,
)
from app.features.versions.service.versions import VersionOf
from app.infra.files.errors import CorruptFile
from app.infra.files.ports import ObjectStorage
from app.infra.identifiers import new_id
from app.kernel.format.dataset import ChangelogProducer
from app.kernel.format.result_file import RunFile
from app.kernel.paging import Page
from app.kernel.sql.conditions.row_access import RowAccess


class AtVersion(msgspec.Struct, frozen=True, kw_only=True):
    """The version of a snapshot, by its number, a time or its name; the latest at each run if none is set."""

    version: int | None = None
    as_of: datetime | None = None
    tag: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ManageExports:
    """The exports of a tenant. `wake` is called after a job or a follower was recorded."""

    exports: ExportStore
    timeline: VersionReader
    versions: VersionOf
    storage: ObjectStorage
    destinations: Destinations
    wake: Callable[[], None]

    def create(
        self,
        dataset: Dataset,
        definition: ExportDefinition,
        start: FeedStart | AtVersion,
        *,
        actor: str | None = None,
    ) -> Export:
        """Adds an export and starts its first run, unless there is no change yet. `start`: of a snapshot, the version.

        Raises InvalidRequest, InvalidFilter, NoFeed, NotFound, OffsetAhead, OffsetExpired, VersionExpired,
        MaskedColumn, GrantNotApplicable, RestrictedGrant, SchemaChanged.
        """
        at = start if isinstance(start, AtVersion) else AtVersion()
        if at != AtVersion():
            version = self.versions.find(dataset, version=at.version, as_of=at.as_of, tag=at.tag)
            definition = msgspec.structs.replace(definition, version=version)
        self._check(dataset, definition)
        if definition.destination is not None:
            self.destinations.check(dataset.tenant_id, definition.destination)
        new = NewExport(
            id=new_id(),
            dataset_id=dataset.id,
            schema_id=dataset.definition.schema.id,
            definition=definition,
            start=StartingPosition.NOW if isinstance(start, AtVersion) else start,
            job_id=new_id(),
            actor=actor,
        )
        if definition.version is None:
            export = self.exports.create(dataset.tenant_id, new)
        else:
            with lease_for_job(self.versions.leases, dataset, definition.version, new.job_id):
                export = self.exports.create(dataset.tenant_id, new)
        self.wake()
        return export

    def get(self, tenant_id: str, export_id: str) -> Export:
        """Raises NotFound."""
        return self.exports.get(tenant_id, export_id)

    def list(self, dataset: Dataset, access: RowAccess, *, page_size: int, page_token: str | None) -> Page:
        """Export items, the latest first, without those that show what the access does not."""
        page = self.exports.list(dataset.tenant_id, dataset.id, page_size=page_size, page_token=page_token)
        return page.filtered(lambda export: export.definition.access.within(access))

    def list_granted(
        self,
        granted_datasets: GrantedDatasets,
        reference: str | None,
        state: ExportState | None,
        *,
        page_size: int,
        page_token: str | None,
    ) -> Page:
        """Export items of granted datasets, the latest first; of one dataset, and in one state, unless None.

        Of a dataset that the principal sees in part, those that show no more than it sees. Raises NotFound.
        """
        tenant_id = granted_datasets.principal.tenant_id
        page = self.exports.list(
            tenant_id,
            None if reference is None else granted_datasets.seen(tenant_id, reference)[0].id,
            state,
            page_size=page_size,
            page_token=page_token,
            patterns=granted_datasets.principal.patterns(granted_datasets.scope),
        )
        shows = cache(granted_datasets.shows)
        return page.filtered(lambda export: shows(export.dataset_id, export.definition.access))

    def followers(
        self, tenant_id: str, limit: int, dataset_ids: Collection[str] | None = None
    ) -> Sequence[Export]:
        """Up to `limit` exports that have not ended, of these datasets or of all, the earliest first, without runs."""
        return self.exports.followers(tenant_id, limit, dataset_ids)

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

    def _check(self, dataset: Dataset, definition: ExportDefinition) -> None:
        """Raises InvalidRequest, InvalidFilter, NoFeed, MaskedColumn, GrantNotApplicable, RestrictedGrant."""
        if definition.corrected_since:
            check_records_corrections(dataset)
        if definition.query is ExportQuery.SNAPSHOT:
            version = dataset.version if definition.version is None else definition.version
            at = definition_at(self.timeline, dataset, version)
            export_selection(export_spec(dataset, definition, at))
            return
        if dataset.definition.changelog.producer is ChangelogProducer.NONE:
            raise NoFeed(
                "an export of changes needs a feed, and changelog.producer of the dataset is 'none': export the "
                "table by query `snapshot`"
            )
        export_selection(export_spec(dataset, definition, dataset.definition))
