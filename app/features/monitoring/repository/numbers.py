"""Sums over all tenants, each by one statement of bounded time.

The statements name the tables of other rooms by their texts: the role may read these columns, and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import TextClause, text

from app.access.tenants.repository.tenant_use import QUOTAS_USED
from app.core.jobs.values import JobQueue
from app.features.monitoring.values import Sample
from app.infra.db.session import Database

CONSUMERS_NAMED: Final = 20
"""The consumers that have a sample of their own."""
LATE_NAMED: Final = 20
"""The late datasets that have a sample of their own."""
QUOTAS_NAMED: Final = 20
"""The quotas that have a sample of their own."""
TENANTS_NAMED: Final = 1_000
"""The tenants that have a sample of their own."""
# Of those that wait longest; each needs a look-up of its own.
_VIEWS_CHECKED: Final = 1_000
# A dataset is late after this number of gaps between its writes, and not before this time. After the longest time, it
# is idle.
_GAPS: Final = 3
LATE_SECONDS_MIN: Final = 300
IDLE_SECONDS: Final = 8 * 86_400

IS_LATE: Final = f"""
    CASE WHEN d.expected_every_seconds IS NOT NULL
    THEN coalesce(h.committed_at, d.created_at) < now() - make_interval(secs => d.expected_every_seconds)
    ELSE s.write_gap_seconds IS NOT NULL
        AND h.committed_at < now() - make_interval(secs => greatest({_GAPS} * s.write_gap_seconds, {LATE_SECONDS_MIN}))
        AND h.committed_at > now() - make_interval(secs => {IDLE_SECONDS})
        AND NOT EXISTS (SELECT FROM views v WHERE v.tenant_id = d.tenant_id AND v.dataset_id = d.id)
    END
"""
"""Whether a dataset `d` is late by itself, by its head `h` and its sample `s`, which may be missing.

A view without an expected time is not: it is late if it lacks a change of its inputs.
"""

IS_PAUSED: Final = "w.state = 'paused' AND (w.failures > 0 OR w.error IS NOT NULL)"
"""Whether the service has paused a webhook `w`: deliveries failed, or its receiver is gone (410)."""

IS_FAILING: Final = """
    w.state = 'active' AND (w.failures > 0 OR EXISTS (
        SELECT FROM webhook_deliveries m
        WHERE m.tenant_id = w.tenant_id AND m.webhook_id = w.id AND m.state = 'pending' AND m.attempts > 0
    ))
"""
"""Whether the receiver of a webhook `w` that is active did not take its last message."""

OVER_MAX_LAG: Final = """
    FROM consumers c JOIN heads h ON h.tenant_id = c.tenant_id AND h.dataset_id = c.dataset_id
    JOIN datasets d ON d.tenant_id = c.tenant_id AND d.id = c.dataset_id
    LEFT JOIN LATERAL (
        SELECT committed_at FROM commits
        WHERE commits.tenant_id = c.tenant_id AND commits.dataset_id = c.dataset_id
              AND commits.next_offset > c.position
        ORDER BY commits.next_offset LIMIT 1
    ) AS first ON c.max_lag_seconds IS NOT NULL
    WHERE d.deleted_at IS NULL AND h.next_offset > c.position AND (
        h.next_offset - c.position > c.max_lag_rows
        OR first.committed_at < now() - make_interval(secs => c.max_lag_seconds)
    )
