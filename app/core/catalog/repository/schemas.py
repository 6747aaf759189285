"""The definition of a dataset, and its schemas."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from msgspec import structs
from sqlalchemy import ColumnElement, Connection, insert, select, update
from sqlalchemy.exc import IntegrityError

from app.access.tenants.repository.credential_changes import notify_change
from app.core.catalog.errors import DatasetExists
from app.core.catalog.repository.head import move_head
from app.core.catalog.tables import SCHEMA, datasets, schema_versions
from app.core.catalog.values import SchemaVersion
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.definition.settings import table_settings
from app.kernel.format.schema.member_ids import member_ids_of
from app.kernel.format.schema.schema import Schema


def store_evolved(connection: Connection, dataset_id: str, definition: DatasetDefinition) -> None:
    """Stores the schema that a write has evolved. The caller has locked the head row of the dataset.

    Settings, those of the changelog and of deletes included, and the table services stay those of the stored
    definition, since they may have changed after the write was planned.
    """
    now = connection.execute(select(datasets.c.definition).where(datasets.c.id == dataset_id)).scalar_one()
    current = structs.replace(
        definition,
        changelog=now.changelog,
        services=now.services,
        deletes=now.deletes,
        **table_settings(now),
    )
    _store_definition(connection, dataset_id, current)
    store_schema(connection, dataset_id, definition.schema)


def _store_definition(connection: Connection, dataset_id: str, definition: DatasetDefinition) -> None:
    values = definition_columns(definition)
    connection.execute(update(datasets).where(datasets.c.id == dataset_id).values(**values))


def definition_columns(definition: DatasetDefinition) -> dict[str, Any]:
    """The columns that hold a definition."""
    return {"definition": definition, "member_ids": member_ids_of(definition.schema)}


def _rename(connection: Connection, dataset_id: str, name: str) -> None:
    """Raises DatasetExists if another live dataset has the name."""
    statement = update(datasets).where(datasets.c.id == dataset_id).values(name=name)
    try:
        with connection.begin_nested():
            tenant_id = connection.execute(statement.returning(datasets.c.tenant_id)).scalar_one()
    except IntegrityError:
        raise name_taken(name) from None
    # Grants match names, and what is open with another grant ends.
    notify_change(connection, tenant_id)


def name_taken(name: str) -> DatasetExists:
    """The error for a name that another live dataset has."""
    return DatasetExists(f"there is a dataset named {name!r} already; choose another name", name=name)


def store_schema(connection: Connection, dataset_id: str, schema: Schema) -> None:
    """Stores a schema under its id."""
    connection.execute(
        insert(schema_versions).values(
            dataset_id=dataset_id, schema_id=schema.id, schema=schema, member_ids=member_ids_of(schema)
        )
    )


def change_definition(
    connection: Connection,
    dataset_id: str,
    before: DatasetDefinition,
    definition: DatasetDefinition,
    version: int,
) -> tuple[datetime, int]:
    """Stores a definition at `version`, the one after the head, which the caller has locked.

    Returns the time of the version and the end of the feed. Raises DatasetExists if the definition has a new name
    that another live dataset has.
    """
    if definition.name != before.name:
        _rename(connection, dataset_id, definition.name)
    _store_definition(connection, dataset_id, definition)
    if definition.schema.id != before.schema.id:
        store_schema(connection, dataset_id, definition.schema)
    return move_head(connection, dataset_id, version)


def schemas_of(
    connection: Connection, *conditions: ColumnElement[bool], limit: int | None
) -> list[SchemaVersion]:
    """Schemas that match the conditions, the latest first."""
    query = (
        select(SCHEMA, schema_versions.c.created_at)
        .where(*conditions)
        .order_by(schema_versions.c.schema_id.desc())
        .limit(limit)
    )
    return [_schema_version(row) for row in connection.execute(query)]


def _schema_version(row: Any) -> SchemaVersion:
    return SchemaVersion(schema=row.schema, created_at=row.created_at)
