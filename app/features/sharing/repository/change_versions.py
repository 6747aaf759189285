"""Which versions of a dataset have changes, in Postgres."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select

from app.core.timeline.tables import commits
from app.features.sharing.values import ChangeVersion
from app.infra.db.session import Database


class ChangeVersionStore:
    """The versions of datasets that have changes."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def versions(
        self, tenant_id: str, dataset_id: str, first: int, last: int, limit: int
    ) -> Sequence[ChangeVersion]:
        """The versions first–last that have changes, ascending, the first `limit` of them. Raises Unavailable."""
        query = (
            select(commits.c.version, commits.c.committed_at, commits.c.first_offset, commits.c.next_offset)
            .where(
                commits.c.dataset_id == dataset_id,
                commits.c.version.between(first, last),
                commits.c.next_offset > commits.c.first_offset,
            )
            .order_by(commits.c.version)
            .limit(limit)
        )
        with self._database.tenant(tenant_id) as connection:
            return [ChangeVersion(**row._asdict()) for row in connection.execute(query)]
