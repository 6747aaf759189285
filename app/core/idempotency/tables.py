"""The table of idempotency keys and the replies that are stored with them."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Column, Index, Integer, LargeBinary, PrimaryKeyConstraint, Table, Text

from app.infra.db.columns import (
    json_column,
    metadata,
    of_tenant,
    tenant_column,
    text_column,
    timestamp_column,
)

idempotency_keys: Final = Table(
    "idempotency_keys",
    metadata,
    tenant_column(),
    text_column("scope"),
    text_column("key"),
    Column("request_hash", Text, nullable=False),
    Column("status", Integer, nullable=False),
    json_column("headers", dict[str, str]),
    Column("body", LargeBinary, nullable=False),
    timestamp_column("created_at", default=True),
    timestamp_column("expires_at"),
    PrimaryKeyConstraint("tenant_id", "scope", "key"),
    of_tenant(),
    Index("idempotency_keys_expiry", "tenant_id", "expires_at"),
)
