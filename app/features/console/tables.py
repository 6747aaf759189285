"""The tables of sessions, and of links that sign in once.

The digest of a secret is unique across tenants, as that of an API key is: it determines the tenant of a request.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    UniqueConstraint,
)

from app.features.console.values import SessionClaims
from app.infra.db.columns import (
    id_column,
    json_column,
    metadata,
    of_tenant,
    tenant_column,
    timestamp_column,
)


def _of_key() -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["tenant_id", "key_id"], ["api_keys.tenant_id", "api_keys.id"], ondelete="CASCADE"
    )


console_sessions: Final = Table(
    "console_sessions",
    metadata,
    tenant_column(),
    Column("digest", LargeBinary, nullable=False),
    # A session began with a key or with a token.
    id_column("key_id", nullable=True),
    json_column("claims", SessionClaims, nullable=True),
    timestamp_column("created_at", default=True),
    timestamp_column("ends_at"),
    PrimaryKeyConstraint("tenant_id", "digest"),
    UniqueConstraint("digest"),
    CheckConstraint("octet_length(digest) = 32", name="digest"),
    CheckConstraint("(key_id IS NULL) <> (claims IS NULL)", name="origin"),
    of_tenant(),
    _of_key(),
    Index("console_sessions_ends", "tenant_id", "ends_at"),
)

console_links: Final = Table(
    "console_links",
    metadata,
    tenant_column(),
    Column("digest", LargeBinary, nullable=False),
    id_column("key_id"),
    timestamp_column("ends_at"),
    PrimaryKeyConstraint("tenant_id", "digest"),
    UniqueConstraint("digest"),
    CheckConstraint("octet_length(digest) = 32", name="digest"),
    _of_key(),
    Index("console_links_ends", "tenant_id", "ends_at"),
)
