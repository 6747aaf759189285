"""`headwater usage` and `headwater tenants quotas`: what tenants use, and what they may use."""

from collections.abc import Sequence
from datetime import date
from typing import Literal

from clients.cli.failure import CommandError
from clients.cli.service import print_table, service
from headwater_client.models import Usage


def usage(
    *,
    tenant: str | None = None,
    first_day: date | None = None,
    last_day: date | None = None,
    by: Literal["tenant", "dataset", "key"] = "tenant",
) -> None:
    """Print what a tenant has used, day by day. Reads HEADWATER_URL and HEADWATER_API_KEY.

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
    with service() as client:
        days = list(client.usage(tenant=tenant, first_day=first_day, last_day=last_day, by=by))
    names = Usage.__struct_fields__
    shown = [name for name in names if any(getattr(each, name) is not None for each in days)]
    print_table([name.upper() for name in shown], [[getattr(each, name) for name in shown] for each in days])


def quotas(name: str, *, set_: Sequence[str] = (), remove: Sequence[str] = ()) -> None:
    """Print the quotas of a tenant with what it uses now, after changing some. Needs a key of an operator.

    Parameters
    ----------
    name
        The id or the name of the tenant.
    set_
        A quota and its limit, such as datasets=10.
    remove
        A quota to remove.
    """
    changes: dict[str, float | None] = dict.fromkeys(remove)
    changes |= dict(map(_limit, set_))
    with service() as client:
        if changes:
            client.change_quotas(name, changes)
        found = client.tenant_quotas(name)
    print_table(("QUOTA", "LIMIT", "USED"), [[each.quota, each.limit, each.used] for each in found])


def _limit(text: str) -> tuple[str, float]:
    quota, separator, limit = text.partition("=")
    try:
        if not separator:
            raise ValueError
        return quota, int(limit) if limit.isdigit() else float(limit)
    except ValueError:
        raise CommandError(f"--set {text}: expected a quota and its limit, such as datasets=10") from None
