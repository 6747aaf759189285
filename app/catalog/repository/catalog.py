"""Registered datasets and uploads."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from sqlalchemy import Connection, Select, exists, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as insert_unless

from app.catalog.repository.schemas import commit_definition, schemas_of, store_schema
from app.catalog.tables import datasets, heads, schema_versions, uploads
from app.catalog.values import Dataset, SchemaVersion, Upload
from app.db.any_of import any_of
from app.db.session import Database
from app.format.dataset import DatasetDefinition
from app.format.errors import DatasetExists, DatasetInUse, NotFound, PreconditionFailed
from app.format.identifiers import is_uuid
from app.jobs.repository.job_ends import cancel_jobs
from app.paging import Page, decode_number, decode_token, page_of
from app.views.repository.view_rows import end_view, readers_of
from app.views.tables import views

_SCHEMA_ID_MAX: Final = 2**31 - 1


class CatalogStore:
    """The catalogue in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, tenant_id: str, dataset_id: str, definition: DatasetDefinition) -> Dataset:
        """Raises DatasetExists if a live dataset has the name."""
        with self._database.tenant(tenant_id) as connection:
            return insert_dataset(connection, dataset_id, definition)

    def get(self, tenant_id: str, reference: str) -> Dataset:
        """The dataset with this id or name. Raises NotFound."""
        with self._database.tenant(tenant_id) as connection:
            return find_dataset(connection, reference)

    def list(self, tenant_id: str, *, page_size: int, page_token: str | None) -> Page:
        """Live datasets by name. Raises InvalidRequest for a token that is none."""
        query = _live_datasets().order_by(datasets.c.name).limit(page_size + 1)
        if page_token is not None:
            query = query.where(datasets.c.name > decode_token(page_token))
        with self._database.tenant(tenant_id) as connection:
            rows = connection.execute(query).all()
        return page_of(rows, page_size, lambda row: row.definition.name, _dataset)

    def delete(self, tenant_id: str, reference: str, *, version: int | None) -> None:
        """Ends the dataset and cancels its jobs; its name is free at once.

        A view ends with its dataset. Raises NotFound, PreconditionFailed, DatasetInUse if views read it.
        """
        with self._database.tenant(tenant_id) as connection:
            dataset_id = find_dataset(connection, reference).id
            head = _lock_head(connection, dataset_id)
            # Waits for writes being accepted, so that each of them is seen and cancelled here.
            still = select(datasets.c.deleted_at).where(datasets.c.id == dataset_id).with_for_update()
            if connection.execute(still).scalar_one() is not None:
                raise _not_found(reference)
            if version is not None:
                _check_version(head, version)
            _check_unread(connection, dataset_id)
            connection.execute(
                update(datasets).where(datasets.c.id == dataset_id).values(deleted_at=func.clock_timestamp())
            )
            cancel_jobs(connection, dataset_id)
            end_view(connection, dataset_id)

    def evolve(
        self,
        tenant_id: str,
        dataset_id: str,
        definition: DatasetDefinition,
        *,
        version: int,
        instant_id: str,
        actor: str | None = None,
    ) -> Dataset:
        """Gives the dataset, which must be at `version` still, an evolved definition; that makes the next version.

        Raises NotFound, PreconditionFailed.
        """
        with self._database.tenant(tenant_id) as connection:
            find_dataset(connection, dataset_id)
            head = _lock_head(connection, dataset_id)
            # Again, since it may have been deleted while the lock was waited for.
            before = find_dataset(connection, dataset_id).definition
            _check_version(head, version)
            commit_definition(
                connection,
                dataset_id,
                before,
                definition,
                version=version + 1,
                instant_id=instant_id,
                actor=actor,
            )
            return find_dataset(connection, dataset_id)

    def schema(self, tenant_id: str, dataset_id: str, schema_id: int) -> SchemaVersion:
        """Raises NotFound."""
        wanted = schema_versions.c.dataset_id == dataset_id, schema_versions.c.schema_id == schema_id
        with self._database.tenant(tenant_id) as connection:
            found = schemas_of(connection, *wanted, limit=1) if schema_id <= _SCHEMA_ID_MAX else []
        if not found:
            raise NotFound(f"The dataset has no schema {schema_id}")
        return found[0]

    def schemas(self, tenant_id: str, dataset_id: str, *, page_size: int, page_token: str | None) -> Page:
        """SchemaVersion items, the latest first. Raises InvalidRequest for a token that is none."""
        wanted = [schema_versions.c.dataset_id == dataset_id]
        if page_token is not None:
            wanted.append(schema_versions.c.schema_id < decode_number(page_token, _SCHEMA_ID_MAX))
        with self._database.tenant(tenant_id) as connection:
            found = schemas_of(connection, *wanted, limit=page_size + 1)
        return page_of(found, page_size, lambda item: str(item.schema.id), lambda item: item)

    def add_upload(self, tenant_id: str, upload: Upload) -> None:
        """Records an upload. Raises NotFound if its dataset is gone."""
        with self._database.tenant(tenant_id) as connection:
            if not share_datasets(connection, [upload.dataset_id]):
                raise _not_found(upload.dataset_id)
            connection.execute(
                insert(uploads).values({name: getattr(upload, name) for name in Upload.__struct_fields__})
            )

    def get_upload(self, tenant_id: str, dataset_id: str, upload_id: str) -> Upload:
        """Raises NotFound."""
        columns = [uploads.c[name] for name in Upload.__struct_fields__]
        with self._database.tenant(tenant_id) as connection:
            row = None
            if is_uuid(upload_id):
                query = select(*columns).where(uploads.c.id == upload_id, uploads.c.dataset_id == dataset_id)
                row = connection.execute(query).one_or_none()
        if row is None:
            raise NotFound(f"There is no upload {upload_id} of this dataset")
        return Upload(**row._asdict())


