"""What tenants use, of many by one statement."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Final

from sqlalchemy import text

from app.access.tenants.usage import QuotaShare, TenantUse
from app.infra.db.session import Database

QUOTAS_USED: Final = """
    SELECT t.tenant_id, t.name AS tenant, q.quota, coalesce(q.used, 0) / CAST(t.quotas->>q.quota AS numeric) AS ratio
    FROM tenants t
    LEFT JOIN storage_samples s ON s.tenant_id = t.tenant_id
    LEFT JOIN LATERAL (
        SELECT sum(u.rows_written) AS rows_written, sum(u.bytes_written) AS bytes_written FROM usage_days u
        WHERE u.tenant_id = t.tenant_id AND u.day = current_date
    ) AS today ON true,
    LATERAL (VALUES ('storage_bytes', s.stored_bytes), ('rows_per_day', today.rows_written),
                    ('bytes_per_day', today.bytes_written)) AS q (quota, used)
    WHERE t.state = 'active' AND CAST(t.quotas->>q.quota AS numeric) > 0
"""
"""Which share of its quotas a tenant has used, of those that stop its writes. A quota of 0 is no limit to come."""
_USES: Final = text(
    """
    SELECT t.tenant_id, coalesce(s.stored_bytes, 0) AS stored_bytes, coalesce(today.rows_written, 0) AS rows_today
    FROM tenants t
    LEFT JOIN storage_samples s ON s.tenant_id = t.tenant_id
    LEFT JOIN LATERAL (
        SELECT sum(u.rows_written) AS rows_written FROM usage_days u
        WHERE u.tenant_id = t.tenant_id AND u.day = current_date
    ) AS today ON true
    WHERE t.tenant_id = ANY(:tenants)
    """
)
_SHARES: Final = text(
    f"""
    SELECT tenant_id, quota, ratio FROM ({QUOTAS_USED}) AS used
    WHERE tenant_id = ANY(:tenants) ORDER BY ratio DESC, quota
    """  # noqa: S608
)


class TenantUseStore:
    """The use of tenants in Postgres, as of the last samples."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, tenant_ids: Collection[str]) -> Mapping[str, TenantUse]:
        """The use of these tenants, by id. Raises TooSlow after five seconds, Unavailable."""
        tenants = {"tenants": list(tenant_ids)}
        shares: defaultdict[str, list[QuotaShare]] = defaultdict(list)
        with self._database.monitor() as connection:
            for row in connection.execute(_SHARES, tenants):
                shares[str(row.tenant_id)].append(
                    QuotaShare(quota=row.quota, share=round(float(row.ratio), 4))
                )
            return {
                str(row.tenant_id): TenantUse(
                    stored_bytes=int(row.stored_bytes),
                    rows_today=int(row.rows_today),
                    quotas=shares[str(row.tenant_id)],
                )
                for row in connection.execute(_USES, tenants)
            }
