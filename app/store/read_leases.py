"""Holds of readers on versions, whose files are not removed as long as one is held."""

from __future__ import annotations

from sqlalchemy import delete, func
from sqlalchemy.dialects.postgresql import insert as insert_unless

from app.store.claim import lease_end
from app.store.kept_versions import check_kept, lock_history
from app.store.session import Database
from app.store.version_models import read_leases


class ReadLeaseStore:
    """Read leases in Postgres. All time is the database's clock."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def hold(self, tenant_id: str, dataset_id: str, version: int, reader: str, seconds: float) -> None:
        """Holds a version for so long, or longer if `reader` holds it already.

        Raises VersionExpired if the version is not kept any more, NotFound (dataset gone).
        """
        until = lease_end(seconds)
        new = insert_unless(read_leases).values(
            dataset_id=dataset_id, reader=reader, version=version, lease_until=until
        )
        with self._database.tenant(tenant_id) as connection:
            lock_history(connection, dataset_id)
            check_kept(connection, dataset_id, version)
            connection.execute(
                new.on_conflict_do_update(
                    index_elements=["tenant_id", "dataset_id", "reader"],
                    set_={
                        "version": version,
                        "lease_until": func.greatest(new.excluded.lease_until, read_leases.c.lease_until),
                    },
                )
            )

    def release(self, tenant_id: str, dataset_id: str, reader: str) -> None:
        """Ends a hold; one that is not there is no error."""
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
