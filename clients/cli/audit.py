"""`headwater audit`."""

from datetime import datetime
from itertools import islice

from clients.cli.service import print_table, service


def audit(
    *,
    tenant: str | None = None,
    key: str | None = None,
    operation: str | None = None,
    outcome: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    limit: int = 100,
) -> None:
    """Print who requested what, the newest first.

    Parameters
    ----------
    tenant
        The id or the name of a tenant, for operators. Without it, an operator sees all tenants.
    key
        The id of a key.
    operation
        The name of an operation, for example create_key.
    outcome
        allowed, denied or failed.
    since
        Only from this time on.
    until
        Only before this time.
    limit
        How many entries, at most.
    """
    since_time, until_time = (None if each is None else each.astimezone() for each in (since, until))
    with service() as client:
        found = client.audit(
            tenant=tenant,
            key=key,
            operation=operation,
            outcome=outcome,
            since_time=since_time,
            until_time=until_time,
        )
        rows = [
            (
                each.at.isoformat(timespec="seconds"),
                each.tenant_id,
                each.key_name or each.key_id,
                each.address,
                each.operation,
                " ".join(f"{kind}={name}" for kind, name in each.resources.items()) or None,
                each.outcome,
                each.status,
                each.count,
            )
            for each in islice(found, limit)
        ]
    heading = ("AT", "TENANT", "KEY", "ADDRESS", "OPERATION", "RESOURCES", "OUTCOME", "STATUS", "COUNT")
    print_table(heading, rows)
