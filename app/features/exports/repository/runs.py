"""Runs of exports: which is next, and what happens at once when one has succeeded."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as insert_unless

from app.core.catalog.tables import heads
from app.core.consumers.repository.followers import move_follower, wake_follower
from app.core.consumers.tables import consumers
from app.core.jobs.kinds.export import ExportTask
from app.core.jobs.repository.accept import accept_jobs
from app.core.jobs.repository.job_ends import succeed_task
from app.core.jobs.repository.job_locks import held_by, lock_jobs
from app.core.jobs.tables import idempotency
from app.core.jobs.values import JobState, NewJob
from app.core.timeline.tables import commits
from app.features.exports.errors import ExportEnded
from app.features.exports.repository.export_rows import (
    consumer_name,
    find_export,
    find_run,
    run_of_range,
    run_of_version,
)
from app.features.exports.schedules import times_after
from app.features.exports.tables import export_files, export_runs, exports
from app.features.exports.tasks import ExportQuery
from app.features.exports.values import MANIFEST_NAME, Export, ExportRun, ExportState, FinishedRun, NewRun
from app.kernel.format.errors import HeadwaterError
from app.kernel.format.result_file import RunFile

# A running run is polled at this interval, in case it fails.
_POLL_SECONDS: Final = 60.0
# The run of a cron schedule that failed is tried again after this time, or at the next time if that is sooner.
_RETRY_SECONDS: Final = 3600.0


def next_run(
    connection: Connection, export: Export, head: int, new: NewRun, *, also_empty: bool = False
) -> ExportRun | None:
    """The run from where the export stopped to the head: what is under way, what failed, or a new one. Of a snapshot,
    the run of the latest version, or of the one that the export has.

    None if there is no change, or no later version, unless an empty run will do. The caller has locked the export, and
    the feed of its dataset.
    """
    last = export.runs[0] if export.runs else None
    if last is not None and not last.job.state.final:
        return _known(connection, last, new)
    if export.definition.query is ExportQuery.SNAPSHOT:
        return _next_snapshot(connection, export, last, head, new, also_again=also_empty)
    if last is not None and last.since == export.offset and last.job.result is None:
        return _begin(connection, export, last.number, _Content(since=last.since, until=last.until), new)
    until = _end(export, head)
    if until <= export.offset and not also_empty:
        return None
    run = run_of_range(connection, export.id, export.offset, until)
    if run is not None:
        return _known(connection, run, new)
    number = last.number + 1 if last is not None else 1
    return _begin(connection, export, number, _Content(since=export.offset, until=until), new)


def _next_snapshot(
    connection: Connection,
    export: Export,
    last: ExportRun | None,
    head: int,
    new: NewRun,
    *,
    also_again: bool,
) -> ExportRun | None:
    """`also_again`: whether the run of the version will do if there is one."""
    failed = last is not None and last.job.result is None
    if last is not None and failed and find_run(connection, export.id, last.number).manifest is not None:
        # Its files are those of the run, wherever they have been copied already.
        content = _Content(since=last.since, until=last.until, version=last.version)
        return _begin(connection, export, last.number, content, new)
    version, until = _version(connection, export, head)
    run = run_of_version(connection, export.id, version)
    if run is not None and run.job.result is not None:
        return _known(connection, run, new) if also_again else None
    if version == 0 and not also_again:
        # Nothing has been written to the dataset yet.
        return None
    number = 1 if last is None else last.number + (not failed)
    return _begin(connection, export, number, _Content(since=0, until=until, version=version), new)


def _version(connection: Connection, export: Export, head: int) -> tuple[int, int]:
    """The version that the next snapshot has, and the number of changes before it."""
    version = export.definition.version
    if version is None:
        of_head = select(heads.c.version).where(heads.c.dataset_id == export.dataset_id)
        return connection.execute(of_head).scalar_one(), head
    query = select(commits.c.next_offset).where(
        commits.c.dataset_id == export.dataset_id, commits.c.version == version
    )
    return version, connection.execute(query).scalar_one_or_none() or 0


def _end(export: Export, head: int) -> int:
    until = export.definition.until
    return max(export.offset, head if until is None else min(head, until))


def _known(connection: Connection, run: ExportRun, new: NewRun) -> ExportRun:
    """The run that there is already: from now on the idempotency key of this request stands for it, too."""
    if new.idempotency_key is not None:
        connection.execute(
            insert_unless(idempotency)
            .values(
                dataset_id=run.job.dataset_id,
                key=new.idempotency_key,
                request_hash=new.request_hash,
                job_id=run.job.id,
            )
            .on_conflict_do_nothing()
        )
    return run


class _Content(msgspec.Struct, frozen=True, kw_only=True):
    """What a run writes."""

    since: int
    until: int
    version: int | None = None


def _begin(connection: Connection, export: Export, number: int, content: _Content, new: NewRun) -> ExportRun:
    """Accepts a job for a run; one that failed is made again with the same number, and over the same changes unless it
    is a snapshot.
    """
    job = NewJob(
        id=new.job_id,
        dataset_id=export.dataset_id,
        request=ExportTask(export_id=export.id, number=number, access=export.definition.access),
        idempotency_key=new.idempotency_key,
        request_hash=new.request_hash,
        actor=new.actor,
    )
    (outcome,) = accept_jobs(connection, [job])
    if isinstance(outcome, HeadwaterError):
        raise outcome
    values = {**msgspec.structs.asdict(content), "job_id": outcome.job.id}
    begin = insert_unless(export_runs).values(export_id=export.id, number=number, **values)
    connection.execute(
        begin.on_conflict_do_update(
            index_elements=[export_runs.c.tenant_id, export_runs.c.export_id, export_runs.c.number],
            set_=values,
        )
    )
    return find_run(connection, export.id, number)


def seconds_until_due(connection: Connection, export: Export) -> float:
    """How long until an export with a schedule goes on; 0 if it is due."""
    schedule = export.definition.schedule
    if schedule is None:
        return 0.0
    now = connection.execute(select(func.clock_timestamp())).scalar_one()
    last = export.runs[0] if export.runs else None
    if schedule.every_seconds is not None:
        age = 0.0 if last is None else (now - last.job.created_at).total_seconds()
        return 0.0 if last is None else max(schedule.every_seconds - age, 0.0)
    due = next(times_after(schedule, export.planned_at or export.created_at), None)
    if last is not None and last.job.state is JobState.FAILED:
        again = last.job.created_at + timedelta(seconds=_RETRY_SECONDS)
        due = again if due is None else min(due, again)
    return math.inf if due is None else max((due - now).total_seconds(), 0.0)


def plan_run(connection: Connection, export: Export, head: int, job_id: str) -> float | None:
    """Starts the next run if it is due; returns when the export is due again, as `Follower.follow` does."""
    schedule = export.definition.schedule
    if export.state is not ExportState.ACTIVE or schedule is None:
        return math.inf
    interval = None if schedule.every_seconds is None else float(schedule.every_seconds)
    if export.runs and not export.runs[0].job.state.final:
        return _POLL_SECONDS if interval is None else min(interval, _POLL_SECONDS)
    wait_seconds = seconds_until_due(connection, export)
    if wait_seconds > 0:
        return wait_seconds
    run = next_run(connection, export, head, NewRun(job_id=job_id))
    if interval is None:
        # However many times have passed, they are done with this run, or had nothing to export.
        mark_planned(connection, export.id)
        return (
            _POLL_SECONDS
            if run is not None
            else seconds_until_due(connection, find_export(connection, export.id))
        )
    if export.definition.query is ExportQuery.SNAPSHOT:
        # A new version need not have changes.
        return interval
    return None if run is None else interval


def mark_planned(connection: Connection, export_id: str) -> None:
    """Times of a cron schedule that have passed start no run any more."""
    connection.execute(
        update(exports).where(exports.c.id == export_id).values(planned_at=func.clock_timestamp())
    )


def record_run(connection: Connection, output: FinishedRun) -> bool:
    """Records the manifest and the files of a held job, unless an earlier attempt has recorded them.

    The caller has locked the export. False if the claim is void.
    """
    manifest = output.manifest
    if not lock_jobs(connection, held_by([output.claim])):
        return False
    run = find_run(connection, manifest.export_id, manifest.number)
    if run.manifest is not None:
        return True
    this = export_runs.c.export_id == manifest.export_id, export_runs.c.number == manifest.number
    connection.execute(update(export_runs).where(*this).values(manifest=manifest))
    rows = [
        {
            "dataset_id": run.job.dataset_id,
            "path": file.path,
            "export_id": manifest.export_id,
            "number": manifest.number,
            "name": file.name,
            "size_bytes": file.size_bytes,
            "row_count": file.row_count,
            "checksum": file.checksum,
        }
        for file in output.files
    ]
    connection.execute(insert(export_files), rows)
    return True


def run_files(connection: Connection, export_id: str, number: int) -> tuple[RunFile, ...]:
    """The files of a run by name, its manifest last."""
    query = (
        select(*(export_files.c[field] for field in RunFile.__struct_fields__))
        .where(export_files.c.export_id == export_id, export_files.c.number == number)
        .order_by(export_files.c.name == MANIFEST_NAME, export_files.c.name)
    )
    return tuple(RunFile(**row._asdict()) for row in connection.execute(query))


def finish_run(connection: Connection, output: FinishedRun) -> bool:
    """Publishes what a held job has written: manifest, files, position and job, all or nothing.

    The caller has locked the export. False if the claim is void.
    """
    if not record_run(connection, output):
        return False
    manifest = output.manifest
    export = find_export(connection, manifest.export_id)
    name = consumer_name(export.id)
    # A snapshot has all changes before its end, wherever the export was.
    since = manifest.offsets.since if manifest.version is None else export.offset
    next_since = max(since, manifest.offsets.next_since)
    if not move_follower(connection, export.dataset_id, name, since, next_since):
        raise RuntimeError(f"export {export.id} is not at {since}, where its run {manifest.number} began")
    succeed_task(connection, held_by([output.claim]), _result(output))
    _go_on(connection, find_export(connection, export.id))
    return True


def _result(output: FinishedRun) -> dict[str, Any]:
    manifest = output.manifest
    return {
        "export_id": manifest.export_id,
        "number": manifest.number,
        "next_since": manifest.offsets.next_since,
        "rows": manifest.rows,
        "files": len(manifest.files),
        "size_bytes": sum(file.size_bytes for file in manifest.files),
    }


def _go_on(connection: Connection, export: Export) -> None:
    """After a run: an export with a schedule waits for its time, another one, or one at its end, has ended."""
    if export.definition.schedule is None or reached(export):
        end_export(connection, export)
    else:
        wake_follower(
            connection, export.dataset_id, consumer_name(export.id), seconds_until_due(connection, export)
        )


def reached(export: Export) -> bool:
    """Whether the export is at its end. An end within a pair is reached at the position before both halves."""
    until, last = export.definition.until, export.runs[0] if export.runs else None
    if until is None:
        return False
    ran_to_end = last is not None and last.job.result is not None and last.until >= until
    return export.offset >= until or ran_to_end


def end_export(connection: Connection, export: Export) -> None:
    """Lets go of the feed; the export stays with its files, and with where it stopped."""
    connection.execute(
        update(exports)
        .where(exports.c.id == export.id)
        .values(state=ExportState.ENDED.value, stopped_at=export.offset, revision=exports.c.revision + 1)
    )
    drop_consumer(connection, export)


def drop_consumer(connection: Connection, export: Export) -> None:
    """Removes the consumer of an export."""
    connection.execute(
        consumers.delete().where(
            consumers.c.dataset_id == export.dataset_id, consumers.c.name == consumer_name(export.id)
        )
    )


def refuse_ended(export: Export) -> None:
    """Raises ExportEnded for an export that is at its end."""
    if reached(export):
        until = export.definition.until
        raise ExportEnded(
            f"The export is at its end: it was to go up to {until}", offset=export.offset, until=until
        )
