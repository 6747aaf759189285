"""Moving a dataset's head to its next version."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection, func, update

from app.catalog.tables import heads


def move_head(
    connection: Connection, dataset_id: str, version: int, *, next_offset: int | None = None
) -> tuple[datetime, int]:
    """Moves the head, which the caller has locked; returns the commit's time, later than every earlier one's, and the
    end of the feed, which stays unless `next_offset` is given.
    """
    now = func.date_trunc("milliseconds", func.clock_timestamp())
    row = connection.execute(
        update(heads)
        .where(heads.c.dataset_id == dataset_id)
        .values(
            version=version,
            next_offset=heads.c.next_offset if next_offset is None else next_offset,
            committed_at=func.greatest(now, heads.c.committed_at + timedelta(milliseconds=1)),
            unkept_since=func.coalesce(heads.c.unkept_since, func.clock_timestamp()),
        )
        .returning(heads.c.committed_at, heads.c.next_offset)
    ).one()
    return row.committed_at, row.next_offset
