"""The commits that refused writes lost to."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, and_, func, or_, select

from app.access.tenants.tables import api_keys, token_subjects
from app.core.jobs.tables import instants, jobs
from app.core.timeline.tables import commits, files
from app.core.timeline.values import Winner
from app.kernel.commit.conflict import FILE_GROUPS_NAMED_MAX
from app.kernel.format.instant import WRITE_ACTIONS

_ACTOR: Final = func.coalesce(instants.c.actor, jobs.c.actor)


def winner_of_instant(connection: Connection, dataset_id: str, instant_id: str) -> Winner | None:
    """The commit of an instant, without its file groups; None if there is none."""
    return _winner(connection, _commits(dataset_id).where(commits.c.instant_id == instant_id), None)


def winner_since(connection: Connection, dataset_id: str, version: int) -> Winner | None:
    """The latest commit after a version, and the file groups that changed since; None if there is none."""
    is_later = or_(files.c.added_version > version, files.c.removed_version > version)
    query = _commits(dataset_id).where(commits.c.version > version)
    return _winner(connection, query, and_(files.c.dataset_id == dataset_id, is_later))


def winner_with_rows(connection: Connection, dataset_id: str, version: int) -> Winner | None:
    """The latest write up to a version, and the file groups with files at it; None if there is none."""
    live = and_(
        files.c.dataset_id == dataset_id,
        files.c.added_version <= version,
        or_(files.c.removed_version.is_(None), files.c.removed_version > version),
    )
    writes = commits.c.action.in_([action.value for action in WRITE_ACTIONS])
    return _winner(connection, _commits(dataset_id).where(commits.c.version <= version, writes), live)


def _commits(dataset_id: str) -> Select[Any]:
    return (
        select(
            commits.c.version,
            commits.c.instant_id,
            _ACTOR.label("actor"),
            func.coalesce(api_keys.c.name, token_subjects.c.subject).label("actor_name"),
        )
        .join(
            instants,
            and_(instants.c.dataset_id == commits.c.dataset_id, instants.c.id == commits.c.instant_id),
            isouter=True,
        )
        .join(jobs, jobs.c.id == instants.c.job_id, isouter=True)
        .join(api_keys, api_keys.c.id == _ACTOR, isouter=True)
        .join(token_subjects, token_subjects.c.id == _ACTOR, isouter=True)
        .where(commits.c.dataset_id == dataset_id)
        .order_by(commits.c.version.desc())
        .limit(1)
    )


def _winner(
    connection: Connection, query: Select[Any], file_condition: ColumnElement[bool] | None
) -> Winner | None:
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    names: list[str] = []
    count = 0
    if file_condition is not None:
        groups = select(files.c.file_group).where(file_condition).distinct().order_by(files.c.file_group)
        names = list(connection.execute(groups.limit(FILE_GROUPS_NAMED_MAX)).scalars())
        count = len(names)
        if count == FILE_GROUPS_NAMED_MAX:
            every = select(func.count(files.c.file_group.distinct())).where(file_condition)
            count = connection.execute(every).scalar_one()
    return Winner(**row._asdict(), file_groups=tuple(names), file_group_count=count)
