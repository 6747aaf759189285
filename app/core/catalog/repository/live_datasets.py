"""Live datasets, as transactions of any room find, share and register them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, any_, bindparam, func, insert, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql import insert as insert_unless

from app.access.errors import NotFound
from app.access.tenants.repository.quotas import check_count
from app.core.catalog.errors import SchemaChanged
from app.core.catalog.repository.notes import LABELS, note_columns, store_notes
from app.core.catalog.repository.participants import Derivations
from app.core.catalog.repository.schemas import definition_columns, name_taken, store_schema
from app.core.catalog.tables import DEFINITION, datasets, heads
from app.core.catalog.values import Dataset
from app.infra.db.acts import act_concerns
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.identifiers import is_uuid

COUNT: Final[Select[int]] = select(func.count()).where(datasets.c.deleted_at.is_(None))
"""The datasets of the quota `datasets`."""


class LiveDatasets:
    """Datasets that are not deleted."""

    def __init__(self, derivations: Derivations) -> None:
        """`derivations` knows which of them are derived."""
        self.derivations: Final = derivations
        # Made once: most requests begin with one of them.
        self._by_id: Final = self.query().where(datasets.c.id == bindparam("id"))
        self._by_name: Final = self.query().where(datasets.c.name == bindparam("name"))

    def columns(self) -> tuple[ColumnElement[Any], ...]:
        """The members of `Dataset`, from the tables `datasets` and `heads`."""
        return (
            datasets.c.id,
            datasets.c.tenant_id,
            DEFINITION,
            heads.c.version,
            heads.c.next_offset,
            heads.c.earliest_offset,
            heads.c.earliest_version,
            heads.c.watermark,
            datasets.c.created_at,
            heads.c.committed_at,
            self.derivations.is_derived().label("is_view"),
            *note_columns(),
        )

    def query(self) -> Select[Any]:
        """Selects the columns of all live datasets."""
        return _live(*self.columns())

    def summaries(self) -> Select[Any]:
        """Selects the members of `DatasetSummary` of all live datasets."""
        return _live(
            datasets.c.id,
            datasets.c.name,
            heads.c.version,
            heads.c.next_offset,
            heads.c.committed_at,
            self.derivations.is_derived().label("is_view"),
            LABELS,
        )

    def insert(
        self,
        connection: Connection,
        dataset_id: str,
        definition: DatasetDefinition,
        notes: Mapping[str, Any] = MappingProxyType({}),
    ) -> Dataset:
        """A new dataset at version 0. Raises DatasetExists if a live dataset has the name, QuotaExceeded.

        `notes`: settings that are not of the table, by name.
        """
        new_dataset = (
            insert_unless(datasets)
            .values(id=dataset_id, name=definition.name, **definition_columns(definition))
            .on_conflict_do_nothing(
                index_elements=[datasets.c.tenant_id, datasets.c.name],
                index_where=datasets.c.deleted_at.is_(None),
            )
            .returning(datasets.c.id)
        )
        if connection.execute(new_dataset).one_or_none() is None:
            raise name_taken(definition.name)
        act_concerns(dataset=dataset_id)
        check_count(connection, "datasets", COUNT)
        connection.execute(insert(heads).values(dataset_id=dataset_id))
        store_schema(connection, dataset_id, definition.schema)
        store_notes(connection, dataset_id, {name: value for name, value in notes.items() if value})
        return self.find(connection, dataset_id)

    def find(self, connection: Connection, reference: str) -> Dataset:
        """The live dataset with this id or name. Raises NotFound."""
        if "\0" in reference:
            raise dataset_not_found(reference)  # Postgres would refuse to compare it with a name
        # A name never has the form of an id.
        if is_uuid(reference):
            row = connection.execute(self._by_id, {"id": reference}).one_or_none()
        else:
            row = connection.execute(self._by_name, {"name": reference}).one_or_none()
        if row is None:
            raise dataset_not_found(reference)
        return dataset_of(row)


def _live(*columns: ColumnElement[Any]) -> Select[Any]:
    joined = select(*columns).join_from(datasets, heads, heads.c.dataset_id == datasets.c.id)
    return joined.where(datasets.c.deleted_at.is_(None))


_SHARE: Final = (
    select(datasets.c.id)
    .where(
        datasets.c.id == any_(bindparam("ids", type_=ARRAY(datasets.c.id.type))),
        datasets.c.deleted_at.is_(None),
    )
    .order_by(datasets.c.id)
    .with_for_update(read=True, key_share=True)
)


def share_datasets(connection: Connection, dataset_ids: Collection[str]) -> set[str]:
    """Keeps live datasets from being deleted until the transaction ends; returns which of them are live."""
    return set(connection.execute(_SHARE, {"ids": list(dataset_ids)}).scalars())


def share_schemas(connection: Connection, schemas: Mapping[str, int]) -> None:
    """Keeps the schemas of datasets as they are until the transaction ends. `schemas`: the expected ids, by dataset.

    The datasets are live. Raises SchemaChanged if one has another schema.
    """
    ids = datasets.c.id == any_(bindparam("ids", type_=ARRAY(datasets.c.id.type)))
    query = select(datasets.c.id, datasets.c.definition).where(ids).order_by(datasets.c.id)
    for row in connection.execute(query.with_for_update(read=True), {"ids": list(schemas)}):
        if row.definition.schema.id != schemas[row.id]:
            raise SchemaChanged(
                f"the schema of {row.definition.name!r} has changed while the request was checked: send it again",
                dataset=row.id,
            )


def dataset_of(row: Any) -> Dataset:
    """The dataset in a row that has `LiveDatasets.columns`."""
    values = row._mapping
    return Dataset(**{name: values[name] for name in Dataset.__struct_fields__})


def dataset_not_found(reference: str) -> NotFound:
    """The error for a reference to no live dataset."""
    return NotFound(f"there is no dataset {reference!r}")
