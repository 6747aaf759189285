"""Places of consumers within the rows of a version, and the versions that are kept for them."""

from __future__ import annotations

from typing import Any, Final

import msgspec
from sqlalchemy import Connection, select

from app.core.catalog.tables import heads
from app.core.changes.positions import FeedBounds, SnapshotPosition, version_ahead
from app.core.consumers.values import ConsumerPlace
from app.core.timeline.errors import VersionExpired
from app.core.timeline.repository.kept_versions import check_kept
from app.core.timeline.repository.read_leases import lease_version, release_versions
from app.core.timeline.tables import commits

# How long a version is kept for a consumer that is within its rows, after it has moved.
_KEPT_SECONDS: Final = 86_400.0


def place_in_version(connection: Connection, dataset_id: str, position: SnapshotPosition) -> ConsumerPlace:
    """The place in a version that is kept, with the feed after it. The caller holds `share_versions`.

    Raises OffsetAhead, OffsetExpired, VersionExpired.
    """
    head = connection.execute(
        select(heads.c.version, heads.c.earliest_offset, heads.c.next_offset).where(
            heads.c.dataset_id == dataset_id
        )
    ).one()
    version = head.version if position.version is None else position.version
    if version > head.version:
        raise version_ahead(version, head.version)
    check_kept(connection, dataset_id, version)
    of_version = commits.c.dataset_id == dataset_id, commits.c.version == version
    offset = connection.execute(select(commits.c.next_offset).where(*of_version)).scalar_one_or_none() or 0
    bounds = FeedBounds(earliest=head.earliest_offset, next_offset=head.next_offset)
    return ConsumerPlace(
        offset=bounds.checked(offset), snapshot=msgspec.structs.replace(position, version=version)
    )


def extend_version(connection: Connection, dataset_id: str, name: str, within: SnapshotPosition) -> None:
    """Keeps the version for a consumer that is within its rows for another day, unless it has expired meanwhile.

    The caller holds `share_versions`. Raises NotFound.
    """
    if within.version is None:
        return
    try:
        check_kept(connection, dataset_id, within.version)
    except VersionExpired:
        # The next read of the version raises the error.
        return
    keep_version(connection, dataset_id, name, within, within)


def stored_place(place: ConsumerPlace) -> dict[str, Any]:
    """The values of the columns `position` and `snapshot`."""
    return {"position": place.offset, "snapshot": place.snapshot_text}


def keep_version(
    connection: Connection,
    dataset_id: str,
    name: str,
    before: SnapshotPosition | None,
    after: SnapshotPosition | None,
) -> None:
    """Keeps the version whose rows a consumer is within from now on, and no other one.

    A version that was not kept for the consumer before must be kept by the caller until the transaction ends.
    """
    # No name has a space, so this is no reader of a feed.
    reader = f"consumer:{name}"
    if before is not None and (after is None or after.version != before.version):
        release_versions(connection, dataset_id, reader)
    if after is not None and after.version is not None:
        lease_version(connection, dataset_id, after.version, reader, _KEPT_SECONDS)
