"""Registered datasets and uploads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Row,
    Select,
    any_,
    bindparam,
    column,
    func,
    insert,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY

from app.access.errors import NotFound, PreconditionFailed
from app.access.tenants.tables import tenants
from app.core.catalog.impact import ColumnReader, SchemaStep, refuse_broken
from app.core.catalog.repository.grants import key_readers
from app.core.catalog.repository.live_datasets import (
    COUNT,
    LiveDatasets,
    dataset_not_found,
    dataset_of,
    share_datasets,
)
from app.core.catalog.repository.notes import has_label, store_notes
from app.core.catalog.repository.participants import CatalogParticipants, DefinitionCommit
from app.core.catalog.repository.schemas import change_definition, schemas_of
from app.core.catalog.tables import datasets, heads, schema_versions, uploads
from app.core.catalog.values import (
    AwaitedHead,
    Dataset,
    DatasetFilter,
    DatasetName,
    DatasetSummary,
    SchemaVersion,
    Upload,
)
from app.infra.db.any_of import any_of, matches_any
from app.infra.db.session import Database
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.identifiers import is_uuid
from app.kernel.format.schema.schema import Schema
from app.kernel.paging import Page, PageTokens

_SCHEMA_ID_MAX: Final = 2**31 - 1
_ALL: Final = DatasetFilter()
_IDS: Final = bindparam("ids", type_=ARRAY(datasets.c.id.type))
_AWAITED: Final = (
    func.unnest(_IDS, bindparam("positions", type_=ARRAY(BigInteger)))
    .table_valued(column("id", datasets.c.id.type), column("position", BigInteger))
    .render_derived(name="awaited")
)
_LIVE: Final = select(datasets.c.id).where(datasets.c.id == any_(_IDS), datasets.c.deleted_at.is_(None))


class CatalogStore:
    """The catalogue in Postgres. `live` finds datasets within a transaction."""

    def __init__(self, database: Database, participants: CatalogParticipants) -> None:
        self._database = database
        self._participants = participants
        self.live: Final = LiveDatasets(participants.derivations)
        # Made once: requests that wait begin with it.
        self._moved: Final = (
            self.live.query()
            .join(_AWAITED, _AWAITED.c.id == datasets.c.id)
            .where(heads.c.next_offset > _AWAITED.c.position)
        )

    def create(
        self,
        tenant_id: str,
        dataset_id: str,
        definition: DatasetDefinition,
        notes: Mapping[str, Any] = MappingProxyType({}),
    ) -> Dataset:
        """`notes`: settings that are not of the table. Raises DatasetExists if a live dataset has the name,
        QuotaExceeded.
        """
        with self._database.tenant(tenant_id) as connection:
            return self.live.insert(connection, dataset_id, definition, notes)

    def count(self, tenant_id: str) -> int:
        """The datasets that count against the quota `datasets`."""
        with self._database.tenant(tenant_id) as connection:
            return connection.execute(COUNT).scalar_one()

    def get(self, tenant_id: str, reference: str) -> Dataset:
        """The dataset with this id or name. Raises NotFound."""
        with self._database.tenant(tenant_id) as connection:
            return self.live.find(connection, reference)

    def moved_heads(
        self, tenant_id: str, awaited_heads: Collection[AwaitedHead]
    ) -> dict[str, Dataset | None]:
        """The live ones of the datasets by id; None for one whose head is after none of the positions."""
        positions: dict[str, int] = {}
        for each in awaited_heads:
            positions[each.dataset_id] = min(each.position, positions.get(each.dataset_id, each.position))
        values = {"ids": list(positions), "positions": list(positions.values())}
        with self._database.tenant(tenant_id) as connection:
            moved_datasets = [dataset_of(row) for row in connection.execute(self._moved, values)]
            datasets_by_id: dict[str, Dataset | None] = {each.id: each for each in moved_datasets}
            if rest := positions.keys() - datasets_by_id.keys():
                datasets_by_id |= dict.fromkeys(connection.execute(_LIVE, {"ids": list(rest)}).scalars())
        return datasets_by_id

    def names(self, tenant_id: str, dataset_ids: Collection[str]) -> list[str]:
        """The names of those of the datasets that there are, deleted ones included."""
        return [each.name for each in self.names_by_id(tenant_id, dataset_ids).values()]

    def names_by_id(self, tenant_id: str, dataset_ids: Collection[str]) -> dict[str, DatasetName]:
        """The names of those of the datasets that there are, deleted ones included, by their ids."""
        query = select(datasets.c.id, datasets.c.name, datasets.c.deleted_at).where(
            any_of(datasets.c.id, dataset_ids)
        )
        with self._database.tenant(tenant_id) as connection:
            return {row.id: DatasetName(row.name, row.deleted_at) for row in connection.execute(query)}

    def names_with_tenant(self, tenant_id: str, dataset_id: str) -> tuple[str, str] | None:
        """The names of the tenant and of a dataset, also of a deleted one; None if there is no such dataset."""
        query = select(tenants.c.name, datasets.c.name.label("dataset"))
        query = query.join(datasets, datasets.c.tenant_id == tenants.c.tenant_id)
        with self._database.tenant(tenant_id) as connection:
            row = connection.execute(query.where(datasets.c.id == dataset_id)).one_or_none()
        return None if row is None else (row.name, row.dataset)

    def input_names(self, tenant_id: str, dataset_id: str) -> Sequence[str]:
        """The names of the datasets from which a dataset is derived; none if it is not derived, or was deleted."""
        with self._database.tenant(tenant_id) as connection:
            return self._participants.derivations.input_names(connection, dataset_id)

    def list(
        self,
        tenant_id: str,
        selection: DatasetFilter = _ALL,
        *,
        page_size: int,
        page_token: str | None,
    ) -> Page:
        """Live datasets by name. Raises InvalidRequest for a token that is not valid."""
        rows, tokens = self._page(tenant_id, self.live.query(), selection, page_size, page_token)
        return tokens.page(rows, page_size, lambda row: row.definition.name, dataset_of)

    def summaries(
        self,
        tenant_id: str,
        selection: DatasetFilter = _ALL,
        *,
        page_size: int,
        page_token: str | None,
    ) -> Page:
        """DatasetSummary items as `list` has them: definitions of many datasets take long to decode."""
        rows, tokens = self._page(tenant_id, self.live.summaries(), selection, page_size, page_token)
        names = rows[0]._fields if rows else ()
        return tokens.page(
            rows,
            page_size,
            lambda row: row.name,
            lambda row: DatasetSummary(**dict(zip(names, row, strict=True))),
        )

    def _page(
        self,
        tenant_id: str,
        query: Select[Any],
        selection: DatasetFilter,
        page_size: int,
        page_token: str | None,
    ) -> tuple[Sequence[Row[Any]], PageTokens]:
        """The rows of a page and one more, and the tokens of the list."""
        filters: list[Any] = [sorted(selection.labels)] if selection.labels else []
        if selection.name is not None:
            filters.append(selection.name)
        if selection.references is not None:
            filters.append({"references": sorted(selection.references)})
        tokens = PageTokens("datasets", tenant_id, *filters)
        query = query.order_by(datasets.c.name).limit(page_size + 1)
        for patterns in (selection.patterns, None if selection.name is None else (selection.name,)):
            if patterns is not None:
                query = query.where(matches_any(datasets.c.name, patterns))
        if selection.ids is not None:
            query = query.where(any_of(datasets.c.id, selection.ids))
        if selection.references is not None:
            query = query.where(_is_referenced(selection.references))
        query = query.where(*(has_label(key, value) for key, value in selection.labels))
        if page_token is not None:
            query = query.where(datasets.c.name > tokens.position(page_token))
        with self._database.tenant(tenant_id) as connection:
            return connection.execute(query).all(), tokens

    def delete(self, tenant_id: str, reference: str, *, version: int | None) -> None:
        """Ends the dataset and cancels its jobs; its name is free at once.

        A view ends with its dataset. Raises NotFound, PreconditionFailed, DatasetInUse if views read it.
        """
        with self._database.tenant(tenant_id) as connection:
            dataset_id = self.live.find(connection, reference).id
            head = _lock_head(connection, dataset_id)
            # Waits for requests that accept writes now, so that their jobs are cancelled here, too.
            still = select(datasets.c.deleted_at).where(datasets.c.id == dataset_id).with_for_update()
            if connection.execute(still).scalar_one() is not None:
                raise dataset_not_found(reference)
            if version is not None:
                _check_version(head, version)
            self._participants.derivations.check_unread(connection, dataset_id)
            end_dataset(connection, dataset_id, self._participants)

    def evolve(
        self,
        tenant_id: str,
        dataset_id: str,
        definition: DatasetDefinition,
        *,
        version: int,
        instant_id: str,
        actor: str | None = None,
        notes: Mapping[str, Any] = MappingProxyType({}),
        admit: Callable[[Sequence[ColumnReader]], None] = refuse_broken,
    ) -> Dataset:
        """Stores an evolved definition as the next version of the dataset, which must still be at `version`.

        `notes`: settings to change that are not of the table. `admit` is called with what a change of the schema
        breaks, which then pauses; it raises SchemaInUse to refuse the change.

        Raises NotFound, PreconditionFailed, DatasetExists if the definition has a name that is taken, SchemaInUse.
        """
        with self._database.tenant(tenant_id) as connection:
            self.live.find(connection, dataset_id)
            head = _lock_head(connection, dataset_id)
            # Read again, since it may have been deleted while this transaction waited for the lock.
            before = self.live.find(connection, dataset_id).definition
            _check_version(head, version)
            if definition.schema.id != before.schema.id:
                _pause_broken(
                    connection,
                    self._participants,
                    dataset_id,
                    SchemaStep(before=before, after=definition),
                    admit,
                )
            committed_at, next_offset = change_definition(
                connection, dataset_id, before, definition, version + 1
            )
            self._participants.history.definition_changed(
                connection,
                DefinitionCommit(
                    dataset_id=dataset_id,
                    version=version + 1,
                    committed_at=committed_at,
                    next_offset=next_offset,
                    schema_id=definition.schema.id,
                    instant_id=instant_id,
                    actor=actor,
                ),
            )
            store_notes(connection, dataset_id, notes)
            return self.live.find(connection, dataset_id)

    @contextmanager
    def trial(self, tenant_id: str) -> Iterator[None]:
        """What this thread changes of the tenant until the end is checked in full, and is not committed."""
        with self._database.tenant(tenant_id, shared=True) as connection:
            yield
            connection.rollback()

    def readers(self, tenant_id: str, dataset: Dataset) -> Sequence[ColumnReader]:
        """What names columns of the dataset."""
        step = SchemaStep(before=dataset.definition, after=dataset.definition)
        with self._database.tenant(tenant_id) as connection:
            return _readers(connection, self._participants, dataset.id, step)

    def note(self, tenant_id: str, dataset_id: str, notes: Mapping[str, Any], *, version: int) -> Dataset:
        """Changes settings that are not of the table, of a dataset that must still be at `version`, and stays there.

        Raises NotFound, PreconditionFailed.
        """
        with self._database.tenant(tenant_id) as connection:
            self.live.find(connection, dataset_id)
            head = _lock_head(connection, dataset_id)
            self.live.find(connection, dataset_id)
            _check_version(head, version)
            store_notes(connection, dataset_id, notes)
            return self.live.find(connection, dataset_id)

    def schema(self, tenant_id: str, dataset_id: str, schema_id: int) -> SchemaVersion:
        """Raises NotFound."""
        conditions = schema_versions.c.dataset_id == dataset_id, schema_versions.c.schema_id == schema_id
        with self._database.tenant(tenant_id) as connection:
            schemas = schemas_of(connection, *conditions, limit=1) if schema_id <= _SCHEMA_ID_MAX else []
        if not schemas:
            raise NotFound(f"The dataset has no schema {schema_id}")
        return schemas[0]

    def later_schemas(self, tenant_id: str, dataset_id: str, schema_id: int) -> Sequence[Schema]:
        """The schemas of the dataset after this one, in their order."""
        conditions = schema_versions.c.dataset_id == dataset_id, schema_versions.c.schema_id > schema_id
        with self._database.tenant(tenant_id) as connection:
            later = schemas_of(connection, *conditions, limit=None)
        return [each.schema for each in reversed(later)]

    def schemas(self, tenant_id: str, dataset_id: str, *, page_size: int, page_token: str | None) -> Page:
        """SchemaVersion items, the latest first. Raises InvalidRequest for a token that is not valid."""
        tokens = PageTokens("schemas", dataset_id)
        conditions = [schema_versions.c.dataset_id == dataset_id]
        if page_token is not None:
            conditions.append(schema_versions.c.schema_id < tokens.number(page_token, _SCHEMA_ID_MAX))
        with self._database.tenant(tenant_id) as connection:
            schemas = schemas_of(connection, *conditions, limit=page_size + 1)
        return tokens.page(schemas, page_size, lambda item: str(item.schema.id), lambda item: item)

    def add_upload(self, tenant_id: str, upload: Upload) -> None:
        """Records an upload. Raises NotFound if its dataset is gone."""
        with self._database.tenant(tenant_id) as connection:
            if not share_datasets(connection, [upload.dataset_id]):
                raise dataset_not_found(upload.dataset_id)
            connection.execute(
                insert(uploads).values({name: getattr(upload, name) for name in Upload.__struct_fields__})
            )

    def get_uploads(self, tenant_id: str, dataset_id: str, upload_ids: Sequence[str]) -> tuple[Upload, ...]:
        """The uploads, in the order of their ids. Raises NotFound."""
        columns = [uploads.c[name] for name in Upload.__struct_fields__]
        uuids = [upload_id.lower() for upload_id in upload_ids if is_uuid(upload_id)]
        query = select(*columns).where(any_of(uploads.c.id, uuids), uploads.c.dataset_id == dataset_id)
        with self._database.tenant(tenant_id) as connection:
            rows = [Upload(**row._asdict()) for row in connection.execute(query)] if uuids else []
        uploads_by_id = {str(upload.id): upload for upload in rows}
        missing = [upload_id for upload_id in upload_ids if upload_id.lower() not in uploads_by_id]
        if missing:
            raise NotFound(f"there is no upload {missing[0]} of this dataset")
        return tuple([uploads_by_id[upload_id.lower()] for upload_id in upload_ids])


def end_dataset(connection: Connection, dataset_id: str, participants: CatalogParticipants) -> None:
    """Marks a dataset as deleted. The caller has locked its head and its row, and checked that no view reads it."""
    connection.execute(
        update(datasets).where(datasets.c.id == dataset_id).values(deleted_at=func.clock_timestamp())
    )
    for participant in participants.deletion:
        participant.dataset_deleted(connection, dataset_id)


def _pause_broken(
    connection: Connection,
    participants: CatalogParticipants,
    dataset_id: str,
    step: SchemaStep,
    admit: Callable[[Sequence[ColumnReader]], None],
) -> None:
    """Pauses what the step breaks. Raises what `admit` raises."""
    # Waits for requests that register what reads the dataset; those that come later see the next schema.
    lock = select(datasets.c.id).where(datasets.c.id == dataset_id).with_for_update(key_share=True)
    connection.execute(lock)
    readers = _readers(connection, participants, dataset_id, step)
    if step.may_expose(readers):
        earlier = schemas_of(connection, schema_versions.c.dataset_id == dataset_id, limit=None)
        readers = step.exposing(readers, [each.schema for each in earlier])
    breaking = [each for each in readers if each.breaks]
    admit(breaking)
    for participant in participants.readers:
        participant.pause(connection, breaking)


def _readers(
    connection: Connection, participants: CatalogParticipants, dataset_id: str, step: SchemaStep
) -> list[ColumnReader]:
    readers = [
        reader
        for participant in participants.readers
        for reader in participant.readers(connection, dataset_id, step)
    ]
    return readers + list(key_readers(connection, step))


def _is_referenced(references: Collection[str]) -> ColumnElement[bool]:
    """Whether one of the references is the id or the name of the dataset. A name never has the form of an id."""
    ids = [each for each in references if is_uuid(each)]
    names = [each for each in references if not is_uuid(each)]
    return or_(any_of(datasets.c.id, ids), any_of(datasets.c.name, names))


def _lock_head(connection: Connection, dataset_id: str) -> int:
    """Locks the head and returns its version. The order of locks is that of commits, so there are no deadlocks."""
    version: int = connection.execute(
        select(heads.c.version).where(heads.c.dataset_id == dataset_id).with_for_update()
    ).scalar_one()
    return version


def _check_version(head: int, version: int) -> None:
    if version != head:
        raise PreconditionFailed(f"The dataset is at version {head}, not {version}", version=head)
