"""Datasets of a tenant for which a metric may have the value of a fault, each metric by one statement of bounded time.

The statements name the tables of other rooms by their texts, as those over all tenants do.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from sqlalchemy import Row, TextClause, text

from app.access.tenants.repository.tenant_use import QUOTAS_USED
from app.features.monitoring.repository.numbers import (
    IS_FAILING,
    IS_LATE,
    IS_PAUSED,
    OVER_MAX_LAG,
)
from app.features.monitoring.values import Amount, DatasetFault
from app.infra.db.session import Database
from app.infra.errors import Unavailable

_log = logging.getLogger(__name__)
_STATEMENT_SECONDS: Final = 5
FAULTS_MAX: Final = 1_000
"""The most datasets of a metric: those that are named, and then those with the greatest values."""


_WEBHOOKS_NAMED_MAX: Final = 3
_NAME_CHARACTERS_MAX: Final = 200


class _Statement(NamedTuple):
    """Rows (id, name, value, subject). `detail`: the words about a value and a subject.

    `worst`: rows of all tenants with the name of the tenant, the worst first, and how many there are.
    """

    query: TextClause
    worst: TextClause
    detail: Callable[[float, str], str]

    def words(self, row: Row[Any]) -> str:
        """The words about a row."""
        return self.detail(row.value, row.subject)


def _statement(sql: str, detail: str) -> _Statement:
    return _statements(sql, sql, lambda value, subject: detail.format(value=Amount(value), subject=subject))


def _webhooks(condition: str, reason: str, one: str, many: str) -> _Statement:
    """Webhooks of each dataset. Operators get ids: the URL of a webhook is its tenant's.

    `reason`: what is wrong with a webhook `w`, for its tenant. `one`, `many`: what one webhook does, and several.
    """

    def of(name: str, reason: str) -> str:
        # In the order of their ids: so the text stays as it is until they change.
        webhooks = f"array_agg(json_build_array({name}, left({reason}, 200)) ORDER BY w.id)"
        return f"""
        SELECT w.tenant_id, d.id, d.name, count(*) AS value,
               CAST(array_to_json(({webhooks})[1:{_WEBHOOKS_NAMED_MAX}]) AS text) AS subject
        FROM webhooks w LEFT JOIN datasets d ON d.tenant_id = w.tenant_id AND d.id = w.dataset_id
        WHERE d.deleted_at IS NULL AND {condition} GROUP BY w.tenant_id, d.id, d.name
        """  # noqa: S608

    def detail(value: float, subject: str) -> str:
        texts = [": ".join(filter(None, (_name(name), reason))) for name, reason in json.loads(subject)]
        further = f"; and {value - len(texts):,.0f} more" if value > len(texts) else ""
        return f"{value:,.0f} {one if value == 1 else many}: {'; '.join(texts)}{further}"

    name = "coalesce(nullif(w.definition->>'description', ''), w.definition->>'url')"
    return _statements(of(name, reason), of("w.id", "w.error->>'detail'"), detail)


def _name(name: str | None) -> str:
    """The host of a URL, whose path may be a secret; another name as it is."""
    parts = urlsplit(name or "")
    is_page = parts.scheme in ("http", "https")
    return (parts.netloc.rpartition("@")[2] if is_page else name or "")[:_NAME_CHARACTERS_MAX]


def _statements(sql: str, of_all: str, detail: Callable[[float, str], str]) -> _Statement:
    """`of_all`: what the role reads that sees all tenants."""
    query = (
        f"SELECT * FROM ({sql}) AS faults "  # noqa: S608
        f"ORDER BY id = ANY(CAST(:first_ids AS uuid[])) DESC, value DESC, id, subject LIMIT {FAULTS_MAX}"
    )
    worst = (
        f"SELECT t.name AS tenant, faults.*, count(*) OVER () AS datasets FROM ({of_all}) AS faults "  # noqa: S608
        "JOIN tenants t ON t.tenant_id = faults.tenant_id WHERE value > :above "
        "ORDER BY value DESC, id, subject LIMIT :limit"
    )
    return _Statement(text(query), text(worst), detail)


_OF_DATASETS: Final = "d.deleted_at IS NULL"
STATEMENTS: Final = {
    "headwater_dataset_late_seconds": _statement(
        f"""
        SELECT d.tenant_id, d.id, d.name, extract(epoch FROM now() - coalesce(h.committed_at, d.created_at)) AS value,
               '' AS subject
        FROM datasets d JOIN heads h ON h.tenant_id = d.tenant_id AND h.dataset_id = d.id
        LEFT JOIN dataset_samples s ON s.tenant_id = d.tenant_id AND s.dataset_id = d.id
        WHERE {_OF_DATASETS} AND {IS_LATE}
        """,  # noqa: S608
        "no commit for {value:,.0f} s",
    ),
    "headwater_consumer_lag_changes_max": _statement(
        f"""
        SELECT DISTINCT ON (d.id) d.tenant_id, d.id, d.name, h.next_offset - c.position AS value, c.name AS subject
        FROM consumers c JOIN heads h ON h.tenant_id = c.tenant_id AND h.dataset_id = c.dataset_id
        JOIN datasets d ON d.tenant_id = c.tenant_id AND d.id = c.dataset_id
        WHERE {_OF_DATASETS} AND c.kind <> 'partition_webhook' AND h.next_offset > c.position
        ORDER BY d.id, value DESC, c.name
        """,  # noqa: S608
        "the consumer {subject} is {value:change|changes} behind",
    ),
    "headwater_consumers_over_max_lag": _statement(
        f"""
        SELECT d.tenant_id, d.id, d.name, count(*) AS value, min(c.name) AS subject {OVER_MAX_LAG}
        GROUP BY d.tenant_id, d.id, d.name
        """,
        "the consumer {subject} is farther behind than its max_lag",
    ),
    "headwater_views_behind_seconds_max": _statement(
        f"""
        SELECT d.tenant_id, d.id, d.name, extract(epoch FROM now() - min(first.committed_at)) AS value, '' AS subject
        FROM consumers c JOIN heads h ON h.tenant_id = c.tenant_id AND h.dataset_id = c.dataset_id
        JOIN views v ON v.tenant_id = c.tenant_id AND c.name = 'view:' || v.dataset_id
        JOIN datasets d ON d.tenant_id = v.tenant_id AND d.id = v.dataset_id,
        LATERAL (
            SELECT committed_at FROM commits
            WHERE commits.tenant_id = c.tenant_id AND commits.dataset_id = c.dataset_id
                  AND commits.next_offset > c.position
            ORDER BY commits.next_offset LIMIT 1
        ) AS first
        WHERE {_OF_DATASETS} AND c.kind = 'view' AND h.next_offset > c.position
        GROUP BY d.tenant_id, d.id, d.name
        """,  # noqa: S608
        "it lacks changes of its inputs that are {value:,.0f} s old",
    ),
    "headwater_views_failing": _statement(
        f"""
        SELECT d.tenant_id, d.id, d.name, v.failures AS value, '' AS subject
        FROM views v JOIN datasets d ON d.tenant_id = v.tenant_id AND d.id = v.dataset_id
        WHERE {_OF_DATASETS} AND v.failures > 0
        """,  # noqa: S608
        "{value:refresh has failed|refreshes in a row have failed}",
    ),
    "headwater_sources_failing": _statement(
        f"""
        SELECT d.tenant_id, d.id, d.name, max(s.failures) AS value, min(s.name) AS subject
        FROM sources s JOIN datasets d ON d.tenant_id = s.tenant_id AND d.id = s.dataset_id
        WHERE {_OF_DATASETS} AND (s.state = 'failed' OR (s.state = 'active' AND s.failures > 0))
        GROUP BY d.tenant_id, d.id, d.name
        """,  # noqa: S608
        "the last round of the source {subject} has failed",
    ),
    # A webhook of the alerts of all datasets is of none.
    "headwater_webhooks_paused": _webhooks(
        IS_PAUSED, "w.error->>'detail'", "webhook is paused", "webhooks are paused"
    ),
    "headwater_webhooks_failing": _webhooks(
        IS_FAILING,
        "w.recent_attempts->0->>'error'",
        "webhook fails",
        "webhooks fail",
    ),
    "headwater_quota_used_ratio": _statement(
        f"""
        SELECT DISTINCT ON (tenant_id) tenant_id, CAST(NULL AS uuid) AS id, CAST(NULL AS text) AS name,
               ratio AS value, quota AS subject
        FROM ({QUOTAS_USED}) AS used ORDER BY tenant_id, ratio DESC, quota
        """,  # noqa: S608
        "{value:.0%} of the quota {subject} is used",
    ),
    "headwater_quarantine_records": _statement(
        f"""
        SELECT d.tenant_id, d.id, d.name, sum(q.row_count) AS value, '' AS subject
        FROM quarantine_files q JOIN datasets d ON d.tenant_id = q.tenant_id AND d.id = q.dataset_id
        WHERE {_OF_DATASETS} AND q.written_at > now() - interval '1 hour' GROUP BY d.tenant_id, d.id, d.name
        """,  # noqa: S608
        "{value:record|records} within an hour",
    ),
}
"""By the metric of all tenants that they are the datasets of."""


class DatasetFaultStore:
    """Values of datasets in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(
        self, tenant_id: str, first_ids: Mapping[str, Sequence[str]] = MappingProxyType({})
    ) -> dict[str, list[DatasetFault]]:
        """By metric, the datasets with a value; a metric that could not be read is missing.

        `first_ids`: datasets to begin with, by metric.
        Raises Unavailable.
        """
        found: dict[str, list[DatasetFault]] = {}
        failures: list[Unavailable] = []
        for metric, statement in STATEMENTS.items():
            try:
                with self._database.tenant(tenant_id) as connection:
                    connection.execute(text(f"SET LOCAL statement_timeout = '{_STATEMENT_SECONDS}s'"))
                    rows = connection.execute(
                        statement.query, {"first_ids": list(first_ids.get(metric, ()))}
                    ).all()
            except Unavailable as error:
                failures.append(error)
                _log.warning("%s of tenant %s cannot be read: %s", metric, tenant_id, error)
                continue
            found[metric] = [
                DatasetFault(
                    dataset_id=None if row.id is None else str(row.id),
                    dataset=row.name,
                    value=float(row.value),
                    detail=statement.words(row),
                )
                for row in rows
            ]
        if failures and not found:
            raise failures[0]
        return found

    def worst(self, metric: str, above: float, limit: int) -> tuple[list[str], int]:
        """Texts that name the worst datasets of all tenants with a greater value, and the number of all of them.

        Raises TooSlow after five seconds, Unavailable.
        """
        statement = STATEMENTS[metric]
        with self._database.monitor() as connection:
            rows = connection.execute(statement.worst, {"above": above, "limit": limit}).all()
        names = [row.tenant if row.name is None else f"{row.tenant}/{row.name}" for row in rows]
        texts = [f"{name}: {statement.words(row)}" for name, row in zip(names, rows, strict=True)]
        return texts, rows[0].datasets if rows else 0
