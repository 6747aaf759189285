"""Views, their positions in the feeds of their inputs, and their refreshes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, Select, and_, func, select, update

from app.access.errors import NotFound, PreconditionFailed
from app.access.tenants.repository.quotas import check_count
from app.core.catalog.repository.live_datasets import LiveDatasets, share_datasets, share_schemas
from app.core.catalog.tables import datasets, heads
from app.core.catalog.values import Dataset
from app.core.consumers.followers import ConsumerKind
from app.core.consumers.repository.followers import add_follower, wake_follower
from app.core.consumers.tables import consumers
from app.core.jobs.kinds.kind import JobKind
from app.core.jobs.kinds.write import InputRange, WriteRequest
from app.core.jobs.repository.accept import accept_jobs, insert_jobs
from app.core.jobs.repository.job_locks import held_by
from app.core.jobs.repository.job_row import get_job
from app.core.jobs.repository.replays import keep_key, replayed_job
from app.core.jobs.tables import instants, jobs
from app.core.jobs.values import Accepted, Claim, Job, JobState, NewJob
from app.core.timeline.tables import commits
from app.features.views.repository.participant import ViewParticipant
from app.features.views.tables import view_inputs, views
from app.features.views.values import CheckedView, View, ViewInputStatus, follower_name, is_deadly
from app.infra.db.any_of import any_of, matches_any
from app.infra.db.session import Database
from app.kernel.format.errors import HeadwaterError
from app.kernel.format.identifiers import is_uuid
from app.kernel.paging import Page, PageTokens

_DATASETS: Final = LiveDatasets(ViewParticipant())
_COUNT: Final[Select[int]] = select(func.count()).select_from(views)
_VIEWS: Final[Select[Any]] = (
    select(
        *_DATASETS.columns(),
        views.c.definition.label("view_definition"),
        views.c.paused,
        views.c.revision,
        views.c.error,
        views.c.failures,
        views.c.attempted_at,
        func.coalesce(func.extract("epoch", func.clock_timestamp() - views.c.attempted_at), 0.0).label("ago"),
        views.c.refreshed_at,
        views.c.created_at.label("view_created_at"),
    )
    .join_from(views, datasets, views.c.dataset_id == datasets.c.id)
    .join(heads, heads.c.dataset_id == datasets.c.id)
    .where(datasets.c.deleted_at.is_(None))
)
_INPUTS: Final[Select[Any]] = (
    select(
        *_DATASETS.columns(),
        view_inputs.c.view_id,
        view_inputs.c.relation,
        consumers.c.position,
        func.coalesce(
            select(commits.c.version)
            .where(
                commits.c.dataset_id == view_inputs.c.dataset_id,
                commits.c.next_offset <= consumers.c.position,
            )
            .order_by(commits.c.next_offset.desc(), commits.c.version.desc())
            .limit(1)
            .scalar_subquery(),
            0,
        ).label("position_version"),
    )
    .join_from(view_inputs, datasets, view_inputs.c.dataset_id == datasets.c.id)
    .join(heads, heads.c.dataset_id == datasets.c.id)
    .join(
        consumers,
        and_(
            consumers.c.dataset_id == datasets.c.id,
            consumers.c.name == func.concat(follower_name(""), view_inputs.c.view_id),
        ),
    )
    .order_by(view_inputs.c.relation)
)


class ViewStore:
    """Views in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, tenant_id: str, new: CheckedView) -> View:
        """The dataset, the view, its positions in its inputs (before their first change), and its first refresh.

        Raises DatasetExists, NotFound if an input is gone, SchemaChanged, QuotaExceeded.
        """
        with self._database.tenant(tenant_id) as connection:
            # A deletion of an input comes first, so it is not found here, or waits and finds the view as its reader.
            live = share_datasets(connection, list(new.schemas))
            for relation, dataset_id in new.inputs.items():
                if dataset_id not in live:
                    raise NotFound(f"there is no dataset {relation!r}")
            share_schemas(connection, new.schemas)
            _DATASETS.insert(connection, new.dataset_id, new.dataset)
            connection.execute(views.insert().values(dataset_id=new.dataset_id, definition=new.definition))
            check_count(connection, "views", _COUNT)
            for relation, dataset_id in sorted(new.inputs.items()):
                connection.execute(
                    view_inputs.insert().values(
                        view_id=new.dataset_id, dataset_id=dataset_id, relation=relation
                    )
                )
                add_follower(connection, dataset_id, follower_name(new.dataset_id), ConsumerKind.VIEW, 0)
            insert_jobs(connection, [new.refresh])
            return _find(connection, new.dataset_id)

    def count(self, tenant_id: str) -> int:
        """The views that count against the quota `views`."""
        with self._database.tenant(tenant_id) as connection:
            return connection.execute(_COUNT).scalar_one()

    def get(self, tenant_id: str, reference: str) -> View:
        """The view with this id or name; the heads of all inputs are those of one moment. Raises NotFound."""
        with self._database.tenant(tenant_id) as connection:
            return _find(connection, reference)

    def list(
        self,
        tenant_id: str,
        *,
        page_size: int,
        page_token: str | None,
        patterns: Collection[str] | None = None,
        ids: Collection[str] | None = None,
    ) -> Page:
        """Views by name, those whose names match a pattern, unless None. `ids`: of these only.

        Raises InvalidRequest for a token that is not valid.
        """
        tokens = PageTokens("views", tenant_id)
        query = _VIEWS.order_by(datasets.c.name).limit(page_size + 1)
        if patterns is not None:
            query = query.where(matches_any(datasets.c.name, patterns))
        if ids is not None:
            query = query.where(any_of(datasets.c.id, ids))
        if page_token is not None:
            query = query.where(datasets.c.name > tokens.position(page_token))
        with self._database.tenant(tenant_id) as connection:
            items = _views(connection, connection.execute(query).all())
        return tokens.page(items, page_size, lambda view: view.dataset.definition.name, lambda view: view)

    def pause(self, tenant_id: str, reference: str, *, paused: bool, revision: int) -> View:
        """Pauses or resumes the refreshes of a view, which must still be at `revision`.

        Raises NotFound, PreconditionFailed.
        """
        with self._database.tenant(tenant_id) as connection:
            view_id = _find(connection, reference).dataset.id
            this_view = views.c.dataset_id == view_id
            now = connection.execute(
                select(views.c.revision).where(this_view).with_for_update()
            ).scalar_one_or_none()
            if now is None:
                raise _not_found(reference)
            if now != revision:
                raise PreconditionFailed(f"The view is at revision {now}, not {revision}", revision=now)
            values: dict[str, Any] = {"paused": paused, "revision": revision + 1}
            if not paused:
                # Without the time of its last failure, a view is tried at once.
                values["attempted_at"] = None
            connection.execute(update(views).where(this_view).values(values))
            view = _find(connection, view_id)
            for source in view.inputs:
                # At once: after a failure a refresh may be due without new changes.
                wake_follower(connection, source.dataset.id, follower_name(view_id))
            return view

    def refresh(self, tenant_id: str, new: NewJob, *, after_running: bool, slice_seconds: float) -> Accepted:
        """Queues a refresh, unless one is queued already: then that one. `after_running`: also while one runs.

        One that runs may have read its inputs before. After a refresh that has killed its processes, the next one has
        one try. After one that took longer than a time slice, the next one is slow from the start. `replayed`: an
        earlier request with the same idempotency key made the job. Raises NotFound, IdempotencyMismatch.
        """
        states = (JobState.QUEUED,) if after_running else (JobState.QUEUED, JobState.RUNNING)
        query = select(jobs.c.id).where(
            jobs.c.dataset_id == new.dataset_id,
            jobs.c.kind == JobKind.REFRESH.value,
            any_of(jobs.c.state, [state.value for state in states]),
        )
        this_view = select(views.c.error).where(views.c.dataset_id == new.dataset_id).with_for_update()
        with self._database.tenant(tenant_id) as connection:
            share_datasets(connection, [new.dataset_id])
            # The lock serializes requests that queue refreshes.
            view = connection.execute(this_view).one_or_none()
            if view is None:
                raise _not_found(new.dataset_id)
            earlier_job = _replayed(connection, new)
            if earlier_job is not None:
                return Accepted(job=earlier_job, is_replay=True)
            waiting = connection.execute(query.order_by(jobs.c.seq).limit(1)).scalar_one_or_none()
            if waiting is not None:
                keep_key(connection, new, waiting)
                return Accepted(job=get_job(connection, waiting), is_replay=False)
            again = msgspec.structs.replace(
                new,
                deaths=1 if is_deadly(view.error) else 0,
                slow=_last_was_slow(connection, new.dataset_id, slice_seconds),
            )
            (outcome,) = accept_jobs(connection, [again])
            if isinstance(outcome, HeadwaterError):
                raise outcome
            return outcome

    def taken_in(
        self, tenant_id: str, view_id: str, versions: Collection[int]
    ) -> dict[int, tuple[InputRange, ...]]:
        """The changes of the inputs that these versions have taken in, as long as their jobs are kept."""
        query = (
            select(commits.c.version, jobs.c.request)
            .join_from(commits, instants, instants.c.id == commits.c.instant_id)
            .join(jobs, jobs.c.id == instants.c.job_id)
            .where(commits.c.dataset_id == view_id, any_of(commits.c.version, list(versions)))
        )
        with self._database.tenant(tenant_id) as connection:
            return {row.version: row.request.inputs for row in connection.execute(query)}

    def decide(self, tenant_id: str, claim: Claim, request: WriteRequest) -> None:
        """Stores what a claimed refresh has turned out to do. Nothing happens if the claim is void."""
        with self._database.tenant(tenant_id) as connection:
            statement = update(jobs).where(held_by([claim])).values(request=request).returning(jobs.c.id)
            if connection.execute(statement).one_or_none() is not None:
                connection.execute(
                    update(instants)
                    .where(instants.c.job_id == claim.job_id)
                    .values(operation=request.operation.value)
                )


