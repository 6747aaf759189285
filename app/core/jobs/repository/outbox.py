"""Messages that become visible with the transaction that wrote them, and are sent at least once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from sqlalchemy import Connection, delete, insert, select, tuple_

from app.core.jobs.tables import outbox
from app.core.jobs.values import OutboxMessage
from app.infra.db.session import Database

_POST: Final = insert(outbox)


def post(connection: Connection, topic: str, dataset_id: str) -> None:
    """Leaves a message for the relay, to be sent once this transaction is durable."""
    connection.execute(_POST, {"topic": topic, "dataset_id": dataset_id})


class OutboxStore:
    """The outbox in Postgres. Several relays may run: each takes messages that no other holds."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def relay(self, send: Callable[[Sequence[OutboxMessage]], None], limit: int) -> int:
        """Hands up to `limit` messages to `send`, if there are any, and removes them once they are sent; returns how
        many.

        If `send` raises, none of them is removed: those sent already are sent again.
        """
        oldest = (
            select(outbox.c.tenant_id, outbox.c.id, outbox.c.topic, outbox.c.dataset_id)
            .order_by(outbox.c.id)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        with self._database.relay() as connection:
            rows = connection.execute(oldest).all()
            if rows:
                send(
                    [
                        OutboxMessage(topic=row.topic, tenant_id=row.tenant_id, dataset_id=row.dataset_id)
                        for row in rows
                    ]
                )
                message_ids = [(row.tenant_id, row.id) for row in rows]
                connection.execute(
                    delete(outbox).where(tuple_(outbox.c.tenant_id, outbox.c.id).in_(message_ids))
                )
        return len(rows)
