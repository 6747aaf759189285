"""Idempotency keys in Postgres: a key is locked while its request runs, and stored with the reply."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from sqlalchemy import Connection, delete, func, select, text, tuple_
from sqlalchemy.dialects.postgresql import insert as insert_unless

from app.access.errors import IdempotencyInFlight
from app.core.idempotency.errors import IdempotencyMismatch
from app.core.idempotency.tables import idempotency_keys
from app.core.idempotency.values import KeyedRequest, Outcome, RefusedRequest, StoredReply
from app.infra.db.columns import CURRENT_TENANT
from app.infra.db.session import Database

# Held until the transaction ends, across processes. If the process dies, the key is free.
_LOCK: Final = text(
    "SELECT pg_try_advisory_xact_lock(hashtextextended("
    f"'idempotency ' || {CURRENT_TENANT} || ' ' || :scope || ' ' || :key, 0))"
)


class ReplyStore:
    """The replies in Postgres."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def once(
        self, tenant_id: str, request: KeyedRequest, act: Callable[[], StoredReply], *, keep_seconds: float
    ) -> Outcome:
        """Calls `act` and stores its reply in the same transaction, or returns the stored reply of an earlier request.

        After any error but RefusedRequest nothing is stored, and the key is free. Raises IdempotencyMismatch,
        IdempotencyInFlight, and what `act` raises.
        """
        with self._database.tenant(tenant_id, shared=True) as connection:
            if not connection.execute(_LOCK, {"scope": request.scope, "key": request.key}).scalar_one():
                raise IdempotencyInFlight("the first request with this Idempotency-Key still runs")
            earlier_reply = _find(connection, request)
            if earlier_reply is not None:
                return Outcome(reply=earlier_reply, is_replay=True)
            try:
                with connection.begin_nested():
                    reply = act()
            except RefusedRequest as refusal:
                reply = refusal.reply
            _store(connection, request, reply, keep_seconds)
            return Outcome(reply=reply, is_replay=False)

    def expire(self, tenant_id: str, limit: int) -> int:
        """Removes up to `limit` keys that have expired; returns how many there were."""
        place = tuple_(idempotency_keys.c.scope, idempotency_keys.c.key)
        keys = (
            select(idempotency_keys.c.scope, idempotency_keys.c.key)
            .where(idempotency_keys.c.expires_at <= func.clock_timestamp())
            .order_by(idempotency_keys.c.expires_at)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        with self._database.tenant(tenant_id) as connection:
            return connection.execute(delete(idempotency_keys).where(place.in_(keys))).rowcount


def _find(connection: Connection, request: KeyedRequest) -> StoredReply | None:
    query = select(
        idempotency_keys.c.request_hash,
        idempotency_keys.c.status,
        idempotency_keys.c.headers,
        idempotency_keys.c.body,
    ).where(
        idempotency_keys.c.scope == request.scope,
        idempotency_keys.c.key == request.key,
        idempotency_keys.c.expires_at > func.clock_timestamp(),
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    if row.request_hash != request.request_hash:
        raise IdempotencyMismatch
    return StoredReply(status=row.status, headers=row.headers, body=bytes(row.body))


def _store(connection: Connection, request: KeyedRequest, reply: StoredReply, keep_seconds: float) -> None:
    now = func.clock_timestamp()
    values: dict[str, Any] = {
        "request_hash": request.request_hash,
        "status": reply.status,
        "headers": dict(reply.headers),
        "body": reply.body,
        "created_at": now,
        "expires_at": now + timedelta(seconds=keep_seconds),
    }
    new = insert_unless(idempotency_keys).values(scope=request.scope, key=request.key, **values)
    # One that has expired, and was not removed yet, is replaced.
    connection.execute(
        new.on_conflict_do_update(
            index_elements=["tenant_id", "scope", "key"], set_={name: new.excluded[name] for name in values}
        )
    )
