"""Subjects of tokens that were not seen for long."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from sqlalchemy import delete, literal, select, tuple_

from app.access.tenants.tables import api_keys, token_subjects
from app.core.jobs.tables import instants, jobs
from app.infra.db.any_of import any_of
from app.infra.db.session import Database
from app.infra.db.times import seconds_ago

# What names a subject by its id. Entries of the audit have the name themselves.
_REFERENCES: Final = (jobs.c.actor, instants.c.actor, api_keys.c.created_by)


class SubjectCursor(NamedTuple):
    """A place in the order in which subjects were last seen."""

    last_seen_at: datetime
    subject_id: str


class ExpiredSubjects(NamedTuple):
    """One batch. `subject_count`: those that were deleted. `last`: the last one that was checked; None at the end."""

    subject_count: int
    last: SubjectCursor | None


class ExpiredSubjectStore:
    """Subjects in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def expire(
        self, tenant_id: str, after: SubjectCursor | None, *, keep_seconds: float, limit: int
    ) -> ExpiredSubjects:
        """Checks the next `limit` subjects at most that were last seen more than `keep_seconds` ago.

        Deletes those to which no job, no entry of a timeline and no API key refers. `after`: where the batch before
        ended; None: from the beginning. Each batch is one transaction.
        """
        columns = token_subjects.c
        old = columns.last_seen_at < seconds_ago(keep_seconds)
        place = columns.last_seen_at, columns.id
        query = select(*place).where(old).order_by(*place).limit(limit)
        if after is not None:
            last_place = tuple_(
                *(literal(value, each.type) for value, each in zip(after, place, strict=True))
            )
            query = query.where(tuple_(*place) > last_place)
        with self._database.tenant(tenant_id) as connection:
            rows = connection.execute(query).all()
            unused_ids = {row.id for row in rows}
            for reference in _REFERENCES:
                if unused_ids:
                    references = select(reference).where(any_of(reference, sorted(unused_ids))).distinct()
                    unused_ids.difference_update(connection.execute(references).scalars())
            if unused_ids:
                # One that was seen meanwhile stays.
                connection.execute(delete(token_subjects).where(any_of(columns.id, sorted(unused_ids)), old))
        last = SubjectCursor(*rows[-1]) if len(rows) == limit else None
        return ExpiredSubjects(subject_count=len(unused_ids), last=last)
