"""`headwater keys …`."""

from datetime import UTC, datetime

from clients.cli.service import print_table, service
from headwater_client.models import Grant


def list_keys(*, tenant: str | None = None) -> None:
    """List API keys, without their texts.

    Parameters
    ----------
    tenant
        The id or the name of a tenant; by default the tenant of the own key.
    """
    with service() as client:
        rows = [
            (
                each.id,
                each.name,
                ",".join(each.scopes),
                "*" if each.grants is None else ",".join(grant.datasets for grant in each.grants),
                each.expires_at,
                each.revoked_at,
                each.last_used_at,
            )
            for each in client.api_keys(tenant=tenant)
        ]
    print_table(("ID", "NAME", "SCOPES", "DATASETS", "EXPIRES", "REVOKED", "LAST USED"), rows)


def create(
    name: str,
    *,
    scope: list[str],
    datasets: list[str] | None = None,
    expires_at: datetime | None = None,
    tenant: str | None = None,
) -> None:
    """Make an API key, and print it. It is only shown now.

    Parameters
    ----------
    name
        What the key is for.
    scope
        What it may do: read, write, manage or operate. May be repeated.
    datasets
        A pattern of the datasets that it reaches, such as orders_*. May be repeated; by default all.
    expires_at
        When it expires, in UTC; by default never.
    tenant
        The id or the name of a tenant; by default the tenant of the own key.
    """
    grants = None if datasets is None else [Grant(datasets=pattern) for pattern in datasets]
    if expires_at is not None and expires_at.tzinfo is None:
        expires_at = expires_at.replace(tzinfo=UTC)
    with service() as client:
        made = client.create_key(name, scope, grants=grants, expires_at=expires_at, tenant=tenant)
    print(f"Key {made.name} has the id {made.id}. Its text, which is only shown now:")
    print(made.api_key)


def revoke(key: str, *, tenant: str | None = None) -> None:
    """Revoke an API key, at once and for good.

    Parameters
    ----------
    key
        The id of the key.
    tenant
        The id or the name of a tenant; by default the tenant of the own key.
    """
    with service() as client:
        client.revoke_key(key, tenant=tenant)
    print(f"Key {key} is revoked.")
