"""Which records of a dataset are in quarantine, and which of them were redriven."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Row,
    and_,
    any_,
    bindparam,
    delete,
    false,
    func,
    literal,
    or_,
    select,
    true,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql import insert as insert_unless
from sqlalchemy.exc import IntegrityError

from app.core.jobs.repository.accept import accept_jobs
from app.core.jobs.tables import jobs
from app.core.jobs.values import Accepted, JobState, NewJob
from app.core.timeline.tables import quarantine_files, quarantine_redrives
from app.features.quarantine.errors import AlreadyRedriven
from app.features.quarantine.values import QuarantinePart, RecordRange
from app.infra.db.session import Database
from app.kernel.format.errors import HeadwaterError
from app.kernel.format.identifiers import is_uuid
from app.kernel.format.quarantine import QuarantineFile

_FILE_COLUMNS: Final = tuple(quarantine_files.c[name] for name in QuarantineFile.__struct_fields__)
_VOID: Final = (JobState.FAILED.value, JobState.CANCELLED.value)


class QuarantineStore:
    """The quarantine in Postgres. Records have the number of their file (`seq`) and their row in it."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def parts(
        self, tenant_id: str, dataset_id: str, job_id: str | None, after: tuple[int, int] | None, limit: int
    ) -> list[QuarantinePart]:
        """Up to `limit` records in their order, from the one after `after`; of one job, unless None."""
        if job_id is not None and not is_uuid(job_id):
            return []
        start = after or (0, -1)
        query = (
            _files(dataset_id)
            .where(quarantine_files.c.seq >= start[0])
            .order_by(quarantine_files.c.seq)
            # Each file has at least one record, so `limit` + 1 files suffice: the first one may be read in part.
            .limit(limit + 1)
        )
        if job_id is not None:
            query = query.where(quarantine_files.c.job_id == job_id)
        ranges = []
        remaining_records = limit
        with self._database.tenant(tenant_id) as connection:
            for row in connection.execute(query).all():
                first = start[1] + 1 if row.seq == start[0] else 0
                count = min(row.row_count - first, remaining_records)
                if count > 0:
                    ranges.append((row, first, count))
                    remaining_records -= count
            redriven = _redriven(connection, dataset_id, [_of_range(*each) for each in ranges])
        return [_part(row, first, count, redriven.get(row.path, {})) for row, first, count in ranges]

    def named(
        self, tenant_id: str, dataset_id: str, records: Mapping[int, Sequence[int]]
    ) -> list[QuarantinePart]:
        """The files with these numbers, whole, and what is known of the records named of each."""
        query = _files(dataset_id).where(quarantine_files.c.seq.in_(bindparam("numbers", expanding=True)))
        with self._database.tenant(tenant_id) as connection:
            rows = connection.execute(query, {"numbers": list(records)}).all()
            conditions = [
                and_(quarantine_redrives.c.path == row.path, _one_of_rows(records[row.seq])) for row in rows
            ]
            redriven = _redriven(connection, dataset_id, conditions)
        return [_part(row, 0, row.row_count, redriven.get(row.path, {})) for row in rows]

    def redrive(self, tenant_id: str, new: NewJob, records: Sequence[RecordRange]) -> Accepted:
        """One transaction: accepts the job and marks the records as redriven by it.

        Raises AlreadyRedriven if another job has some of them, or they are gone; IdempotencyMismatch, NotFound.
        """
        try:
            with self._database.tenant(tenant_id) as connection:
                (outcome,) = accept_jobs(connection, [new])
                if isinstance(outcome, HeadwaterError):
                    raise outcome
                if not outcome.is_replay:
                    _mark(connection, new, records)
                return outcome
        except IntegrityError as error:
            # A file was discarded meanwhile.
            raise _taken() from error

    def discard(self, tenant_id: str, dataset_id: str, job_id: str) -> int:
        """Removes the bad records of a job, redriven or not; returns how many they were."""
        if not is_uuid(job_id):
            return 0
        statement = (
            delete(quarantine_files)
            .where(quarantine_files.c.dataset_id == dataset_id, quarantine_files.c.job_id == job_id)
            .returning(quarantine_files.c.row_count)
        )
        with self._database.tenant(tenant_id) as connection:
            return sum(connection.execute(statement).scalars())


