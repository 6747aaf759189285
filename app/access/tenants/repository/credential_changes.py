"""How processes are notified that what credentials may do has changed."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection, text

CREDENTIALS_CHANNEL: Final = "headwater_credentials"
"""The channel of notifications. The payload is the id of the tenant."""
_NOTIFY: Final = text(f"SELECT pg_notify('{CREDENTIALS_CHANNEL}', :tenant)")


def notify_change(connection: Connection, tenant_id: str) -> None:
    """Notifies all processes when the transaction commits.

    For a change of a tenant's keys, of its state, or of a dataset's name, by which grants match it.
    """
    connection.execute(_NOTIFY, {"tenant": tenant_id})
