"""The table of the audit.

It refers to no other table: an entry outlives what it is about. The service's roles may add entries, and may delete
those that are older than 30 days; no role may change one (see the migrations).
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import CheckConstraint, Column, Index, PrimaryKeyConstraint, Table, Text, text

from app.infra.db.columns import (
    id_column,
    integer_column,
    json_column,
    metadata,
    tenant_column,
    text_column,
    timestamp_column,
)

audit: Final = Table(
    "audit",
    metadata,
    tenant_column(),
    id_column("id"),
    timestamp_column("first_at", default=True),
    timestamp_column("at", default=True),
    id_column("key_tenant_id", nullable=True),
    id_column("key_id", nullable=True),
    Column("key_name", Text),
    text_column("operation"),
    Column("method", Text, nullable=False),
    Column("route", Text, nullable=False),
    json_column("resources", dict[str, str]),
    json_column("members", dict[str, Any]),
    Column("via", Text, nullable=False, server_default="api"),
    Column("address", Text),
    Column("outcome", Text, nullable=False),
    integer_column("status"),
    Column("code", Text),
    Column("request_id", Text),
    integer_column("count", default=1),
    PrimaryKeyConstraint("tenant_id", "id"),
    CheckConstraint("outcome IN ('allowed', 'denied', 'failed')", name="outcome"),
    # For retention, and for the entries of a period.
    Index("audit_at", "tenant_id", "at"),
    # For operators, who read all tenants.
    Index("audit_newest", text("id DESC")),
)
