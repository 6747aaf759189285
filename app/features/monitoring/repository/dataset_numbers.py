"""Numbers of some datasets of a tenant: each kind by one statement, whatever their number.

The statements name the tables of other rooms by their texts, as those over all tenants do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, TextClause, text

from app.features.monitoring.repository.numbers import IS_LATE, LATE_SECONDS_MIN
from app.features.monitoring.values import DatasetNumbers, DatasetProblem, HourNumbers
from app.infra.db.session import Database

_IDS: Final = "ANY(CAST(:datasets AS uuid[]))"
_SAMPLES: Final = text(
    f"""
    SELECT s.dataset_id::text AS id, s.rows, s.deleted_rows, s.files, s.logs, s.size_bytes, s.sampled_at
    FROM dataset_samples s WHERE s.dataset_id = {_IDS}
    """  # noqa: S608
)
_HOURS: Final = text(
    f"""
    SELECT dataset_id::text AS id, sum(writes)::bigint AS writes, sum(rows_written)::bigint AS rows_in
    FROM dataset_hours WHERE dataset_id = {_IDS} AND hour > now() - interval '24 hours' GROUP BY dataset_id
    """  # noqa: S608
)
_BY_HOUR: Final = """
    SELECT h.hour, coalesce(sum(n.writes), 0)::bigint AS writes, coalesce(sum(n.rows_written), 0)::bigint AS rows_in
    FROM generate_series(date_trunc('hour', now(), 'UTC') - make_interval(hours => :count - 1),
                         date_trunc('hour', now(), 'UTC'), interval '1 hour') AS h (hour)
    LEFT JOIN dataset_hours n ON n.hour = h.hour {condition} GROUP BY h.hour ORDER BY h.hour
    """
_HOURS_OF_ALL: Final = text(_BY_HOUR.format(condition=""))
_HOURS_OF_SOME: Final = text(_BY_HOUR.format(condition=f"AND n.dataset_id = {_IDS}"))
_CONSUMERS: Final = text(
    f"""
    SELECT c.dataset_id::text AS id, count(*) AS consumers, max(greatest(h.next_offset - c.position, 0)) AS lag,
        (array_agg(c.name ORDER BY c.position, c.name) FILTER (WHERE c.position < h.next_offset))[1]
            AS farthest_consumer
    FROM consumers c JOIN heads h ON h.dataset_id = c.dataset_id
    WHERE c.dataset_id = {_IDS} AND c.kind <> 'partition_webhook' GROUP BY c.dataset_id
    """  # noqa: S608
)
_QUARANTINE: Final = text(
    f"""
    SELECT f.dataset_id::text AS id, greatest(f.records - coalesce(r.records, 0), 0)::bigint AS quarantined
    FROM (SELECT dataset_id, sum(row_count) AS records FROM quarantine_files WHERE dataset_id = {_IDS}
          GROUP BY dataset_id) AS f
    LEFT JOIN (SELECT q.dataset_id, count(*) AS records FROM quarantine_redrives q JOIN jobs j ON j.id = q.job_id
               WHERE q.dataset_id = {_IDS} AND j.state NOT IN ('failed', 'cancelled')
               GROUP BY q.dataset_id) AS r ON r.dataset_id = f.dataset_id
    """  # noqa: S608
)
# A view that lacks no change of its inputs is not late, however long these have had no commit; nor is a new one.
_PROBLEMS: Final = text(
    f"""
    SELECT d.id::text AS id, 'late' AS problem FROM datasets d JOIN heads h ON h.dataset_id = d.id
    LEFT JOIN dataset_samples s ON s.dataset_id = d.id WHERE d.id = {_IDS} AND {IS_LATE}
    UNION
    SELECT v.dataset_id::text, 'late' FROM views v JOIN datasets d ON d.id = v.dataset_id
    JOIN view_inputs i ON i.view_id = v.dataset_id
    JOIN consumers c ON c.dataset_id = i.dataset_id AND c.name = 'view:' || v.dataset_id
    CROSS JOIN LATERAL (
        SELECT committed_at FROM commits WHERE dataset_id = i.dataset_id AND next_offset > c.position
        ORDER BY next_offset LIMIT 1
    ) AS missing
    WHERE v.dataset_id = {_IDS} AND NOT v.paused
        AND greatest(missing.committed_at, d.created_at) < now() - make_interval(secs => {LATE_SECONDS_MIN})
    UNION
    SELECT dataset_id::text AS id, 'source' AS problem FROM sources
    WHERE dataset_id = {_IDS} AND (state = 'failed' OR (state = 'active' AND failures > 0))
    UNION SELECT dataset_id::text, 'view' FROM views WHERE dataset_id = {_IDS} AND failures > 0
    UNION SELECT dataset_id::text, 'webhook' FROM webhooks
    WHERE dataset_id = {_IDS} AND state = 'paused' AND (failures > 0 OR error IS NOT NULL)
    """  # noqa: S608
)


class DatasetNumberStore:
    """Numbers of datasets in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, tenant_id: str, dataset_ids: Sequence[str]) -> Mapping[str, DatasetNumbers]:
        """The numbers of these datasets, by id."""
        ids = _array(dataset_ids)
        with self._database.tenant(tenant_id) as connection:
            samples = _by_id(connection, _SAMPLES, ids)
            hours, consumers = _by_id(connection, _HOURS, ids), _by_id(connection, _CONSUMERS, ids)
            quarantine = _by_id(connection, _QUARANTINE, ids)
            problems: dict[str, list[DatasetProblem]] = {}
            for dataset_id, problem in connection.execute(_PROBLEMS, ids):
                problems.setdefault(dataset_id, []).append(DatasetProblem(problem))
        return {
            each: DatasetNumbers(
                **samples.get(each, {}),
                **hours.get(each, {}),
                **consumers.get(each, {}),
                **quarantine.get(each, {}),
                problems=tuple(sorted(problems.get(each, ()))),
            )
            for each in dataset_ids
        }

    def hours(self, tenant_id: str, dataset_ids: Sequence[str] | None, count: int) -> list[HourNumbers]:
        """The writes of the last hours, the current one included, the oldest first; of all datasets for None."""
        query = _HOURS_OF_ALL if dataset_ids is None else _HOURS_OF_SOME
        values: dict[str, Any] = {"count": count} | ({} if dataset_ids is None else _array(dataset_ids))
        with self._database.tenant(tenant_id) as connection:
            return [HourNumbers(**row._mapping) for row in connection.execute(query, values)]


def _by_id(connection: Connection, query: TextClause, ids: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The other columns of each row by name, by its first column."""
    rows = connection.execute(query, ids)
    _, *names = rows.keys()
    return {row[0]: dict(zip(names, row[1:], strict=True)) for row in rows}


def _array(dataset_ids: Sequence[str]) -> dict[str, str]:
    """The parameter of a statement as one text: of a list, the driver would encode each item by itself."""
    return {"datasets": f"{{{','.join(dataset_ids)}}}"}
