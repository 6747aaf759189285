"""Exports and the consumers of their positions, which change together. All time is the database's clock."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import msgspec
from sqlalchemy import Connection, Select, delete, func, insert, select, update

from app.access.errors import NotFound, PreconditionFailed
from app.access.tenants.repository.quotas import check_count
from app.core.catalog.repository.live_datasets import share_schemas
from app.core.catalog.tables import datasets
from app.core.changes.positions import FeedBounds, resolve_position
from app.core.changes.repository import lock_feed, offset_of
from app.core.consumers.followers import ConsumerKind
from app.core.consumers.repository.followers import add_follower, wake_follower
from app.core.consumers.values import MaxLag
from app.core.jobs.kinds.export import ExportTask
from app.core.jobs.repository.job_ends import cancel_locked
from app.core.jobs.repository.job_locks import UNFINISHED, lock_jobs
from app.core.jobs.repository.replays import replayed_job
from app.core.jobs.tables import jobs
from app.features.exports.errors import ExportEnded
from app.features.exports.repository.export_rows import (
    consumer_name,
    find_export,
    find_followers,
    find_run,
    list_exports,
    list_runs,
)
from app.features.exports.repository.runs import (
    drop_consumer,
    end_export,
    finish_run,
    mark_planned,
    next_run,
    plan_run,
    record_run,
    refuse_ended,
    run_files,
    seconds_until_due,
)
from app.features.exports.tables import export_files, export_runs, exports
from app.features.exports.tasks import ExportQuery
from app.features.exports.values import (
    Export,
    ExportChange,
    ExportDefinition,
    ExportRun,
    ExportState,
    FinishedRun,
    NewExport,
    NewRun,
    StartedRun,
)
from app.infra.db.acts import act_concerns
from app.infra.db.session import Database
from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.result_file import RunFile
from app.kernel.paging import Page

_COUNT: Final[Select[int]] = (
    select(func.count())
    .select_from(exports)
    .join(datasets, datasets.c.id == exports.c.dataset_id)
    .where(datasets.c.deleted_at.is_(None), exports.c.state != ExportState.ENDED.value)
)


class ExportStore:
    """Exports in Postgres. A transaction that changes one locks the head of its dataset, then the export, then jobs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, tenant_id: str, new: NewExport) -> Export:
        """One transaction: the export, its consumer, and the first run with its job.

        One with a schedule has no run before there is a change. Raises NotFound, InvalidRequest, OffsetAhead,
        OffsetExpired, SchemaChanged, QuotaExceeded.
        """
        with self._database.tenant(tenant_id) as connection:
            bounds = lock_feed(connection, new.dataset_id)
            share_schemas(connection, {new.dataset_id: new.schema_id})
            since = resolve_position(offset_of(connection, new.dataset_id, new.start), bounds)
            snapshot = new.definition.query is ExportQuery.SNAPSHOT
            definition = msgspec.structs.replace(new.definition, since=0 if snapshot else since)
            _check_end(definition)
            act_concerns(export=new.id)
            connection.execute(
                insert(exports).values(
                    id=new.id,
                    dataset_id=new.dataset_id,
                    definition=definition,
                    state=ExportState.ACTIVE.value,
                )
            )
            check_count(connection, "exports", _COUNT)
            _follow(connection, new.dataset_id, new.id, definition, since)
            first = NewRun(job_id=new.job_id, actor=new.actor)
            export = find_export(connection, new.id)
            if definition.schedule is None or definition.schedule.cron is None:
                next_run(
                    connection, export, bounds.next_offset, first, also_empty=definition.schedule is None
                )
            else:
                # It runs at its times only, the first of which is to come.
                wake_follower(
                    connection, new.dataset_id, consumer_name(new.id), seconds_until_due(connection, export)
                )
            return find_export(connection, new.id)

    def count(self, tenant_id: str) -> int:
        """The exports that count against the quota `exports`."""
        with self._database.tenant(tenant_id) as connection:
            return connection.execute(_COUNT).scalar_one()

    def get(self, tenant_id: str, export_id: str) -> Export:
        """Raises NotFound."""
        with self._database.tenant(tenant_id) as connection:
            return find_export(connection, export_id)

    def list(
        self,
        tenant_id: str,
        dataset_id: str | None,
        state: ExportState | None = None,
        *,
        page_size: int,
        page_token: str | None,
        patterns: Collection[str] | None = None,
    ) -> Page:
        """See `list_exports`."""
        with self._database.tenant(tenant_id) as connection:
            return list_exports(
                connection,
                tenant_id,
                dataset_id,
                state,
                page_size=page_size,
                page_token=page_token,
                patterns=patterns,
            )

    def followers(
        self, tenant_id: str, limit: int, dataset_ids: Collection[str] | None = None
    ) -> Sequence[Export]:
        """See `find_followers`."""
        with self._database.tenant(tenant_id) as connection:
            return find_followers(connection, limit, dataset_ids)

    def change(self, tenant_id: str, export_id: str, change: ExportChange) -> Export:
        """Raises NotFound, PreconditionFailed, ExportEnded, OffsetExpired, QuotaExceeded."""
        with self._database.tenant(tenant_id) as connection:
            export, bounds = _lock(connection, export_id)
            if export.revision != change.revision:
                raise PreconditionFailed(
                    f"The export is at revision {export.revision}, not {change.revision}",
                    revision=export.revision,
                )
            if export.state is ExportState.ENDED:
                _go_on(connection, export, bounds, change)
            definition = export.definition
            if change.schedule is not msgspec.UNSET:
                definition = msgspec.structs.replace(definition, schedule=change.schedule)
            new_state = change.state
            connection.execute(
                update(exports)
                .where(exports.c.id == export_id)
                .values(
                    definition=definition,
                    state=(export.state if isinstance(new_state, msgspec.UnsetType) else new_state).value,
                    stopped_at=None,
                    revision=exports.c.revision + 1,
                )
            )
            if definition.schedule is not None:
                # Times that passed under another schedule, or while it was paused, do not count.
                mark_planned(connection, export_id)
            export = find_export(connection, export_id)
            if definition.schedule is None and _idle(export):
                # Without a schedule it would keep the feed for ever, so it ends.
                end_export(connection, export)
            else:
                wake_follower(connection, export.dataset_id, consumer_name(export_id))
            return find_export(connection, export_id)

    def delete(self, tenant_id: str, export_id: str) -> None:
        """Ends the export and its jobs, and deletes the rows of its files. Raises NotFound."""
        with self._database.tenant(tenant_id) as connection:
            export, _ = _lock(connection, export_id)
            run_jobs = select(export_runs.c.job_id).where(export_runs.c.export_id == export_id)
            running = lock_jobs(connection, jobs.c.id.in_(run_jobs), UNFINISHED)
            cancel_locked(connection, running)
            drop_consumer(connection, export)
            connection.execute(delete(exports).where(exports.c.id == export_id))

    def start(self, tenant_id: str, export_id: str, new: NewRun) -> StartedRun:
        """The run from the position of the export to the head: an unfinished one, a failed one, or a new one.

        Raises NotFound, ExportEnded, OffsetExpired, IdempotencyMismatch, QuotaExceeded.
        """
        with self._database.tenant(tenant_id) as connection:
            export, bounds = _lock(connection, export_id)
            earlier_run = _replayed(connection, export, new)
            if earlier_run is not None:
                return StartedRun(run=earlier_run, is_replay=True)
            if export.state is ExportState.ENDED:
                _resume(connection, export, bounds)
                export = find_export(connection, export_id)
            run = next_run(connection, export, bounds.next_offset, new, also_empty=True)
            if run is None:
                raise AssertionError("an empty run will do")
            if run.job.state.final and export.definition.schedule is None:
                # It has the run already, so it ends again.
                end_export(connection, export)
            return StartedRun(run=run, is_replay=False)

    def plan(self, tenant_id: str, export_id: str, job_id: str) -> float | None:
        """Starts the next run of an export with a schedule if it is due.

        Returns when it is due again, as `Follower.follow` does. Raises NotFound.
        """
        with self._database.tenant(tenant_id) as connection:
            export, bounds = _lock(connection, export_id)
            return plan_run(connection, export, bounds.next_offset, job_id)

    def runs(self, tenant_id: str, export_id: str, *, page_size: int, page_token: str | None) -> Page:
        """ExportRun items, the latest first. Raises NotFound, InvalidRequest for a token that is not valid."""
        with self._database.tenant(tenant_id) as connection:
            return list_runs(connection, export_id, page_size=page_size, page_token=page_token)

    def run(self, tenant_id: str, export_id: str, number: int) -> ExportRun:
        """A run with its manifest, if it has one yet. Raises NotFound."""
        with self._database.tenant(tenant_id) as connection:
            return find_run(connection, export_id, number)

    def file(self, tenant_id: str, export_id: str, number: int, name: str) -> RunFile:
        """Raises NotFound."""
        columns = [export_files.c[field] for field in RunFile.__struct_fields__]
        conditions = (
            export_files.c.export_id == export_id,
            export_files.c.number == number,
            export_files.c.name == name,
        )
        with self._database.tenant(tenant_id) as connection:
            find_export(connection, export_id)
            row = None
            if "\0" not in name:
                row = connection.execute(select(*columns).where(*conditions)).one_or_none()
        if row is None:
            raise NotFound(f"Run {number} of the export has no file {name!r}")
        return RunFile(**row._asdict())

    def files(self, tenant_id: str, export_id: str, number: int) -> tuple[RunFile, ...]:
        """The files of a run, its manifest last. Raises NotFound."""
        with self._database.tenant(tenant_id) as connection:
            find_export(connection, export_id)
            return run_files(connection, export_id, number)

    def record(self, tenant_id: str, output: FinishedRun) -> bool:
        """One transaction: the manifest and the files of a run whose job goes on with them.

        False, and nothing, if the claim is void.
        """
        with self._database.tenant(tenant_id) as connection:
            _lock_export(connection, output.manifest.export_id)
            return record_run(connection, output)

    def finish(self, tenant_id: str, output: FinishedRun) -> bool:
        """One transaction: manifest, files, the position of the consumer, and the success of the job.

        False, and nothing, if the claim is void.
        """
        with self._database.tenant(tenant_id) as connection:
            _lock_export(connection, output.manifest.export_id)
            return finish_run(connection, output)


