"""The usage of tenants: lists, and what the API counts for keys."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any, Final

from sqlalchemy import (
    Date,
    Select,
    String,
    Table,
    bindparam,
    cast,
    delete,
    func,
    literal,
    select,
    tuple_,
    union_all,
)
from sqlalchemy.dialects.postgresql import insert

from app.access.tenants.tables import dataset_hours, key_usage_days, tenants, usage_days
from app.access.tenants.usage import DAYS_KEPT, HOURS_KEPT, KeyUsage, Usage, UsageFilter, UsageOf
from app.access.tenants.values import TenantState
from app.infra.db.any_of import any_of
from app.infra.db.session import Database
from app.infra.db.times import seconds_ago
from app.kernel.paging import Page, PageTokens, unknown_token

_BY_DATASET: Final = ("rows_written", "bytes_written", "changes", "job_milliseconds", "stored_bytes")
_BY_KEY: Final = ("requests", "egress_bytes")
_IS_KEPT: Final = select(tenants.c.tenant_id).where(
    any_of(tenants.c.state, [TenantState.ACTIVE.value, TenantState.SUSPENDED.value])
)
_EXPIRED: Final = func.current_date() - DAYS_KEPT
# Made once: an API process records the keys of each busy tenant every few seconds.
_USED: Final = insert(key_usage_days).from_select(
    ["day", "key_id", *_BY_KEY],
    select(
        func.current_date(),
        *(bindparam(name, type_=key_usage_days.c[name].type) for name in ("key_id", *_BY_KEY)),
    ).where(_IS_KEPT.exists()),
    include_defaults=False,
)
_ADD_USED: Final = _USED.on_conflict_do_update(
    index_elements=["tenant_id", "day", "key_id"],
    set_={name: key_usage_days.c[name] + _USED.excluded[name] for name in _BY_KEY},
)


class UsageStore:
    """Usage in Postgres. The rows of datasets are written in the transactions of commits and of the ends of jobs."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, tenant_id: str, usages: Sequence[KeyUsage]) -> None:
        """Adds to the usage of the day what the keys of a tenant have used, unless the tenant is being deleted."""
        # In one order, so that no two processes wait for each other.
        rows = [
            {"key_id": each.key_id, "requests": each.requests, "egress_bytes": each.egress_bytes}
            for each in sorted(usages, key=lambda each: each.key_id)
        ]
        if rows:
            with self._database.tenant(tenant_id) as connection:
                connection.execute(_ADD_USED, rows)

    def expire(self, tenant_id: str) -> None:
        """Removes the usage of days and hours that are not kept."""
        with self._database.tenant(tenant_id) as connection:
            for table in (usage_days, key_usage_days):
                connection.execute(delete(table).where(table.c.day < _EXPIRED))
            connection.execute(
                delete(dataset_hours).where(dataset_hours.c.hour < seconds_ago(HOURS_KEPT * 3_600))
            )

    def page(
        self, tenant_id: str, usage_filter: UsageFilter, *, page_size: int, page_token: str | None
    ) -> Page:
        """Usage items by day, then by id. Raises InvalidRequest for a token that is not valid."""
        match usage_filter.of:
            case UsageOf.TENANT:
                query = _of_tenant()
            case UsageOf.DATASET:
                query = _of_each(usage_days, "dataset_id", _BY_DATASET)
            case UsageOf.KEY:
                query = _of_each(key_usage_days, "key_id", _BY_KEY)
        tokens = PageTokens("usage", tenant_id, usage_filter)
        usage_table = query.subquery()
        days = select(usage_table).order_by(usage_table.c.day, usage_table.c.id).limit(page_size + 1)
        if usage_filter.first_day is not None:
            days = days.where(usage_table.c.day >= usage_filter.first_day)
        if usage_filter.last_day is not None:
            days = days.where(usage_table.c.day <= usage_filter.last_day)
        if page_token is not None:
            day, last = _position(tokens.position(page_token))
            days = days.where(
                tuple_(usage_table.c.day, usage_table.c.id) > tuple_(literal(day, Date), literal(last))
            )
        with self._database.tenant(tenant_id) as connection:
            rows = connection.execute(days).all()
            items = [_usage(row) for row in rows]
        return tokens.page(
            items, page_size, lambda item: f"{item.day.isoformat()}/{item.id or ''}", _unchanged
        )


def _of_tenant() -> Select[Any]:
    nothing = literal(0)
    datasets = select(
        usage_days.c.day,
        *(usage_days.c[name] for name in _BY_DATASET),
        *(nothing.label(name) for name in _BY_KEY),
    )
    keys = select(
        key_usage_days.c.day,
        *(nothing.label(name) for name in _BY_DATASET),
        *(key_usage_days.c[name] for name in _BY_KEY),
    )
    both = union_all(datasets, keys).subquery()
    sums = (func.sum(both.c[name]).label(name) for name in (*_BY_DATASET, *_BY_KEY))
    return select(both.c.day, literal("").label("id"), *sums).group_by(both.c.day)


def _of_each(table: Table, column: str, names: Sequence[str]) -> Select[Any]:
    return select(table.c.day, cast(table.c[column], String).label("id"), *(table.c[name] for name in names))


def _usage(row: Any) -> Usage:
    values = row._asdict()
    numbers: dict[str, Any] = {
        name: int(value) for name, value in values.items() if name not in ("day", "id")
    }
    return Usage(day=row.day, id=row.id or None, **numbers)


def _position(text: str) -> tuple[date, str]:
    day, _, last = text.partition("/")
    try:
        return date.fromisoformat(day), last
    except ValueError:
        raise unknown_token() from None


def _unchanged(item: Usage) -> Usage:
    return item
