"""`headwater tenants …`."""

from clients.cli.service import print_table, service
from headwater_client.models import Tenant


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


def _print(tenant: Tenant) -> None:
    for name in tenant.__struct_fields__:
        value = getattr(tenant, name)
        print(f"{name}: {'-' if value is None else value}")