def _files(dataset_id: str) -> Any:
    return select(
        *_FILE_COLUMNS, quarantine_files.c.seq, quarantine_files.c.job_id, quarantine_files.c.written_at
    ).where(quarantine_files.c.dataset_id == dataset_id)


def _of_range(row: Row[Any], first: int, count: int) -> ColumnElement[bool]:
    record = quarantine_redrives.c.record
    whole = quarantine_redrives.c.path == row.path
    return whole if count == row.row_count else and_(whole, record >= first, record < first + count)


def _one_of_rows(records: Sequence[int]) -> ColumnElement[bool]:
    return quarantine_redrives.c.record == any_(literal(list(records), ARRAY(BigInteger)))


def _redriven(
    connection: Connection, dataset_id: str, conditions: Sequence[ColumnElement[bool]]
) -> dict[str, dict[int, str]]:
    """By path and record, the job that redrove it. One that failed or was cancelled did not."""
    query = (
        select(quarantine_redrives.c.path, quarantine_redrives.c.record, quarantine_redrives.c.job_id)
        .join(jobs, jobs.c.id == quarantine_redrives.c.job_id)
        .where(
            quarantine_redrives.c.dataset_id == dataset_id,
            or_(false(), *conditions),
            jobs.c.state.not_in(_VOID),
        )
    )
    jobs_by_record: dict[str, dict[int, str]] = {}
    for path, record, job_id in connection.execute(query):
        jobs_by_record.setdefault(path, {})[record] = job_id
    return jobs_by_record


def _mark(connection: Connection, new: NewJob, records: Sequence[RecordRange]) -> None:
    """Marks all records, however many ranges they are, in two statements. Raises AlreadyRedriven."""
    ranges = (
        func.unnest(
            literal([each.path for each in records], ARRAY(quarantine_redrives.c.path.type)),
            literal([each.first for each in records], ARRAY(BigInteger)),
            literal([each.first + each.count - 1 for each in records], ARRAY(BigInteger)),
        )
        .table_valued("path", "first", "last")
        .render_derived(name="ranges")
    )
    void_jobs = select(jobs.c.id).where(jobs.c.dataset_id == new.dataset_id, jobs.c.state.in_(_VOID))
    connection.execute(
        delete(quarantine_redrives).where(
            quarantine_redrives.c.dataset_id == new.dataset_id,
            quarantine_redrives.c.path == ranges.c.path,
            quarantine_redrives.c.record.between(ranges.c.first, ranges.c.last),
            quarantine_redrives.c.job_id.in_(void_jobs),
        )
    )
    numbers = (
        func.generate_series(ranges.c.first, ranges.c.last)
        .table_valued("number")
        .render_derived(name="numbers")
        .lateral()
    )
    new_marks = select(
        quarantine_files.c.dataset_id,
        quarantine_files.c.path,
        numbers.c.number,
        literal(new.id, quarantine_redrives.c.job_id.type),
    ).select_from(
        ranges.join(
            quarantine_files,
            and_(quarantine_files.c.dataset_id == new.dataset_id, quarantine_files.c.path == ranges.c.path),
        ).join(numbers, true())
    )
    mark = insert_unless(quarantine_redrives).from_select(
        ["dataset_id", "path", "record", "job_id"], new_marks
    )
    insertion = connection.execute(
        mark.on_conflict_do_nothing(), execution_options={"preserve_rowcount": True}
    )
    # The second of two requests waits here for the first, and finds its records taken.
    if insertion.rowcount != sum(each.count for each in records):
        raise _taken()


def _taken() -> AlreadyRedriven:
    return AlreadyRedriven("some of these records were redriven, or discarded, meanwhile; list them again")


def _part(row: Row[Any], first: int, count: int, redriven: dict[int, str]) -> QuarantinePart:
    return QuarantinePart(
        file=QuarantineFile(**{name: getattr(row, name) for name in QuarantineFile.__struct_fields__}),
        number=row.seq,
        job_id=row.job_id,
        written_at=row.written_at,
        first=first,
        count=count,
        redriven=redriven,
    )
