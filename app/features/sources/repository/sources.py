"""Sources, as their users see and change them. All time is the database's clock."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, Select, delete, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert as insert_unless

from app.access.errors import NotFound, PreconditionFailed
from app.access.tenants.repository.quotas import check_count
from app.core.catalog.repository.live_datasets import share_datasets, share_schemas
from app.core.catalog.repository.participants import Derivations
from app.core.jobs.kinds.kind import JobKind
from app.core.jobs.repository.accept import accept_jobs
from app.core.jobs.repository.job_ends import cancel_locked
from app.core.jobs.repository.job_locks import UNFINISHED, lock_jobs
from app.core.jobs.repository.job_row import get_job
from app.core.jobs.repository.replays import keep_key, replayed_job
from app.core.jobs.tables import jobs
from app.core.jobs.values import Accepted, JobState, NewJob
from app.features.sources.errors import SourceExists
from app.features.sources.repository.cycles import dataset_edges, refuse_cycle
from app.features.sources.repository.source_row import (
    DATASET_NAME,
    find_source,
    lock_source,
    select_sources,
    source_of,
)
from app.features.sources.tables import source_items, sources
from app.features.sources.values import DataSource, NewSource, SourceChange, SourceDefinition, SourceState
from app.infra.db.acts import act_concerns
from app.infra.db.any_of import any_of, matches_any
from app.infra.db.session import Database
from app.kernel.format.errors import HeadwaterError
from app.kernel.paging import Page, PageTokens

_COUNT: Final[Select[int]] = select(func.count()).select_from(sources)


class SourceStore:
    """Sources in Postgres."""

    def __init__(self, database: Database, derivations: Derivations) -> None:
        self._database = database
        self._derivations = derivations

    def create(self, tenant_id: str, new: NewSource) -> DataSource:
        """A source that is due.

        Raises SourceExists, NotFound if its dataset is gone, InvalidSource if it would close a cycle, SchemaChanged,
        QuotaExceeded.
        """
        with self._database.tenant(tenant_id) as connection:
            if new.dataset_id is not None and not share_datasets(connection, [new.dataset_id]):
                raise NotFound(f"there is no dataset {new.definition.dataset!r}")
            share_schemas(connection, new.schemas)
            self._refuse_cycle(connection, new.id, new.definition, new.dataset_id)
            row = connection.execute(
                insert_unless(sources)
                .values(
                    id=new.id,
                    name=new.name,
                    dataset_id=new.dataset_id,
                    dataset_name=new.definition.dataset,
                    definition=new.definition,
                    secrets=new.secrets,
                    state=SourceState.ACTIVE.value,
                    position=new.position,
                )
                .on_conflict_do_nothing()
                .returning(sources.c.id)
            ).one_or_none()
            if row is None:
                raise SourceExists(f"there is a source {new.name!r} already", name=new.name)
            act_concerns(source=new.id)
            check_count(connection, "sources", _COUNT)
            return find_source(connection, new.id)

    def count(self, tenant_id: str) -> int:
        """The sources that count against the quota `sources`."""
        with self._database.tenant(tenant_id) as connection:
            return connection.execute(_COUNT).scalar_one()

    def get(self, tenant_id: str, reference: str) -> DataSource:
        """The source with this id or name. Raises NotFound."""
        with self._database.tenant(tenant_id) as connection:
            return find_source(connection, reference)

    def list(
        self,
        tenant_id: str,
        dataset_id: str | None,
        *,
        page_size: int,
        page_token: str | None,
        patterns: Collection[str] | None = None,
        dataset_ids: Collection[str] | None = None,
    ) -> Page:
        """Sources by name; of datasets whose names match a pattern, unless None.

        `dataset_ids`: those only that write to one of these datasets, and those without a dataset yet.

        Raises InvalidRequest for a token that is not valid.
        """
        tokens = PageTokens("sources", tenant_id, dataset_id)
        query = select_sources().order_by(sources.c.name).limit(page_size + 1)
        if patterns is not None:
            query = query.where(matches_any(DATASET_NAME, patterns))
        if dataset_id is not None:
            query = query.where(sources.c.dataset_id == dataset_id)
        if dataset_ids is not None:
            query = query.where(
                or_(any_of(sources.c.dataset_id, dataset_ids), sources.c.dataset_id.is_(None))
            )
        if page_token is not None:
            query = query.where(sources.c.name > tokens.position(page_token))
        with self._database.tenant(tenant_id) as connection:
            rows = connection.execute(query).all()
        return tokens.page(rows, page_size, lambda row: row.name, source_of)

    def dataset_edges(self, tenant_id: str) -> Sequence[tuple[str, str]]:
        """Datasets that sources and views read, each with one that is written with it, by id."""
        with self._database.tenant(tenant_id) as connection:
            return dataset_edges(connection, self._derivations)

    def change(self, tenant_id: str, reference: str, change: SourceChange) -> DataSource:
        """Changes a source. A new position makes the round void that runs.

        Raises NotFound, PreconditionFailed, InvalidSource if it is resumed as a part of a cycle.
        """
        with self._database.tenant(tenant_id) as connection:
            if change.state is SourceState.ACTIVE:
                current_source = find_source(connection, reference)
                self._refuse_cycle(
                    connection, current_source.id, current_source.definition, current_source.dataset_id
                )
            source = lock_source(connection, reference)
            if change.revision is not None and change.revision != source.revision:
                raise PreconditionFailed(
                    f"The source is at revision {source.revision}, not {change.revision}",
                    revision=source.revision,
                )
            values: dict[str, Any] = {"revision": source.revision + 1, "due_at": func.clock_timestamp()}
            if not isinstance(change.state, msgspec.UnsetType):
                values["state"] = change.state.value
                if change.state is SourceState.ACTIVE:
                    values |= {"failures": 0, "error": None}
            definition = change.apply(source.definition)
            if definition != source.definition:
                values["definition"] = definition
            if not isinstance(change.position, msgspec.UnsetType):
                values |= {"position": change.position, "rounds": source.rounds + 1, "lag": None}
                connection.execute(delete(source_items).where(source_items.c.source_id == source.id))
            connection.execute(update(sources).where(sources.c.id == source.id).values(values))
            return find_source(connection, source.id)

    def delete(self, tenant_id: str, reference: str, *, revision: int | None) -> None:
        """Ends the source and cancels its round. Raises NotFound, PreconditionFailed."""
        with self._database.tenant(tenant_id) as connection:
            source = find_source(connection, reference)
            # Jobs before sources, as in every transaction that changes both.
            running = _lock_rounds(connection, source)
            source = lock_source(connection, source.id)
            if revision is not None and revision != source.revision:
                raise PreconditionFailed(
                    f"The source is at revision {source.revision}, not {revision}", revision=source.revision
                )
            cancel_locked(connection, running)
            connection.execute(delete(sources).where(sources.c.id == source.id))

    def _refuse_cycle(
        self, connection: Connection, source_id: str, definition: SourceDefinition, dataset_id: str | None
    ) -> None:
        refuse_cycle(
            connection,
            self._derivations,
            source_id=source_id,
            config=definition.config,
            dataset_id=dataset_id,
        )

    def start(self, tenant_id: str, source_id: str, new: NewJob) -> Accepted:
        """Queues a round, unless one is queued already: then that one.

        `replayed`: an earlier request with the same idempotency key made the job. Raises NotFound,
        IdempotencyMismatch, QuotaExceeded.
        """
        with self._database.tenant(tenant_id) as connection:
            share_datasets(connection, [new.dataset_id])
            # The lock serializes those who start rounds.
            source = lock_source(connection, source_id)
            if new.idempotency_key is not None:
                job = replayed_job(connection, new.dataset_id, new.idempotency_key, new.request_hash)
                if job is not None:
                    return Accepted(job=job, is_replay=True)
            job_id = unfinished_round(connection, source, (JobState.QUEUED,))
            if job_id is not None:
                keep_key(connection, new, job_id)
                return Accepted(job=get_job(connection, job_id), is_replay=False)
            return start_round(connection, source, new)


def start_round(connection: Connection, source: DataSource, new: NewJob) -> Accepted:
    """Queues a round of a source that the caller has locked. Raises NotFound, IdempotencyMismatch, QuotaExceeded."""
    (outcome,) = accept_jobs(connection, [new])
    if isinstance(outcome, HeadwaterError):
        raise outcome
    connection.execute(update(sources).where(sources.c.id == source.id).values(job_id=outcome.job.id))
    return outcome


def unfinished_round(connection: Connection, source: DataSource, states: Collection[JobState]) -> str | None:
    """The job of the last round that was started, if it is in one of these states."""
    if source.job_id is None:
        return None
    query = select(jobs.c.id).where(
        jobs.c.id == source.job_id, any_of(jobs.c.state, [state.value for state in states])
    )
    return connection.execute(query).scalar_one_or_none()


def _lock_rounds(connection: Connection, source: DataSource) -> list[str]:
    """The unfinished rounds of the source, locked."""
    if source.dataset_id is None:
        return []
    conditions = jobs.c.dataset_id == source.dataset_id, jobs.c.kind == JobKind.SOURCE_ROUND.value, UNFINISHED
    rows = connection.execute(select(jobs.c.id, jobs.c.request).where(*conditions)).all()
    own = [row.id for row in rows if row.request.round.source_id == source.id]
    return lock_jobs(connection, any_of(jobs.c.id, own), UNFINISHED) if own else []
