"""The latest sample of each dataset: its rows, bytes and files, and how often it is written."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import text

from app.infra.db.session import Database
from app.kernel.format.instant import WRITE_ACTIONS

# Of a busy dataset; one that is dear to sample rests for a multiple of what that took.
SAMPLE_SECONDS: Final = 45
_RESTS: Final = 100
# A dataset has a usual gap between its writes after this number of gaps. They are of its latest commits.
GAPS_MIN: Final = 10
_COMMITS_READ: Final = 64

_DUE: Final = text(
    f"""
    SELECT h.tenant_id::text AS tenant_id, h.dataset_id::text AS dataset_id FROM heads h
    JOIN datasets d ON d.tenant_id = h.tenant_id AND d.id = h.dataset_id AND d.deleted_at IS NULL
    LEFT JOIN dataset_samples s ON s.tenant_id = h.tenant_id AND s.dataset_id = h.dataset_id
    WHERE s.version IS NULL
          OR s.version <> h.version AND s.sampled_at < now() - make_interval(
              secs => greatest({SAMPLE_SECONDS}, {_RESTS} * s.milliseconds / 1000.0))
    ORDER BY row_number() OVER (PARTITION BY h.tenant_id ORDER BY s.sampled_at NULLS FIRST, h.dataset_id),
             s.sampled_at NULLS FIRST, h.tenant_id LIMIT :limit
    """  # noqa: S608
)
_SAMPLE: Final = text(
    f"""
    INSERT INTO dataset_samples
        (dataset_id, version, rows, deleted_rows, files, logs, size_bytes, write_gap_seconds, sampled_at)
    SELECT h.dataset_id, h.version, coalesce(f.stored_rows, 0) - coalesce(f.deleted_rows, 0),
           coalesce(f.deleted_rows, 0), coalesce(f.files, 0), coalesce(f.logs, 0), coalesce(f.size_bytes, 0),
           gaps.median, clock_timestamp()
    FROM heads h
    JOIN datasets d ON d.id = h.dataset_id AND d.deleted_at IS NULL
    LEFT JOIN LATERAL (
        SELECT sum(row_count) FILTER (WHERE kind = 'base') AS stored_rows,
               sum((deletion_vector->>'cardinality')::bigint) FILTER (WHERE kind = 'base') AS deleted_rows,
               count(*) AS files, count(*) FILTER (WHERE kind = 'log') AS logs, sum(size_bytes) AS size_bytes
        FROM files WHERE files.dataset_id = h.dataset_id AND removed_version IS NULL
    ) AS f ON true
    LEFT JOIN LATERAL (
        SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) AS median FROM (
            SELECT extract(epoch FROM committed_at - lag(committed_at) OVER (ORDER BY version)) AS seconds FROM (
                SELECT version, committed_at, action FROM commits WHERE commits.dataset_id = h.dataset_id
                ORDER BY version DESC LIMIT {_COMMITS_READ}
            ) AS latest WHERE action = ANY(:writes)
        ) AS gap WHERE seconds IS NOT NULL HAVING count(*) >= {GAPS_MIN}
    ) AS gaps ON true
    WHERE h.dataset_id = ANY(CAST(:datasets AS uuid[]))
    ORDER BY h.dataset_id
    ON CONFLICT (tenant_id, dataset_id) DO UPDATE SET
        version = excluded.version, rows = excluded.rows, deleted_rows = excluded.deleted_rows,
        files = excluded.files, logs = excluded.logs, size_bytes = excluded.size_bytes,
        write_gap_seconds = excluded.write_gap_seconds, sampled_at = excluded.sampled_at
    """  # noqa: S608
)
_TOOK: Final = text(
    "UPDATE dataset_samples SET milliseconds = :milliseconds "
    "WHERE dataset_id = ANY(CAST(:datasets AS uuid[])) AND milliseconds <> :milliseconds"
)
_WRITES: Final = [action.value for action in WRITE_ACTIONS]


class DatasetSampleStore:
    """Samples in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def due(self, limit: int) -> list[tuple[str, str]]:
        """Tenants and datasets with versions that no sample has: the first of every tenant come before the second of
        any, of each those that have waited longest.
        """
        with self._database.monitor() as connection:
            return [(row.tenant_id, row.dataset_id) for row in connection.execute(_DUE, {"limit": limit})]

    def sample(self, tenant_id: str, dataset_ids: Sequence[str]) -> None:
        """Samples datasets of a tenant."""
        values: dict[str, Any] = {"datasets": list(dataset_ids)}
        with self._database.tenant(tenant_id) as connection:
            began = time.perf_counter()
            connection.execute(_SAMPLE, {**values, "writes": _WRITES})
            each = (time.perf_counter() - began) / max(1, len(dataset_ids))
            connection.execute(_TOOK, {**values, "milliseconds": round(each * 1_000)})