"""
"""Consumers `c` of datasets `d` that are farther behind than their own limit."""

_JOBS: Final = text(
    """
    SELECT lane, state, count(*) AS jobs, count(not_before) AS postponed,
           extract(epoch FROM now() - min(created_at) FILTER (WHERE not_before IS NULL OR not_before <= now()))
               AS oldest_seconds
    FROM jobs WHERE state IN ('queued', 'running') GROUP BY lane, state
    """
)
_LAG: Final = text(
    """
    WITH behind AS (
        SELECT c.tenant_id, c.dataset_id, c.name, h.next_offset - c.position AS lag
        FROM consumers c JOIN heads h ON h.tenant_id = c.tenant_id AND h.dataset_id = c.dataset_id
        WHERE c.kind <> 'partition_webhook' AND h.next_offset > c.position
    ), worst AS (SELECT * FROM behind ORDER BY lag DESC, tenant_id, dataset_id, name LIMIT :limit)
    SELECT t.name AS tenant, d.name AS dataset, w.name AS consumer, w.lag, (SELECT count(*) FROM behind) AS consumers
    FROM worst w JOIN tenants t ON t.tenant_id = w.tenant_id
    JOIN datasets d ON d.tenant_id = w.tenant_id AND d.id = w.dataset_id
    """
).bindparams(limit=CONSUMERS_NAMED)
_DATASETS: Final = text("SELECT count(*) FROM datasets WHERE deleted_at IS NULL")
_LATE: Final = text(
    f"""
    SELECT t.name AS tenant, d.name AS dataset, count(*) OVER () AS datasets,
           extract(epoch FROM now() - coalesce(h.committed_at, d.created_at)) AS seconds
    FROM datasets d
    JOIN heads h ON h.tenant_id = d.tenant_id AND h.dataset_id = d.id
    JOIN tenants t ON t.tenant_id = d.tenant_id
    LEFT JOIN dataset_samples s ON s.tenant_id = d.tenant_id AND s.dataset_id = d.id
    WHERE d.deleted_at IS NULL AND {IS_LATE}
    ORDER BY seconds DESC, t.tenant_id, d.id LIMIT :limit
    """  # noqa: S608
).bindparams(limit=LATE_NAMED)
_VIEWS: Final = text(
    f"""
    SELECT coalesce(extract(epoch FROM now() - min(first.committed_at)), 0)
    FROM (
        SELECT c.tenant_id, c.dataset_id, c.position FROM consumers c
        JOIN heads h ON h.tenant_id = c.tenant_id AND h.dataset_id = c.dataset_id
        WHERE c.kind = 'view' AND h.next_offset > c.position ORDER BY c.moved_at LIMIT {_VIEWS_CHECKED}
    ) AS behind, LATERAL (
        SELECT committed_at FROM commits
        WHERE commits.tenant_id = behind.tenant_id AND commits.dataset_id = behind.dataset_id
              AND commits.next_offset > behind.position
        ORDER BY commits.next_offset LIMIT 1
    ) AS first
    """  # noqa: S608
)
_VIEWS_FAILING: Final = text(
    "SELECT count(*) FROM views v JOIN datasets d ON d.tenant_id = v.tenant_id AND d.id = v.dataset_id "
    "WHERE v.failures > 0 AND d.deleted_at IS NULL"
)
_FAILED: Final = text(
    "SELECT count(*) FROM jobs WHERE state = 'failed' AND finished_at > now() - interval '15 minutes'"
)
_SOURCES: Final = text(
    "SELECT count(*) FROM sources WHERE state = 'failed' OR (state = 'active' AND failures > 0)"
)
_WEBHOOKS: Final = text(f"SELECT count(*) FROM webhooks w WHERE {IS_PAUSED}")  # noqa: S608
_WEBHOOKS_FAILING: Final = text(f"SELECT count(*) FROM webhooks w WHERE {IS_FAILING}")  # noqa: S608
_OVER_MAX_LAG: Final = text(f"SELECT count(*) {OVER_MAX_LAG}")
_QUOTAS: Final = text(
    f"SELECT tenant, quota, ratio FROM ({QUOTAS_USED}) AS used ORDER BY ratio DESC, tenant_id, quota LIMIT :limit"  # noqa: S608
).bindparams(limit=QUOTAS_NAMED)
_QUARANTINE: Final = text(
    """
    SELECT (SELECT coalesce(sum(row_count), 0) FROM quarantine_files)
         - (SELECT count(*) FROM quarantine_redrives r JOIN jobs j ON j.tenant_id = r.tenant_id AND j.id = r.job_id
            WHERE j.state NOT IN ('failed', 'cancelled'))
    """
)
_STORAGE: Final = text(
    """
    SELECT t.name AS tenant, s.stored_bytes FROM storage_samples s JOIN tenants t ON t.tenant_id = s.tenant_id
    WHERE t.state IN ('active', 'suspended') ORDER BY s.stored_bytes DESC, t.tenant_id LIMIT :limit
    """
).bindparams(limit=TENANTS_NAMED)


class NumberStore:
    """The numbers of all tenants in Postgres. Each method is one transaction; it raises TooSlow after five seconds."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def parts(self) -> Mapping[str, Callable[[], Sequence[Sample]]]:
        """What reads the samples of each part."""
        counts = {
            "datasets": ("headwater_datasets", _DATASETS),
            "views": ("headwater_views_behind_seconds_max", _VIEWS),
            "failing views": ("headwater_views_failing", _VIEWS_FAILING),
            "failed jobs": ("headwater_jobs_failed_recently", _FAILED),
            "sources": ("headwater_sources_failing", _SOURCES),
            "webhooks": ("headwater_webhooks_paused", _WEBHOOKS),
            "failing webhooks": ("headwater_webhooks_failing", _WEBHOOKS_FAILING),
            "limits of consumers": ("headwater_consumers_over_max_lag", _OVER_MAX_LAG),
            "quarantine": ("headwater_quarantine_records", _QUARANTINE),
        }
        parts: dict[str, Callable[[], Sequence[Sample]]] = {
            part: lambda name=name, query=query: self._count(name, query)  # type: ignore[misc]
            for part, (name, query) in counts.items()
        }
        return {
            "jobs": self.jobs,
            "consumers": self.lag,
            "storage": self.storage,
            "late datasets": self.late,
            "quotas": self.quotas,
            **parts,
        }

    def jobs(self) -> list[Sample]:
        """Jobs that wait and that run, by queue."""
        by_state = {(row.lane, row.state): row for row in self._rows(_JOBS)}
        samples = []
        for queue in JobQueue:
            labels = {"lane": queue.value}
            queued, running = by_state.get((queue.value, "queued")), by_state.get((queue.value, "running"))
            oldest = 0.0 if queued is None else float(queued.oldest_seconds or 0)
            samples += [
                Sample("headwater_jobs_waiting", labels, 0 if queued is None else queued.jobs),
                Sample("headwater_jobs_oldest_waiting_seconds", labels, max(0.0, oldest)),
                Sample("headwater_jobs_running", labels, 0 if running is None else running.jobs),
            ]
        postponed = sum(row.postponed for row in by_state.values())
        return [*samples, Sample("headwater_jobs_postponed", {}, postponed)]

    def lag(self) -> list[Sample]:
        """How far consumers are behind: those farthest behind by name, and the number of all."""
        rows = self._rows(_LAG)
        worst = [
            Sample(
                "headwater_consumer_lag_changes",
                {"tenant": row.tenant, "dataset": row.dataset, "consumer": row.consumer},
                row.lag,
            )
            for row in rows
        ]
        return [
            *worst,
            Sample("headwater_consumer_lag_changes_max", {}, max((row.lag for row in rows), default=0)),
            Sample("headwater_consumer_lag_changes_count", {}, rows[0].consumers if rows else 0),
        ]

    def late(self) -> list[Sample]:
        """How long late datasets have had no commit: those that are late longest by name, and the number of all."""
        rows = self._rows(_LATE)
        longest = [
            Sample(
                "headwater_dataset_late_seconds",
                {"tenant": row.tenant, "dataset": row.dataset},
                round(float(row.seconds)),
            )
            for row in rows
        ]
        return [*longest, Sample("headwater_datasets_late", {}, rows[0].datasets if rows else 0)]

    def storage(self) -> list[Sample]:
        """What tenants store, of those that store most."""
        return [
            Sample("headwater_storage_bytes", {"tenant": row.tenant}, row.stored_bytes)
            for row in self._rows(_STORAGE)
        ]

    def quotas(self) -> list[Sample]:
        """Which share of a quota is used, of the quotas that are used most."""
        return [
            Sample(
                "headwater_quota_used_ratio",
                {"tenant": row.tenant, "quota": row.quota},
                round(float(row.ratio), 4),
            )
            for row in self._rows(_QUOTAS)
        ]

    def _count(self, name: str, query: TextClause) -> list[Sample]:
        [[number]] = self._rows(query)
        return [Sample(name, {}, float(number))]

    def _rows(self, query: TextClause) -> Sequence[Any]:
        with self._database.monitor() as connection:
            return connection.execute(query).all()
