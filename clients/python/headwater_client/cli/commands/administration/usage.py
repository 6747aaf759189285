"""`headwater usage`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Final, Literal

from headwater_client.cli.printing.output import OUTPUT, Bytes, Output, TableColumn
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.client import Headwater
from headwater_client.models import Usage

_NUMBERS: Final[dict[str, Callable[[Usage], object]]] = {
    "ROWS WRITTEN": lambda each: each.rows_written,
    "BYTES WRITTEN": lambda each: _bytes(each.bytes_written),
    "CHANGES": lambda each: each.changes,
    "JOB SECONDS": lambda each: None if each.job_seconds is None else round(each.job_seconds, 1),
    "STORED": lambda each: _bytes(each.stored_bytes),
    "REQUESTS": lambda each: each.requests,
    "EGRESS": lambda each: _bytes(each.egress_bytes),
}


def usage(
    *,
    tenant: str | None = None,
    first_day: date | None = None,
    last_day: date | None = None,
    by: Literal["tenant", "dataset", "key"] = "tenant",
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Print what a tenant has used, day by day.

    Example: `headwater usage --by dataset --first-day 2026-11-01`

    Parameters
    ----------
    tenant
        The id or the name of a tenant, with a key of an operator; by default the tenant of the key.
    first_day
        The first day, such as 2026-11-01.
    last_day
        The last day.
    by
        One line for each day, or for each day and dataset or key.
    """
    with service.client() as client:
        days = list(client.usage(tenant=tenant, first_day=first_day, last_day=last_day, by=by))
        names = _key_names(client, tenant) if by == "key" and output.is_table() and days else {}
    columns: list[TableColumn[Usage]] = [TableColumn("DAY", lambda each: each.day)]
    if by == "dataset":
        columns.append(TableColumn("DATASET", _dataset))
    if by == "key":
        columns.append(TableColumn("KEY", lambda each: names.get(each.key_id, each.key_id)))
    numbers = [TableColumn(heading, cell) for heading, cell in _NUMBERS.items()]
    columns += [column for column in numbers if any(column.cell(each) is not None for each in days)]
    output.items(days, columns)


def _dataset(item: Usage) -> str | None:
    return f"{item.dataset} (deleted)" if item.dataset_deleted_at else item.dataset or item.dataset_id


def _key_names(client: Headwater, tenant: str | None) -> dict[str | None, str]:
    return {each.id: each.name for each in client.api_keys(tenant=tenant)}


def _bytes(number: int | None) -> Bytes | None:
    return None if number is None else Bytes(number)
