"""`headwater keys …`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Final

from cyclopts import Parameter

from headwater_client.cli.arguments.moments import instant
from headwater_client.cli.arguments.names import TenantOrOwn
from headwater_client.cli.printing.output import OUTPUT, Output, TableColumn
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.models import Grant, Key

_COLUMNS: Final[Sequence[TableColumn[Key]]] = (
    TableColumn("ID", lambda each: each.id),
    TableColumn("NAME", lambda each: each.name),
    TableColumn("SCOPES", lambda each: ",".join(each.scopes)),
    TableColumn(
        "DATASETS",
        lambda each: "*" if each.grants is None else ",".join(grant.datasets for grant in each.grants),
    ),
    TableColumn("EXPIRES", lambda each: each.expires_at),
    TableColumn("REVOKED", lambda each: each.revoked_at),
    TableColumn("LAST USED", lambda each: each.last_used_at),
)


def list_keys(
    *, tenant: TenantOrOwn = None, service: ServiceChoice = SERVICE, output: Output = OUTPUT
) -> None:
    """List API keys, without their texts.

    Example: `headwater keys`
    """
    with service.client() as client:
        output.items(client.api_keys(tenant=tenant), _COLUMNS)


def create(
    name: str,
    /,
    *,
    scope: Annotated[Sequence[str], Parameter(negative="")],
    datasets: Annotated[Sequence[str] | None, Parameter(negative="")] = None,
    expires_at: Annotated[datetime | None, Parameter(converter=instant)] = None,
    tenant: TenantOrOwn = None,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Make an API key, and print it. It is only shown now.

    Example: `headwater keys create reader --scope read --datasets 'orders_*'`

    Parameters
    ----------
    name
        What the key is for.
    scope
        What it may do: read, write, manage or operate. May be repeated.
    datasets
        A pattern of the datasets that it reaches, such as orders_*. May be repeated; by default all.
    expires_at
        When it expires, such as 2027-01-01 (UTC) or 90d (from now); by default never.
    """
    grants = None if datasets is None else [Grant(datasets=pattern) for pattern in datasets]
    with service.client() as client:
        made = client.create_key(name, list(scope), grants=grants, expires_at=expires_at, tenant=tenant)
    text = f"Key {made.name} has the id {made.id}. Its text, which is only shown now:"
    output.done(f"{text}\n{made.api_key}", made)


def show(
    key: str,
    /,
    *,
    tenant: TenantOrOwn = None,
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Print an API key, without its text.

    Example: `headwater keys show 01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2`

    Parameters
    ----------
    key
        The id of the key.
    """
    with service.client() as client:
        output.item(client.get_key(key, tenant=tenant))


def revoke(key: str, /, *, tenant: TenantOrOwn = None, service: ServiceChoice = SERVICE) -> None:
    """Revoke an API key, at once and for good.

    Example: `headwater keys revoke 01a1fa06-4f5e-7d60-ad25-2fd19c5dd7d2`

    Parameters
    ----------
    key
        The id of the key.
    """
    with service.client() as client:
        client.revoke_key(key, tenant=tenant)
    print(f"Key {key} is revoked.")
