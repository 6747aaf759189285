"""Read leases: the files of a version with a read lease are not removed."""

from __future__ import annotations

from sqlalchemy import Connection, delete, exists, func, or_, select
from sqlalchemy.dialects.postgresql import insert as insert_unless

from app.catalog.tables import heads
from app.db.session import Database
from app.db.times import lease_end, seconds_ago
from app.timeline.repository.kept_versions import check_kept, first_kept, share_history
from app.timeline.tables import commits, read_leases


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
        new = insert_unless(read_leases).values(
            dataset_id=dataset_id, reader=reader, version=version, lease_until=lease_end(seconds)
        )
        with self._database.tenant(tenant_id) as connection:
            share_history(connection, dataset_id)
            check_kept(connection, dataset_id, version)
            if not _is_recent(connection, dataset_id, version, superseded_seconds_max):
                return
            connection.execute(
                new.on_conflict_do_update(
                    index_elements=["tenant_id", "dataset_id", "reader", "version"],
                    set_={"lease_until": func.greatest(new.excluded.lease_until, read_leases.c.lease_until)},
                )
            )

    def release(self, tenant_id: str, dataset_id: str, reader: str) -> None:
        """Ends all leases of a reader on versions of the dataset; does nothing if there are none."""
        with self._database.tenant(tenant_id) as connection:
            connection.execute(
                delete(read_leases).where(
                    read_leases.c.dataset_id == dataset_id, read_leases.c.reader == reader
                )
            )

    def check(self, tenant_id: str, dataset_id: str, version: int) -> None:
        """Raises VersionExpired if the version is not kept any more, NotFound (dataset gone)."""
        with self._database.tenant(tenant_id) as connection:
            check_kept(connection, dataset_id, version)

    def first_kept(self, tenant_id: str, dataset_id: str, since: int) -> int:
        """The first version from `since` on that is kept; it may be in the future. Raises NotFound."""
        with self._database.tenant(tenant_id) as connection:
            return first_kept(connection, dataset_id, since)


def _is_recent(connection: Connection, dataset_id: str, version: int, seconds: float | None) -> bool:
    """Whether a version is the latest one, or the next one was committed in the last `seconds`; None is no bound."""
    if seconds is None:
        return True
    following = exists().where(
        commits.c.dataset_id == dataset_id,
        commits.c.version == version + 1,
        commits.c.committed_at > seconds_ago(seconds),
    )
    query = select(or_(heads.c.version <= version, following)).where(heads.c.dataset_id == dataset_id)
    return bool(connection.execute(query).scalar_one())
