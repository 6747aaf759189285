"""Read leases: the files of a version with a read lease are not removed."""

from __future__ import annotations

from sqlalchemy import Connection, delete, exists, func, or_, select
from sqlalchemy.dialects.postgresql import insert as insert_unless

from app.core.catalog.tables import heads
from app.core.timeline.errors import OffsetExpired
from app.core.timeline.repository.kept_versions import (
    OF_FEED,
    check_kept,
    first_kept,
    share_history,
    share_history_at_head,
)
from app.core.timeline.tables import commits, read_leases
from app.infra.db.session import Database
from app.infra.db.times import lease_end, seconds_ago


class ReadLeaseStore:
    """Read leases in Postgres. All time is the database's clock.

    Those of a reader that has died run out: nothing waits for them but the removal of files.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def acquire(
        self,
        tenant_id: str,
        dataset_id: str,
        version: int,
        reader: str,
        seconds: float,
        *,
        superseded_seconds_max: float | None = None,
    ) -> None:
        """Leases a version to `reader` for `seconds`, or extends its lease; a reader may lease several versions.

        With `superseded_seconds_max`, a version that has been followed by another one for longer is checked only.
        Raises VersionExpired if the version is not kept any more, NotFound (dataset gone).
        """
        with self._database.tenant(tenant_id) as connection:
            share_history(connection, dataset_id)
            check_kept(connection, dataset_id, version)
            if _may_lease(connection, dataset_id, version, superseded_seconds_max):
                lease_version(connection, dataset_id, version, reader, seconds)

    def acquire_feed(
        self,
        tenant_id: str,
        dataset_id: str,
        version: int,
        reader: str,
        seconds: float,
        *,
        superseded_seconds_max: float | None = None,
    ) -> None:
        """Leases the changes after a version to `reader` for `seconds`, or extends its lease.

        The files of the version need not be kept, and are not kept. `superseded_seconds_max`: as of `acquire`. Raises
        OffsetExpired if the feed begins after these changes, NotFound (dataset gone).
        """
        with self._database.tenant(tenant_id) as connection:
            # The feed is not cut until the transaction ends.
            share_history_at_head(connection, dataset_id)
            earliest = connection.execute(
                select(heads.c.earliest_offset).where(heads.c.dataset_id == dataset_id)
            ).scalar_one()
            since = connection.execute(
                select(commits.c.next_offset).where(
                    commits.c.dataset_id == dataset_id, commits.c.version == version
                )
            ).scalar_one_or_none()
            if (since or 0) < earliest:
                raise OffsetExpired(
                    f"changes before {earliest} are kept no longer, and those after version {version} begin at "
                    f"{since or 0}: begin at a later version",
                    since=since or 0,
                    earliest=earliest,
                )
            if _may_lease(connection, dataset_id, version, superseded_seconds_max):
                lease_version(connection, dataset_id, version, f"{reader}{OF_FEED}", seconds)

    def release(self, tenant_id: str, dataset_id: str, reader: str) -> None:
        """Ends all leases of a reader on versions of the dataset and its feed; does nothing if there are none."""
        with self._database.tenant(tenant_id) as connection:
            release_versions(connection, dataset_id, reader)

    def check(self, tenant_id: str, dataset_id: str, version: int) -> None:
        """Raises VersionExpired if the version is not kept any more, NotFound (dataset gone)."""
        with self._database.tenant(tenant_id) as connection:
            check_kept(connection, dataset_id, version)

    def first_kept(self, tenant_id: str, dataset_id: str, since: int) -> int:
        """The first version from `since` on that is kept; it may be in the future. Raises NotFound."""
        with self._database.tenant(tenant_id) as connection:
            return first_kept(connection, dataset_id, since)


def lease_version(connection: Connection, dataset_id: str, version: int, reader: str, seconds: float) -> None:
    """Leases a version in the caller's transaction, which has checked under `share_versions` that it is kept."""
    new = insert_unless(read_leases).values(
        dataset_id=dataset_id, reader=reader, version=version, lease_until=lease_end(seconds)
    )
    connection.execute(
        new.on_conflict_do_update(
            index_elements=["tenant_id", "dataset_id", "reader", "version"],
            set_={"lease_until": func.greatest(new.excluded.lease_until, read_leases.c.lease_until)},
        )
    )


def release_versions(connection: Connection, dataset_id: str, reader: str) -> None:
    """Ends all leases of a reader on versions of the dataset and its feed, in the caller's transaction."""
    connection.execute(
        delete(read_leases).where(
            read_leases.c.dataset_id == dataset_id,
            read_leases.c.reader.in_([reader, f"{reader}{OF_FEED}"]),
        )
    )


def _may_lease(
    connection: Connection, dataset_id: str, version: int, superseded_seconds_max: float | None
) -> bool:
    """Whether a version is the latest one, or the next one was committed in the last seconds."""
    if superseded_seconds_max is None:
        return True
    following = exists().where(
        commits.c.dataset_id == dataset_id,
        commits.c.version == version + 1,
        commits.c.committed_at > seconds_ago(superseded_seconds_max),
    )
    recent = select(or_(heads.c.version <= version, following)).where(heads.c.dataset_id == dataset_id)
    return bool(connection.execute(recent).scalar_one())