def _lock_head(connection: Connection, dataset_id: str) -> int:
    """The head's version. Same order of locks as a commit, so that no two wait for each other in a ring."""
    version: int = connection.execute(
        select(heads.c.version).where(heads.c.dataset_id == dataset_id).with_for_update()
    ).scalar_one()
    return version


def _check_version(head: int, version: int) -> None:
    if version != head:
        raise PreconditionFailed(f"The dataset is at version {head}, not {version}", version=head)


def _check_unread(connection: Connection, dataset_id: str) -> None:
    """The caller has locked the dataset, so that no view can come to read it."""
    readers = readers_of(connection, dataset_id)
    if readers:
        names = ", ".join(map(repr, readers))
        raise DatasetInUse(
            f"The dataset is read by the views {names}: delete these first", views=list(readers)
        )


def share_datasets(connection: Connection, dataset_ids: Collection[str]) -> set[str]:
    """Keeps live datasets from being deleted until the transaction ends; returns which of them are live."""
    live = (
        select(datasets.c.id)
        .where(any_of(datasets.c.id, dataset_ids), datasets.c.deleted_at.is_(None))
        .order_by(datasets.c.id)
        .with_for_update(read=True, key_share=True)
    )
    return set(connection.execute(live).scalars())


DATASET_COLUMNS: Final = (
    datasets.c.id,
    datasets.c.tenant_id,
    datasets.c.definition,
    heads.c.version,
    heads.c.next_offset,
    heads.c.earliest_offset,
    heads.c.earliest_version,
    datasets.c.created_at,
    heads.c.committed_at,
    exists().where(views.c.dataset_id == datasets.c.id).correlate(datasets).label("derived"),
)


def _live_datasets() -> Select[Any]:
    return (
        select(*DATASET_COLUMNS)
        .join(heads, heads.c.dataset_id == datasets.c.id)
        .where(datasets.c.deleted_at.is_(None))
    )


def insert_dataset(connection: Connection, dataset_id: str, definition: DatasetDefinition) -> Dataset:
    """A new dataset at version 0. Raises DatasetExists if a live dataset has the name."""
    new_dataset = (
        insert_unless(datasets)
        .values(id=dataset_id, name=definition.name, definition=definition)
        .on_conflict_do_nothing(
            index_elements=[datasets.c.tenant_id, datasets.c.name],
            index_where=datasets.c.deleted_at.is_(None),
        )
        .returning(datasets.c.id)
    )
    if connection.execute(new_dataset).one_or_none() is None:
        raise DatasetExists(f"There is a dataset named {definition.name!r} already", name=definition.name)
    connection.execute(insert(heads).values(dataset_id=dataset_id))
    store_schema(connection, dataset_id, definition.schema)
    return find_dataset(connection, dataset_id)


def find_dataset(connection: Connection, reference: str) -> Dataset:
    """The live dataset with this id or name. Raises NotFound."""
    if "\0" in reference:
        raise _not_found(reference)  # Postgres would refuse to compare it with a name
    # A name never has the form of an id.
    wanted = datasets.c.id == reference if is_uuid(reference) else datasets.c.name == reference
    row = connection.execute(_live_datasets().where(wanted)).one_or_none()
    if row is None:
        raise _not_found(reference)
    return _dataset(row)


def _dataset(row: Any) -> Dataset:
    return Dataset(**row._asdict())


def _not_found(reference: str) -> NotFound:
    return NotFound(f"There is no dataset {reference!r}")
