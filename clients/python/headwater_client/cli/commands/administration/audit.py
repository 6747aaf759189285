"""`headwater audit`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Annotated, Literal

from cyclopts import Parameter

from headwater_client.cli.arguments.moments import instant_before
from headwater_client.cli.arguments.names import Count
from headwater_client.cli.printing.output import OUTPUT, Output, TableColumn
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.client import Headwater
from headwater_client.models import AuditEntry


def audit(
    *,
    tenant: str | None = None,
    key: str | None = None,
    operation: str | None = None,
    outcome: Literal["allowed", "denied", "failed"] | None = None,
    via: Literal["api", "console"] | None = None,
    since: Annotated[datetime | None, Parameter(converter=instant_before)] = None,
    until: Annotated[datetime | None, Parameter(converter=instant_before)] = None,
    limit: Count = 100,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Print who requested what, the newest first.

    Example: `headwater audit --outcome denied --since 1d`

    Parameters
    ----------
    tenant
        The id or the name of a tenant, for operators. Without it, an operator sees all tenants.
    key
        The id of a key.
    operation
        The name of an operation, for example create_key.
    outcome
        What happened.
    via
        Only requests of the console, or only those that are not.
    since
        Only from this time on, such as 2026-11-29 (UTC), or 12h for the last twelve hours.
    until
        Only before this time.
    limit
        How many entries, at most.
    """
    with service.client() as client:
        found = client.audit(
            tenant=tenant,
            key=key,
            operation=operation,
            outcome=outcome,
            via=via,
            since_time=since,
            until_time=until,
        )
        names = _names(client) if output.is_table() else {}
        output.items(islice(found, limit), _columns(names))


def _names(client: Headwater) -> Mapping[str, str]:
    """The names of the own datasets, and of the own tenant, or of all for an operator, by id."""
    identity = client.me()
    tenants = list(client.tenants()) if "operate" in identity.scopes else [identity.tenant]
    named = {each.id: each.name for each in tenants}
    if "read" in identity.scopes:
        named |= {each.id: each.name for each in client.datasets()}
    return named


def _columns(names: Mapping[str, str]) -> Sequence[TableColumn[AuditEntry]]:
    def resources(entry: AuditEntry) -> str | None:
        return " ".join(f"{kind}={names.get(what, what)}" for kind, what in entry.resources.items()) or None

    return (
        TableColumn("AT", lambda each: each.at),
        TableColumn("TENANT", lambda each: names.get(each.tenant_id or "", each.tenant_id)),
        TableColumn("KEY", lambda each: each.key_name or each.key_id),
        TableColumn("VIA", lambda each: each.via),
        TableColumn("ADDRESS", lambda each: each.address),
        TableColumn("OPERATION", lambda each: each.operation),
        TableColumn("RESOURCES", resources),
        TableColumn("OUTCOME", lambda each: each.outcome),
        TableColumn("STATUS", lambda each: each.status),
        TableColumn("COUNT", lambda each: each.count),
    )