def _lock_export(connection: Connection, export_id: str) -> None:
    connection.execute(select(exports.c.id).where(exports.c.id == export_id).with_for_update())


def _lock(connection: Connection, export_id: str) -> tuple[Export, FeedBounds]:
    """The export, and the bounds of its feed, both locked. Raises NotFound."""
    bounds = lock_feed(connection, find_export(connection, export_id).dataset_id)
    _lock_export(connection, export_id)
    return find_export(connection, export_id), bounds


def _check_end(definition: ExportDefinition) -> None:
    until = definition.until
    if until is not None and until < definition.since:
        detail = f"expected at least {definition.since}, where the export starts"
        raise InvalidRequest(
            "the export would end before it starts", [FieldError(pointer="/until", detail=detail)]
        )


def _follow(
    connection: Connection, dataset_id: str, export_id: str, definition: ExportDefinition, position: int
) -> None:
    # A snapshot needs no changes, so it keeps none.
    lag = MaxLag(changes=0) if definition.query is ExportQuery.SNAPSHOT else definition.max_lag
    add_follower(
        connection,
        dataset_id,
        consumer_name(export_id),
        ConsumerKind.EXPORT,
        position,
        max_lag_rows=None if lag is None else lag.changes,
        max_lag_seconds=None if lag is None else lag.seconds,
    )


