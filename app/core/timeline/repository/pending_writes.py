"""Writes that wait in files of their own until a compaction merges them, in Postgres."""

from __future__ import annotations

from typing import Final

from sqlalchemy import func, select

from app.core.catalog.values import Dataset
from app.core.timeline.tables import commits, files
from app.core.timeline.values import PendingWrites, keeps_pending
from app.infra.db.session import Database
from app.kernel.format.file_group import FileKind
from app.kernel.format.instant import Action

_PENDING: Final = (FileKind.LOG.value, FileKind.POSTPONED.value)


class PendingWriteStore:
    """Which writes of datasets wait."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, dataset: Dataset) -> PendingWrites:
        """The versions at which writes are not merged yet, and the compactions. Raises Unavailable."""
        if not keeps_pending(dataset.definition):
            return PendingWrites()
        span = func.int8range(files.c.added_version, files.c.removed_version)
        of_files = (
            select(func.unnest(func.range_agg(span)).label("span"))
            .where(files.c.dataset_id == dataset.id, files.c.kind.in_(_PENDING))
            .subquery()
        )
        spans = select(func.lower(of_files.c.span), func.upper(of_files.c.span)).order_by(
            func.lower(of_files.c.span)
        )
        compactions = (
            select(commits.c.version)
            .where(commits.c.dataset_id == dataset.id, commits.c.action == Action.COMPACTION.value)
            .order_by(commits.c.version)
        )
        with self._database.tenant(dataset.tenant_id) as connection:
            return PendingWrites(
                spans=tuple((first, end) for first, end in connection.execute(spans)),
                compactions=tuple(connection.execute(compactions).scalars()),
            )
