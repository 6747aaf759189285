"""Commits that change the definition of a dataset, and the schemas of its versions."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, func, insert, select

from app.core.catalog.repository.participants import DefinitionCommit
from app.core.catalog.tables import SCHEMA, heads, schema_versions
from app.core.jobs.tables import instants
from app.core.timeline.tables import commits
from app.core.timeline.values import NewCommit
from app.kernel.commit.conflict import Conflicted
from app.kernel.format.instant import Action, InstantState, RowCounts
from app.kernel.format.schema.schema import Schema

_OPERATION: Final = "evolve"


class DefinitionCommits:
    """The catalogue's definition changes as commits of the timeline: commits without files."""

    def definition_changed(self, connection: Connection, commit: DefinitionCommit) -> None:
        """Inserts the commit and its completed instant."""
        connection.execute(
            insert(commits).values(
                dataset_id=commit.dataset_id,
                version=commit.version,
                action=Action.SCHEMA.value,
                instant_id=commit.instant_id,
                committed_at=commit.committed_at,
                first_offset=commit.next_offset,
                next_offset=commit.next_offset,
                schema_id=commit.schema_id,
                files_added=0,
                files_removed=0,
                bytes_added=0,
                counts=RowCounts(),
                watermark=select(heads.c.watermark)
                .where(heads.c.dataset_id == commit.dataset_id)
                .scalar_subquery(),
            )
        )
        connection.execute(
            insert(instants).values(
                dataset_id=commit.dataset_id,
                id=commit.instant_id,
                action=Action.SCHEMA.value,
                operation=_OPERATION,
                state=InstantState.COMPLETED.value,
                version=commit.version,
                completed_at=commit.committed_at,
                counts=RowCounts(),
                actor=commit.actor,
            )
        )


def outdated_plan(connection: Connection, commit: NewCommit, head_version: int) -> Conflicted | None:
    """The conflict of a commit that was planned under a schema which the dataset no longer has.

    Input and files stay readable under the new schema, but the plan wrote rows of the old one: all of it is planned
    again.
    """
    if head_version == commit.read_version:
        return None
    winner = connection.execute(
        select(commits.c.instant_id, commits.c.version)
        .where(
            commits.c.dataset_id == commit.dataset_id,
            commits.c.version > commit.read_version,
            commits.c.schema_id > commit.schema_id,
        )
        .order_by(commits.c.version.desc())
        .limit(1)
    ).one_or_none()
    if winner is None:
        return None
    groups = sorted({message.file_group for message in commit.messages})
    return Conflicted(
        file_groups=tuple(groups),
        winner=winner.instant_id,
        winner_version=winner.version,
        head_version=head_version,
    )


def schema_at(connection: Connection, dataset_id: str, version: int) -> Schema:
    """The schema of the dataset at an existing version."""
    by_commit = select(commits.c.schema_id).where(
        commits.c.dataset_id == dataset_id, commits.c.version == version
    )
    schema_id = func.coalesce(by_commit.scalar_subquery(), 1)
    schema: Schema = connection.execute(
        select(SCHEMA).where(
            schema_versions.c.dataset_id == dataset_id, schema_versions.c.schema_id == schema_id
        )
    ).scalar_one()
    return schema
