"""Runs of exports: which is next, and what happens at once when one has succeeded."""

from __future__ import annotations

import math
from typing import Any, Final

from sqlalchemy import Connection, func, insert, select, update
from sqlalchemy.dialects.postgresql import insert as insert_unless

from app.core.consumers.repository.followers import move_follower, wake_follower
from app.core.consumers.tables import consumers
from app.core.jobs.kinds.export import ExportTask
from app.core.jobs.repository.accept import accept_jobs
from app.core.jobs.repository.job_ends import succeed_task
from app.core.jobs.repository.job_locks import held_by, lock_jobs
from app.core.jobs.tables import idempotency, jobs
from app.core.jobs.values import NewJob
from app.features.exports.errors import ExportEnded
from app.features.exports.repository.export_rows import consumer_name, find_export, find_run, run_of_range
from app.features.exports.tables import export_files, export_runs, exports
from app.features.exports.values import MANIFEST_NAME, Export, ExportRun, ExportState, FinishedRun, NewRun
from app.kernel.format.errors import HeadwaterError
from app.kernel.format.result_file import RunFile

# A running run is polled at this interval, in case it fails.
_POLL_SECONDS: Final = 60.0


def next_run(
    connection: Connection, export: Export, head: int, new: NewRun, *, also_empty: bool = False
) -> ExportRun | None:
    """The run from where the export stopped to the head: what is under way, what failed, or a new one.

    None if there is no change, unless an empty run will do. The caller has locked the export.
    """
    last = export.runs[0] if export.runs else None
    if last is not None and not last.job.state.final:
        return _known(connection, last, new)
    if last is not None and last.since == export.offset and last.job.result is None:
        return _begin(connection, export, last.number, last.since, last.until, new)
    until = _end(export, head)
    if until <= export.offset and not also_empty:
        return None
    run = run_of_range(connection, export.id, export.offset, until)
    if run is not None:
        return _known(connection, run, new)
    number = last.number + 1 if last is not None else 1
    return _begin(connection, export, number, export.offset, until, new)


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


def _begin(
    connection: Connection, export: Export, number: int, since: int, until: int, new: NewRun
) -> ExportRun:
    """Accepts a job for a run; one that failed is made again, over the same changes and with the same number."""
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
    values = {"export_id": export.id, "number": number, "since": since, "until": until}
    begin = insert_unless(export_runs).values(**values, job_id=outcome.job.id)
    connection.execute(
        begin.on_conflict_do_update(
            index_elements=[export_runs.c.tenant_id, export_runs.c.export_id, export_runs.c.number],
            set_={"job_id": outcome.job.id},
        )
    )
    return find_run(connection, export.id, number)


def seconds_until_due(connection: Connection, export: Export) -> float:
    """How long until an export with a schedule goes on; 0 if it is due."""
    schedule = export.definition.schedule
    if schedule is None or not export.runs:
        return 0.0
    age = func.extract("epoch", func.clock_timestamp() - jobs.c.created_at)
    began = connection.execute(select(age).where(jobs.c.id == export.runs[0].job.id)).scalar_one()
    return max(schedule.every_seconds - float(began), 0.0)


def plan_run(connection: Connection, export: Export, head: int, job_id: str) -> float | None:
    """Starts the next run if it is due; returns when the export is due again, as `Follower.follow` does."""
    schedule = export.definition.schedule
    if export.state is not ExportState.ACTIVE or schedule is None:
        return math.inf
    if export.runs and not export.runs[0].job.state.final:
        return min(float(schedule.every_seconds), _POLL_SECONDS)
    wait_seconds = seconds_until_due(connection, export)
    if wait_seconds > 0:
        return wait_seconds
    new = NewRun(job_id=job_id)
    return None if next_run(connection, export, head, new) is None else float(schedule.every_seconds)


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
    offsets = manifest.offsets
    name = consumer_name(export.id)
    if not move_follower(connection, export.dataset_id, name, offsets.since, offsets.next_since):
        raise RuntimeError(
            f"export {export.id} is not at {offsets.since}, where its run {manifest.number} began"
        )
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
