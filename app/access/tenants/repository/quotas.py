"""Quotas in the transactions of all rooms: what exists is counted where it is made, what is metered before a job."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Connection, Select, cast, func, select, text
from sqlalchemy.dialects.postgresql import JSONB, array

from app.access.tenants.quotas import Quotas, quota_exceeded, quotas_of
from app.access.tenants.tables import storage_samples, tenants, usage_days
from app.infra.db.columns import CURRENT_TENANT
from app.infra.db.session import Database

STORED_QUOTAS: Final[Any] = (
    select(tenants.c.quotas).where(tenants.c.tenant_id == CURRENT_TENANT).scalar_subquery()
)
"""The stored form of the own tenant's quotas, for statements that run anyway. See `quotas_of`."""
_LOCK: Final = text(
    f"SELECT pg_advisory_xact_lock(hashtextextended('quota ' || :name || ' ' || {CURRENT_TENANT}, 0))"
)
_OF_WORKERS: Final = ("weight", "job_seconds")
_TODAY: Final = select(
    func.coalesce(func.sum(usage_days.c.rows_written), 0).label("rows_per_day"),
    func.coalesce(func.sum(usage_days.c.bytes_written), 0).label("bytes_per_day"),
    func.coalesce(select(storage_samples.c.stored_bytes).scalar_subquery(), 0).label("storage_bytes"),
).where(usage_days.c.day == func.current_date())


class QuotaStore:
    """The quotas of tenants, and what is metered for them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of_workers(self) -> dict[str, Quotas]:
        """The quotas of all tenants whose work has a weight or a time limit of its own, by id."""
        query = select(tenants.c.tenant_id, tenants.c.quotas).where(
            cast(tenants.c.quotas, JSONB).has_any(array(_OF_WORKERS))
        )
        with self._database.relay() as connection:
            return {row.tenant_id: quotas_of(row.quotas) for row in connection.execute(query)}

    def metered(self, tenant_id: str) -> dict[str, int]:
        """What counts against the quotas of what is metered, by their names."""
        with self._database.tenant(tenant_id) as connection:
            return metered(connection)

    def check_metered(self, tenant_id: str, *names: str) -> None:
        """Raises QuotaExceeded if what is metered for a tenant has reached one of its quotas."""
        with self._database.tenant(tenant_id) as connection:
            check_metered(connection, _quotas(connection), names)


def check_count(
    connection: Connection, name: str, count_query: Select[int], quotas: Quotas | None = None
) -> None:
    """Called after something was made. Raises QuotaExceeded if more exists than the quota admits.

    `count_query` counts all that exists, the new included. A lock serializes those that make something of the kind, if
    the tenant has the quota. It is the last lock of their transactions, or only followed by one for another quota.
    """
    limit = (_quotas(connection) if quotas is None else quotas).limit(name)
    if limit is None:
        return
    lock_quota(connection, name)
    count = connection.execute(count_query).scalar_one()
    if count > limit:
        raise quota_exceeded(name, limit, count - 1)


def check_metered(connection: Connection, quotas: Quotas, names: tuple[str, ...]) -> None:
    """Raises QuotaExceeded if what is metered has reached one of the quotas."""
    limits = {name: limit for name in names if (limit := quotas.limit(name)) is not None}
    if not limits:
        return
    usage = metered(connection)
    for name, limit in limits.items():
        if usage[name] >= limit:
            raise quota_exceeded(name, limit, usage[name])


def lock_quota(connection: Connection, name: str) -> None:
    """Serializes the transactions of the tenant that use a quota."""
    connection.execute(_LOCK, {"name": name})


def metered(connection: Connection) -> dict[str, int]:
    """What counts against the quotas of what is metered, by their names."""
    return {name: int(value) for name, value in connection.execute(_TODAY).one()._mapping.items()}


def _quotas(connection: Connection) -> Quotas:
    return quotas_of(connection.execute(select(STORED_QUOTAS)).scalar_one())
