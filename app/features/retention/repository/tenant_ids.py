"""The tenants whose data a round of retention goes through."""

from __future__ import annotations

from sqlalchemy import select

from app.access.tenants.tables import tenant_deletions, tenants
from app.infra.db.session import Database


def all_tenants(database: Database) -> list[str]:
    """Ids of all tenants."""
    with database.relay() as connection:
        return list(connection.execute(select(tenants.c.tenant_id)).scalars())


def lasting_tenants(database: Database) -> list[str]:
    """Ids of all tenants that are not being deleted."""
    ending = select(tenant_deletions.c.tenant_id)
    with database.relay() as connection:
        ids = connection.execute(select(tenants.c.tenant_id).where(tenants.c.tenant_id.not_in(ending)))
        return list(ids.scalars())
