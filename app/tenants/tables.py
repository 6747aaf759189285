"""The tables of tenants and API keys.

Every row belongs to a tenant: `tenant_id` is the first column of every key, and its default is the tenant of the
transaction, so that no statement names it; row level security (see the migrations) hides all others. Two keys are
unique across tenants: the digest of an API key, which determines the tenant of a request, and the names of tenants.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    CheckConstraint,
    Column,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects.postgresql import ARRAY

from app.db.columns import (
    id_column,
    metadata,
    of_tenant,
    tenant_column,
    text_column,
    timestamp_column,
)

tenants: Final = Table(
    "tenants",
    metadata,
    tenant_column(),
    text_column("name"),
    timestamp_column("created_at", default=True),
    PrimaryKeyConstraint("tenant_id"),
    UniqueConstraint("name"),
)

api_keys: Final = Table(
    "api_keys",
    metadata,
    tenant_column(),
    id_column("id"),
    Column("digest", LargeBinary, nullable=False),
    Column("scopes", ARRAY(Text), nullable=False),
    Column("name", Text, nullable=False),
    timestamp_column("created_at", default=True),
    timestamp_column("revoked_at", nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    UniqueConstraint("digest"),
    CheckConstraint("octet_length(digest) = 32", name="digest"),
    of_tenant(),
)
