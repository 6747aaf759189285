"""The schemas that a dataset had one after another, and the commits that changed its definition."""

from __future__ import annotations

from typing import Any

from msgspec import structs
from sqlalchemy import ColumnElement, Connection, func, insert, select, update

from app.catalog.repository.head import move_head
from app.catalog.tables import datasets, schema_versions
from app.catalog.values import SchemaVersion
from app.commit.conflict import Conflicted
from app.format.dataset import DatasetDefinition
from app.format.instant import Action, InstantState, RowCounts
from app.format.schema.schema import Schema
from app.jobs.tables import instants
from app.timeline.tables import commits
from app.timeline.values import NewCommit

_OPERATION = "evolve"


def store_evolved(connection: Connection, dataset_id: str, evolved: DatasetDefinition) -> None:
    """Moves the dataset, whose head row the caller has locked, on to the schema that a write brought.

    The write was planned a while ago: settings of the changelog, and table services, are those of now.
    """
    now = connection.execute(select(datasets.c.definition).where(datasets.c.id == dataset_id)).scalar_one()
    _store_definition(
        connection, dataset_id, structs.replace(evolved, changelog=now.changelog, services=now.services)
    )
    store_schema(connection, dataset_id, evolved.schema)


def _store_definition(connection: Connection, dataset_id: str, definition: DatasetDefinition) -> None:
    connection.execute(update(datasets).where(datasets.c.id == dataset_id).values(definition=definition))


def store_schema(connection: Connection, dataset_id: str, schema: Schema) -> None:
    """Keeps a schema under its id."""
    connection.execute(
        insert(schema_versions).values(dataset_id=dataset_id, schema_id=schema.id, schema=schema)
    )


def commit_definition(
    connection: Connection,
    dataset_id: str,
    before: DatasetDefinition,
    definition: DatasetDefinition,
    *,
    version: int,
    instant_id: str,
    actor: str | None,
) -> None:
    """A commit without files at `version`, the one after the head, which the caller has locked."""
    _store_definition(connection, dataset_id, definition)
    if definition.schema.id != before.schema.id:
        store_schema(connection, dataset_id, definition.schema)
    committed_at, next_offset = move_head(connection, dataset_id, version)
    connection.execute(
        insert(commits).values(
            dataset_id=dataset_id,
            version=version,
            action=Action.SCHEMA.value,
            instant_id=instant_id,
            committed_at=committed_at,
            first_offset=next_offset,
            next_offset=next_offset,
            schema_id=definition.schema.id,
            files_added=0,
            files_removed=0,
            bytes_added=0,
            counts=RowCounts(),
        )
    )
    connection.execute(
        insert(instants).values(
            dataset_id=dataset_id,
            id=instant_id,
            action=Action.SCHEMA.value,
            operation=_OPERATION,
            state=InstantState.COMPLETED.value,
            version=version,
            completed_at=committed_at,
            counts=RowCounts(),
            actor=actor,
        )
    )


def outdated_plan(connection: Connection, commit: NewCommit, head_version: int) -> Conflicted | None:
    """The conflict of a commit that was planned under a schema which the dataset no longer has.

    Input and files stay readable under the new one, but the plan wrote what the old one asks for: all of it is made
    again.
    """
    if head_version == commit.read_version:
        return None
    winner = connection.execute(
        select(commits.c.instant_id)
        .where(
            commits.c.dataset_id == commit.dataset_id,
            commits.c.version > commit.read_version,
            commits.c.schema_id > commit.schema_id,
        )
        .order_by(commits.c.version.desc())
        .limit(1)
    ).scalar_one_or_none()
    if winner is None:
        return None
    groups = sorted({message.file_group for message in commit.messages})
    return Conflicted(file_groups=tuple(groups), winner=winner, head_version=head_version)


def schemas_of(connection: Connection, *conditions: ColumnElement[bool], limit: int) -> list[SchemaVersion]:
    """Schemas that meet the conditions, the latest first."""
    query = (
        select(schema_versions.c.schema, schema_versions.c.created_at)
        .where(*conditions)
        .order_by(schema_versions.c.schema_id.desc())
        .limit(limit)
    )
    return [_schema_version(row) for row in connection.execute(query)]


def schema_at(connection: Connection, dataset_id: str, version: int) -> Schema:
    """The schema that the dataset had at a version that it has reached."""
    by_commit = select(commits.c.schema_id).where(
        commits.c.dataset_id == dataset_id, commits.c.version == version
    )
    wanted = func.coalesce(by_commit.scalar_subquery(), 1)
    found: Schema = connection.execute(
        select(schema_versions.c.schema).where(
            schema_versions.c.dataset_id == dataset_id, schema_versions.c.schema_id == wanted
        )
    ).scalar_one()
    return found


def _schema_version(row: Any) -> SchemaVersion:
    return SchemaVersion(schema=row.schema, created_at=row.created_at)