def find_views(connection: Connection, condition: ColumnElement[bool]) -> list[View]:
    """The views for which a condition on a row of `views` holds, by name."""
    query = _VIEWS.where(condition).order_by(datasets.c.name)
    return _views(connection, connection.execute(query).all())


def _find(connection: Connection, reference: str) -> View:
    if "\0" in reference:
        raise _not_found(reference)
    condition = datasets.c.id == reference if is_uuid(reference) else datasets.c.name == reference
    matches = _views(connection, connection.execute(_VIEWS.where(condition)).all())
    if not matches:
        raise _not_found(reference)
    return matches[0]


def _views(connection: Connection, rows: Sequence[Row[Any]]) -> list[View]:
    """The views in rows of `_VIEWS`, with their inputs."""
    inputs: dict[str, list[ViewInputStatus]] = {row.id: [] for row in rows}
    # One statement reads one snapshot: of datasets with a common transaction, it sees all new versions or none.
    for row in connection.execute(_INPUTS.where(any_of(view_inputs.c.view_id, list(inputs)))):
        inputs[row.view_id].append(
            ViewInputStatus(
                relation=row.relation,
                dataset=_dataset(row),
                position=row.position,
                position_version=row.position_version,
            )
        )
    return [
        View(
            dataset=_dataset(row),
            definition=row.view_definition,
            inputs=tuple(inputs[row.id]),
            paused=row.paused,
            revision=row.revision,
            error=row.error,
            failures=row.failures,
            attempted_at=row.attempted_at,
            attempted_ago_seconds=float(row.ago),
            refreshed_at=row.refreshed_at,
            created_at=row.view_created_at,
        )
        for row in rows
    ]


def _dataset(row: Row[Any]) -> Dataset:
    values = row._asdict()
    return Dataset(**{name: values[name] for name in Dataset.__struct_fields__})


def _replayed(connection: Connection, new: NewJob) -> Job | None:
    if new.idempotency_key is None:
        return None
    return replayed_job(connection, new.dataset_id, new.idempotency_key, new.request_hash)


def _last_was_slow(connection: Connection, view_id: str, slice_seconds: float) -> bool:
    """Whether the last attempt at the newest refresh that has ended took longer than a time slice."""
    seconds = func.extract("epoch", jobs.c.finished_at - jobs.c.claimed_at)
    last = (
        select(seconds)
        .where(
            jobs.c.dataset_id == view_id,
            jobs.c.kind == JobKind.REFRESH.value,
            jobs.c.finished_at.is_not(None),
        )
        .order_by(jobs.c.seq.desc())
        .limit(1)
    )
    took = connection.execute(last).scalar_one_or_none()
    return took is not None and took > slice_seconds


def _not_found(reference: str) -> NotFound:
    return NotFound(f"there is no view {reference!r}")
