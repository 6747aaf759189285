"""`headwater tenants …`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

from cyclopts import Parameter

from headwater_client.cli.failure import CommandError, ExitCode
from headwater_client.cli.printing.output import OUTPUT, Bytes, Output, TableColumn
from headwater_client.cli.service import SERVICE, ServiceChoice
from headwater_client.models import QuotaUse, TenantWithUse


def _quota_used(tenant: TenantWithUse) -> str | None:
    """The quota that is used most, with its share."""
    return next((f"{each.share:.0%} {each.quota}" for each in tenant.quota_shares), None)


_COLUMNS: Final[Sequence[TableColumn[TenantWithUse]]] = (
    TableColumn("ID", lambda each: each.id),
    TableColumn("NAME", lambda each: each.name),
    TableColumn("STATE", lambda each: each.state),
    TableColumn("STORED", lambda each: Bytes(each.stored_bytes)),
    TableColumn("ROWS TODAY", lambda each: each.rows_today),
    TableColumn("QUOTA USED", _quota_used),
    TableColumn("REASON", lambda each: each.suspended_reason),
)
_QUOTAS: Final[Sequence[TableColumn[QuotaUse]]] = (
    TableColumn("QUOTA", lambda each: each.quota),
    TableColumn("LIMIT", lambda each: _amount(each.quota, each.limit)),
    TableColumn("USED", lambda each: _amount(each.quota, each.used)),
)


def list_tenants(*, service: ServiceChoice = SERVICE, output: Output = OUTPUT) -> None:
    """List the tenants of the installation, with an operator's key.

    Example: `headwater tenants`
    """
    with service.client() as client:
        output.items(client.tenants(), _COLUMNS)


def create(name: str, /, *, service: ServiceChoice = SERVICE, output: Output = OUTPUT) -> None:
    """Make a tenant, and print its first key, which is only shown now.

    Example: `headwater tenants create globex`

    Parameters
    ----------
    name
        The name, which no other tenant has.
    """
    with service.client() as client:
        made = client.create_tenant(name)
    text = f"Tenant {made.name} has the id {made.id}. Its first key, which is only shown now:"
    output.done(f"{text}\n{made.api_key}", made)


def show(tenant: str, /, *, service: ServiceChoice = SERVICE, output: Output = OUTPUT) -> None:
    """Print a tenant.

    Example: `headwater tenants show globex`

    Parameters
    ----------
    tenant
        The id or the name; a deleted tenant by its id.
    """
    with service.client() as client:
        output.item(client.get_tenant(tenant))


def suspend(
    tenant: str, /, *, reason: str | None = None, service: ServiceChoice = SERVICE, output: Output = OUTPUT
) -> None:
    """Refuse the requests of a tenant that write.

    Example: `headwater tenants suspend globex --reason unpaid`

    Parameters
    ----------
    tenant
        The id or the name.
    reason
        The tenant's requests are refused with this text.
    """
    with service.client() as client:
        output.item(client.suspend_tenant(tenant, reason))


def resume(tenant: str, /, *, service: ServiceChoice = SERVICE, output: Output = OUTPUT) -> None:
    """Let a tenant write again.

    Example: `headwater tenants resume globex`

    Parameters
    ----------
    tenant
        The id or the name.
    """
    with service.client() as client:
        output.item(client.resume_tenant(tenant))


def delete(
    tenant: str, /, *, confirm: str, service: ServiceChoice = SERVICE, output: Output = OUTPUT
) -> None:
    """Delete a tenant with all its data, which cannot be undone.

    Example: `headwater tenants delete globex --confirm globex`

    Parameters
    ----------
    tenant
        The id or the name.
    confirm
        The name of the tenant, once more.
    """
    with service.client() as client:
        deleted = client.delete_tenant(tenant, confirm=confirm)
    output.done(
        f"The tenant is {deleted.state}. Follow its deletion: headwater tenants show {deleted.id}", deleted
    )


def quotas(
    name: str,
    /,
    *,
    set_: Annotated[Sequence[str], Parameter(name="--set", negative="")] = (),
    remove: Annotated[Sequence[str], Parameter(negative="")] = (),
    service: ServiceChoice = SERVICE,
    output: Output = OUTPUT,
) -> None:
    """Print the quotas of a tenant with what it uses now, after changing some. Needs an operator's key.

    Example: `headwater tenants quotas globex --set datasets=10 --set storage_bytes=10000000000`

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
    with service.client() as client:
        if changes:
            client.change_quotas(name, changes)
        output.items(client.tenant_quotas(name), _QUOTAS)


def _limit(text: str) -> tuple[str, float]:
    quota, separator, limit = text.partition("=")
    try:
        if not separator:
            raise ValueError
        return quota, int(limit) if limit.isdigit() else float(limit)
    except ValueError:
        raise CommandError(
            f"--set {text}: expected a quota and its limit as a number, such as datasets=10 or "
            "storage_bytes=10000000000",
            ExitCode.USAGE,
        ) from None


def _amount(quota: str, number: float | None) -> object:
    return Bytes(int(number)) if number is not None and "bytes" in quota else number
