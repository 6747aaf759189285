"""Versions, files and instants of a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, select

from app.core.catalog.tables import heads
from app.core.jobs.repository.commit_slots import release_slot
from app.core.jobs.tables import instants, jobs
from app.core.jobs.values import JobState
from app.core.timeline.instants import EVERY_INSTANT, InstantFilter
from app.core.timeline.ports import OutcomeUnknown
from app.core.timeline.repository.conflict_window import next_commit_time
from app.core.timeline.repository.definitions import schema_at
from app.core.timeline.repository.instant_rows import chosen_instants, latest_instants
from app.core.timeline.repository.kept_versions import reading_version
from app.core.timeline.repository.live_files import live_files
from app.core.timeline.repository.participants import CommitParticipant
from app.core.timeline.repository.publish import makes_version, publish_commits
from app.core.timeline.repository.publish_in_slot import publish_in_slot
from app.core.timeline.repository.version_groups import VersionGroupStore
from app.core.timeline.repository.winners import winner_of_instant, winner_since, winner_with_rows
from app.core.timeline.tables import commits
from app.core.timeline.values import (
    Fenced,
    NewCommit,
    Overtaken,
    Published,
    Winner,
    WritesRunning,
)
from app.infra.db.any_of import any_of
from app.infra.db.errors import CommitInDoubt
from app.infra.db.session import Database
from app.infra.instruments import COMMITS, CONFLICTS
from app.kernel.commit.conflict import Conflicted
from app.kernel.format.file_group import DataFile
from app.kernel.format.instant import Action
from app.kernel.format.schema.schema import Schema
from app.kernel.paging import Page, PageTokens

_WRITES: Final = tuple(action.value for action in (Action.COMMIT, Action.RESTORE, Action.ROLLBACK))


class TimelineStore(VersionGroupStore):
    """The timeline in Postgres. `participants` take part in the commit transaction."""

    def __init__(self, database: Database, participants: Sequence[CommitParticipant]) -> None:
        super().__init__(database)
        self._participants = tuple(participants)

    def live_files(
        self,
        tenant_id: str,
        dataset_id: str,
        version: int,
        file_groups: Sequence[str] | None,
        partitions: Sequence[str] = (),
    ) -> list[DataFile]:
        """Data files visible at `version`, ordered by path; of the named file groups and of all buckets of these
        partitions only, unless `file_groups` is None.

        Raises VersionExpired if the version is not kept any more, NotFound (dataset gone).
        """
        with reading_version(self._database, tenant_id, dataset_id, version) as connection:
            return live_files(connection, dataset_id, version, file_groups, partitions)

    def publish(
        self, tenant_id: str, commits: Sequence[NewCommit]
    ) -> tuple[Published, ...] | Conflicted | Overtaken | Fenced:
        """The commit transaction. Raises CommitConflict where a dataset is not at the version its commit expects,
        OutcomeUnknown if the connection breaks once COMMIT was sent.

        Without file changes the jobs of a commit succeed at the current version and no version is made.
        """
        try:
            with self._database.tenant(tenant_id) as connection:
                result = publish_commits(connection, commits, self._participants)
                if not isinstance(result, tuple):
                    connection.rollback()
        except CommitInDoubt as error:
            raise OutcomeUnknown(str(error)) from error
        _count(commits, result)
        return result

    def publish_in_slot(
        self, tenant_id: str, commit: NewCommit, slot_seconds: float
    ) -> Published | Conflicted | Fenced | WritesRunning:
        """`publish` for a table service. While writes run it publishes nothing, and reserves a slot of `slot_seconds`.

        Raises OutcomeUnknown if the connection breaks once COMMIT was sent.
        """
        try:
            with self._database.tenant(tenant_id) as connection:
                result = publish_in_slot(connection, commit, slot_seconds, self._participants)
                if isinstance(result, Conflicted | Fenced):
                    connection.rollback()
        except CommitInDoubt as error:
            raise OutcomeUnknown(str(error)) from error
        _count([commit], (result,) if isinstance(result, Published) else result)
        return result

    def release_slot(self, tenant_id: str, dataset_id: str) -> None:
        """Ends a commit slot: writes can be claimed again."""
        with self._database.tenant(tenant_id) as connection:
            release_slot(connection, dataset_id)

    def outcome_of(
        self, tenant_id: str, jobs_of: Mapping[str, Sequence[str]]
    ) -> tuple[Published, ...] | None:
        """After OutcomeUnknown: waits for the head rows, then returns what the jobs of these datasets published.

        None unless one transaction published all of them; then publishing again with the same claims is safe,
        since claims that are no longer held are fenced.
        """
        with self._database.tenant(tenant_id) as connection:
            # A running commit has locked these rows, so once this transaction has locked them, that commit has ended.
            connection.execute(
                select(heads.c.version)
                .where(any_of(heads.c.dataset_id, list(jobs_of)))
                .order_by(heads.c.dataset_id)
                .with_for_update()
            )
            outcomes = [_published(connection, dataset_id, ids) for dataset_id, ids in jobs_of.items()]
        publications = tuple(each for each in outcomes if each is not None)
        return publications if len(publications) == len(outcomes) else None

    def instants(
        self,
        tenant_id: str,
        dataset_id: str,
        *,
        page_size: int,
        page_token: str | None,
        instant_filter: InstantFilter = EVERY_INSTANT,
    ) -> Page:
        """InstantRecord items, latest request first. Raises InvalidRequest for a token that is not valid."""
        tokens = instant_tokens(dataset_id, instant_filter)
        conditions = [instants.c.dataset_id == dataset_id, *chosen_instants(instant_filter)]
        if page_token is not None:
            conditions.append(instants.c.id < tokens.position(page_token))
        with self._database.tenant(tenant_id) as connection:
            records = latest_instants(connection, *conditions, limit=page_size + 1)
        return tokens.page(records, page_size, lambda record: record.id, lambda record: record)

    def version_at(self, tenant_id: str, dataset_id: str, moment: datetime) -> int:
        """The latest version committed at or before `moment`; 0 if there is none."""
        query = (
            select(commits.c.version)
            .where(commits.c.dataset_id == dataset_id, commits.c.committed_at <= moment)
            .order_by(commits.c.committed_at.desc())
            .limit(1)
        )
        with self._database.tenant(tenant_id) as connection:
            return connection.execute(query).scalar_one_or_none() or 0

    def schema_at(self, tenant_id: str, dataset_id: str, version: int) -> Schema:
        """The schema of the dataset at an existing version."""
        with self._database.tenant(tenant_id) as connection:
            return schema_at(connection, dataset_id, version)

    def latest_writes(self, tenant_id: str, dataset_id: str, version: int, limit: int) -> list[int]:
        """The versions up to `version` that writes made, the latest first: not those of table services and schemas."""
        query = (
            select(commits.c.version)
            .where(
                commits.c.dataset_id == dataset_id,
                commits.c.version <= version,
                commits.c.action.in_(_WRITES),
            )
            .order_by(commits.c.version.desc())
            .limit(limit)
        )
        with self._database.tenant(tenant_id) as connection:
            return list(connection.execute(query).scalars())

    def next_offset(self, tenant_id: str, dataset_id: str, version: int) -> int:
        """The number of changes in the feed at an existing version."""
        query = select(commits.c.next_offset).where(
            commits.c.dataset_id == dataset_id, commits.c.version == version
        )
        with self._database.tenant(tenant_id) as connection:
            return connection.execute(query).scalar_one_or_none() or 0

    def version_of(self, tenant_id: str, dataset_id: str, offset: int) -> int:
        """The first version at which the feed had this number of changes, or more; 0 for none."""
        if offset == 0:
            return 0
        query = (
            select(commits.c.version)
            .where(commits.c.dataset_id == dataset_id, commits.c.next_offset >= offset)
            .order_by(commits.c.next_offset, commits.c.version)
            .limit(1)
        )
        with self._database.tenant(tenant_id) as connection:
            return connection.execute(query).scalar_one_or_none() or 0

    def commit_times(self, tenant_id: str, dataset_id: str, versions: Sequence[int]) -> dict[int, datetime]:
        """The commit times of these versions; versions that do not exist are left out."""
        query = select(commits.c.version, commits.c.committed_at).where(
            commits.c.dataset_id == dataset_id, any_of(commits.c.version, versions)
        )
        with self._database.tenant(tenant_id) as connection:
            return {row.version: row.committed_at for row in connection.execute(query)}

    def next_commit_time(self, tenant_id: str, dataset_id: str) -> datetime:
        """The least time that a commit of the dataset can have from now on, by the clock of the database.

        Raises NotFound (dataset gone).
        """
        with self._database.tenant(tenant_id) as connection:
            return next_commit_time(connection, dataset_id)

    def winner_of_instant(self, tenant_id: str, dataset_id: str, instant_id: str) -> Winner | None:
        """The commit of an instant, without its file groups; None if there is none."""
        with self._database.tenant(tenant_id) as connection:
            return winner_of_instant(connection, dataset_id, instant_id)

    def winner_since(self, tenant_id: str, dataset_id: str, version: int) -> Winner | None:
        """The latest commit after a version, and the file groups that changed since; None if there is none."""
        with self._database.tenant(tenant_id) as connection:
            return winner_since(connection, dataset_id, version)

    def winner_with_rows(self, tenant_id: str, dataset_id: str, version: int) -> Winner | None:
        """The latest write up to a version, and the file groups with files at it; None if there is none."""
        with self._database.tenant(tenant_id) as connection:
            return winner_with_rows(connection, dataset_id, version)


def _published(connection: Connection, dataset_id: str, job_ids: Sequence[str]) -> Published | None:
    """The result of the commit of these jobs; None unless one commit published all of them."""
    query = (
        select(jobs.c.committed_version, instants.c.version)
        .join(instants, instants.c.job_id == jobs.c.id)
        .where(
            jobs.c.dataset_id == dataset_id,
            jobs.c.id.in_(job_ids),
            jobs.c.state == JobState.SUCCEEDED.value,
        )
    )
    rows = connection.execute(query).all()
    versions = {(row.committed_version, row.version) for row in rows}
    if len(rows) < len(set(job_ids)) or len(versions) != 1:
        return None
    [(committed_version, own_version)] = versions
    at = commits.c.dataset_id == dataset_id, commits.c.version == committed_version
    offsets = connection.execute(
        select(commits.c.first_offset, commits.c.next_offset).where(*at)
    ).one_or_none()
    first, after = (0, 0) if offsets is None else (offsets.first_offset, offsets.next_offset)
    # Jobs that changed nothing made no version: they ended at the version of the head, after its changes.
    return Published(
        version=committed_version, first_offset=after if own_version is None else first, next_offset=after
    )


def instant_tokens(dataset_id: str, instant_filter: InstantFilter) -> PageTokens:
    """The tokens of the timeline, also of what is archived."""
    return PageTokens("timeline", dataset_id, instant_filter)


def _count(commits: Sequence[NewCommit], result: object) -> None:
    """Counts versions and conflicts in the metrics of this process."""
    if isinstance(result, tuple):
        for commit in commits:
            if makes_version(commit):
                COMMITS.labels(commit.action.value).inc()
    elif isinstance(result, Conflicted | Overtaken):
        CONFLICTS.inc()
