"""`headwater tenants …`."""

from msgspec import Struct, to_builtins

from clients.cli.service import print_table, service
from headwater_client.models import Tenant, TenantWithDeletion


def list_tenants() -> None:
    """List the tenants of the installation."""
    with service() as client:
        rows = [(each.id, each.name, each.state, each.suspended_reason) for each in client.tenants()]
    print_table(("ID", "NAME", "STATE", "REASON"), rows)


def create(name: str) -> None:
    """Make a tenant, and print its first key, which is only shown now.

    Parameters
    ----------
    name
        The name, which no other tenant has.
    """
    with service() as client:
        made = client.create_tenant(name)
    print(f"Tenant {made.name} has the id {made.id}. Its first key, which is only shown now:")
    print(made.api_key)


def show(tenant: str) -> None:
    """Print a tenant.

    Parameters
    ----------
    tenant
        The id or the name.
    """
    with service() as client:
        _print(client.get_tenant(tenant))


def suspend(tenant: str, *, reason: str | None = None) -> None:
    """Refuse the requests of a tenant that write.

    Parameters
    ----------
    tenant
        The id or the name.
    reason
        The tenant's requests are refused with this text.
    """
    with service() as client:
        _print(client.suspend_tenant(tenant, reason))


def resume(tenant: str) -> None:
    """Let a tenant write again.

    Parameters
    ----------
    tenant
        The id or the name.
    """
    with service() as client:
        _print(client.resume_tenant(tenant))


def delete(tenant: str, *, confirm: str) -> None:
    """Delete a tenant with all its data, which cannot be undone.

    Parameters
    ----------
    tenant
        The id or the name.
    confirm
        The name of the tenant, once more.
    """
    with service() as client:
        deleted = client.delete_tenant(tenant, confirm=confirm)
    print(f"The tenant is {deleted.state}. Follow its deletion: headwater tenants show {deleted.id}")


def _print(tenant: Tenant | TenantWithDeletion) -> None:
    for name in tenant.__struct_fields__:
        value = getattr(tenant, name)
        if isinstance(value, Struct):
            given = {key: each for key, each in to_builtins(value).items() if each is not None}
            value = ", ".join(f"{key}={each}" for key, each in given.items()) or None
        print(f"{name}: {'-' if value is None else value}")
