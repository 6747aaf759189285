"""Which datasets have claimable jobs: asked by pollers, for all tenants at once.

Every step is a search in an index, of the next tenant or of the next dataset of a tenant. So the cost depends on how
many datasets are returned, not on how many jobs wait. Leases that ran out are searched among the running jobs, of which
there are never more than the workers hold.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, text

from app.core.jobs.values import JobQueue, RunnableDataset
from app.infra.db.tenant_rotation import Rotation

_TENANTS: Final = text("""
    WITH RECURSIVE found (tenant_id, number) AS (
        SELECT (SELECT tenant_id FROM jobs WHERE lane = :queue AND state = 'queued' AND tenant_id > :after
                ORDER BY tenant_id LIMIT 1), 1
        UNION ALL
        SELECT (SELECT jobs.tenant_id FROM jobs
                WHERE lane = :queue AND state = 'queued' AND jobs.tenant_id > found.tenant_id
                ORDER BY jobs.tenant_id LIMIT 1), number + 1
        FROM found WHERE tenant_id IS NOT NULL AND number < :limit
    )
    SELECT tenant_id::text FROM found WHERE tenant_id IS NOT NULL ORDER BY number
""")

_DATASETS: Final = text("""
    WITH RECURSIVE found (tenant_id, dataset_id, number) AS (
        SELECT tenant.id, coalesce(
            (SELECT dataset_id FROM jobs
             WHERE lane = :queue AND state = 'queued' AND tenant_id = tenant.id AND dataset_id > tenant.after
             ORDER BY dataset_id LIMIT 1),
            (SELECT dataset_id FROM jobs WHERE lane = :queue AND state = 'queued' AND tenant_id = tenant.id
             ORDER BY dataset_id LIMIT 1)
        ), 1
        FROM unnest(CAST(:tenants AS uuid[]), CAST(:after AS uuid[])) AS tenant (id, after)
        UNION ALL
        SELECT found.tenant_id, (
            SELECT jobs.dataset_id FROM jobs
            WHERE lane = :queue AND state = 'queued' AND jobs.tenant_id = found.tenant_id
                  AND jobs.dataset_id > found.dataset_id
            ORDER BY jobs.dataset_id LIMIT 1
        ), number + 1
        FROM found WHERE dataset_id IS NOT NULL AND number < :each
    )
    SELECT tenant_id::text, dataset_id::text, number, EXISTS (
        SELECT FROM jobs WHERE lane = :queue AND state = 'running' AND jobs.tenant_id = found.tenant_id
                               AND jobs.dataset_id = found.dataset_id
    ) AS busy, CASE WHEN :queue = 'writes' THEN (
        SELECT not_before > statement_timestamp() FROM jobs
        WHERE lane = 'writes' AND state = 'queued' AND jobs.tenant_id = found.tenant_id
              AND jobs.dataset_id = found.dataset_id
        ORDER BY seq LIMIT 1
    ) ELSE NOT EXISTS (
        SELECT FROM jobs WHERE lane = :queue AND state = 'queued' AND jobs.tenant_id = found.tenant_id
                               AND jobs.dataset_id = found.dataset_id
                               AND (not_before IS NULL OR not_before <= statement_timestamp())
    ) END AS postponed
    FROM found WHERE dataset_id IS NOT NULL ORDER BY number, tenant_id
""")

_LAPSED: Final = text("""
    SELECT tenant_id::text, dataset_id::text,
           row_number() OVER (PARTITION BY tenant_id ORDER BY min(lease_until)) AS number
    FROM jobs WHERE lane = :queue AND state = 'running' AND lease_until < statement_timestamp()
    GROUP BY tenant_id, dataset_id ORDER BY number, min(lease_until) LIMIT :limit
""")


def waiting_datasets(
    connection: Connection, queue: JobQueue, limit: int, rotation: Rotation
) -> list[RunnableDataset]:
    """At most `limit` datasets with queued jobs, and at most `limit` with leases that ran out; changes `rotation`.

    Each tenant has as many of them as each other, or all that it has. The first of every tenant come before the second
    of any, and datasets without a running job before the others: the worker that runs a job claims the next one itself.
    Datasets whose oldest write is postponed are left out, and those of which all tasks are.
    """
    lapsed_rows = connection.execute(_LAPSED, {"queue": queue.value, "limit": limit}).all()
    tenants = _next_tenants(connection, queue, limit, rotation)
    if not tenants:
        return [RunnableDataset(tenant_id=row.tenant_id, dataset_id=row.dataset_id) for row in lapsed_rows]
    each = max(1, limit // len(tenants))
    values = {
        "queue": queue.value,
        "tenants": tenants,
        "after": [rotation.after(tenant_id) for tenant_id in tenants],
        "each": each,
    }
    queued_rows = connection.execute(_DATASETS, values).all()
    for tenant_id in tenants:
        rotation.dataset_ids.pop(tenant_id, None)
    if len(rotation.dataset_ids) > limit:
        rotation.dataset_ids.clear()
    rotation.dataset_ids.update((row.tenant_id, row.dataset_id) for row in queued_rows if row.number == each)
    ready = [row for row in queued_rows if not row.postponed]
    rows = [*lapsed_rows, *sorted(ready, key=lambda row: bool(row.busy))]
    datasets = [RunnableDataset(tenant_id=row.tenant_id, dataset_id=row.dataset_id) for row in rows]
    return list(dict.fromkeys(datasets))


def _next_tenants(connection: Connection, queue: JobQueue, limit: int, rotation: Rotation) -> list[str]:
    """At most `limit` tenants with queued jobs, from where the last poll stopped."""

    def tenants(after: str, limit: int) -> list[str]:
        values = {"queue": queue.value, "after": after, "limit": limit}
        return list(connection.execute(_TENANTS, values).scalars())

    start = rotation.tenant_id
    tenant_ids = tenants(start, limit)
    if len(tenant_ids) < limit and start != Rotation().tenant_id:
        first_tenants = [
            each for each in tenants(Rotation().tenant_id, limit - len(tenant_ids)) if each <= start
        ]
        tenant_ids += first_tenants
    rotation.tenant_id = tenant_ids[-1] if len(tenant_ids) == limit else Rotation().tenant_id
    return tenant_ids
