"""The watermark of a feed, by position."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import BigInteger, Connection, bindparam, select, update

from app.core.catalog.tables import heads
from app.core.timeline.tables import commits
from app.core.timeline.values import NewCommit
from app.kernel.commit.watermarks import latest, least

# The last commit that ends at the position or before it: its changes and all earlier ones were read.
_AT: Final = (
    select(commits.c.watermark)
    .where(
        commits.c.dataset_id == bindparam("dataset", type_=commits.c.dataset_id.type),
        commits.c.next_offset <= bindparam("position", type_=BigInteger()),
    )
    .order_by(commits.c.next_offset.desc(), commits.c.version.desc())
    .limit(1)
)


def watermark_at(connection: Connection, dataset_id: str, position: int) -> datetime | None:
    """The watermark of the changes before a position; None if there is none, or it is kept no longer."""
    watermark: datetime | None = connection.execute(
        _AT, {"dataset": dataset_id, "position": position}
    ).scalar_one_or_none()
    return watermark


def watermark_after(connection: Connection, commit: NewCommit, before: datetime | None) -> datetime | None:
    """The watermark after a commit: of its rows, or, for a view, the least of the inputs that it has taken in."""
    of_rows = [message.lateness.watermark for message in commit.messages if message.lateness is not None]
    of_inputs = least(watermark_at(connection, each.dataset_id, each.next_since) for each in commit.advances)
    return latest([before, of_inputs, *of_rows])


def move_watermark(connection: Connection, commit: NewCommit, version: int, before: datetime | None) -> None:
    """Moves the watermark of the current version after a commit that makes none: a refresh that changes no row."""
    after = watermark_after(connection, commit, before)
    if not commit.advances or after == before:
        return
    for table in (heads, commits):
        connection.execute(
            update(table)
            .where(table.c.dataset_id == commit.dataset_id, table.c.version == version)
            .values(watermark=after)
        )
