"""Moving a dataset's head to its next version."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, bindparam, func, update

from app.core.catalog.tables import heads

_NOW: Final = func.date_trunc("milliseconds", func.clock_timestamp())
NEXT_COMMIT_TIME: Final = func.greatest(_NOW, heads.c.committed_at + timedelta(milliseconds=1))
"""The time of a commit that is published now; later than that of every earlier commit of the dataset."""
# Made once: a part of each commit. The caller has locked the head.
MOVE_HEAD: Final = (
    update(heads)
    .where(heads.c.dataset_id == bindparam("dataset", type_=heads.c.dataset_id.type))
    .values(
        version=bindparam("new_version"),
        next_offset=func.coalesce(bindparam("end", type_=heads.c.next_offset.type), heads.c.next_offset),
        committed_at=NEXT_COMMIT_TIME,
        watermark=func.coalesce(bindparam("head_watermark", type_=heads.c.watermark.type), heads.c.watermark),
        unkept_since=func.coalesce(heads.c.unkept_since, func.clock_timestamp()),
    )
    .returning(heads.c.committed_at, heads.c.next_offset)
)


def moved_head(
    dataset_id: str, version: int, next_offset: int | None = None, watermark: datetime | None = None
) -> dict[str, Any]:
    """The parameters of `MOVE_HEAD`. The end of the feed and the watermark stay unless they are given."""
    return {
        "dataset": dataset_id,
        "new_version": version,
        "end": next_offset,
        "head_watermark": watermark,
    }


def move_head(connection: Connection, dataset_id: str, version: int) -> tuple[datetime, int]:
    """Moves the head; returns the commit's time and the end of the feed, which stays."""
    row = connection.execute(MOVE_HEAD, moved_head(dataset_id, version)).one()
    return row.committed_at, row.next_offset