def _idle(export: Export) -> bool:
    return not export.runs or export.runs[0].job.state.final


def _go_on(connection: Connection, export: Export, bounds: FeedBounds, change: ExportChange) -> None:
    """Reactivates an ended export, if the change requests that. Raises what `_resume` does."""
    if change.state is not ExportState.ACTIVE:
        raise ExportEnded(
            "The export has ended; send `state: active` to continue it",
            offset=export.offset,
            until=export.definition.until,
        )
    _resume(connection, export, bounds)


def _resume(connection: Connection, export: Export, bounds: FeedBounds) -> None:
    """Adds the consumer of an ended export again, at its final position.

    Raises ExportEnded, OffsetExpired, QuotaExceeded.
    """
    refuse_ended(export)
    snapshot = export.definition.query is ExportQuery.SNAPSHOT
    position = bounds.next_offset if snapshot else resolve_position(export.offset, bounds)
    _follow(connection, export.dataset_id, export.id, export.definition, position)
    connection.execute(
        update(exports)
        .where(exports.c.id == export.id)
        .values(state=ExportState.ACTIVE.value, stopped_at=None, revision=exports.c.revision + 1)
    )
    check_count(connection, "exports", _COUNT)


def _replayed(connection: Connection, export: Export, new: NewRun) -> ExportRun | None:
    if new.idempotency_key is None:
        return None
    job = replayed_job(connection, export.dataset_id, new.idempotency_key, new.request_hash)
    if job is None or not isinstance(job.request, ExportTask):
        return None
    return find_run(connection, export.id, job.request.number)
