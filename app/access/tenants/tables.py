"""The tables of tenants, API keys, the subjects of tokens and usage.

Every row belongs to a tenant: `tenant_id` is the first column of every key, and its default is the tenant of the
transaction, so that no statement names it; row level security (see the migrations) hides all others. Two keys are
unique across tenants: the digest of an API key, which determines the tenant of a request, and the names of tenants.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    CheckConstraint,
    Column,
    Date,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from app.access.tenants.values import Grant
from app.infra.db.columns import (
    id_column,
    integer_column,
    json_column,
    metadata,
    of_tenant,
    tenant_column,
    text_column,
    timestamp_column,
)
from app.infra.db.stored_json import Document

tenants: Final = Table(
    "tenants",
    metadata,
    tenant_column(),
    text_column("name"),
    timestamp_column("created_at", default=True),
    Column("state", Text, nullable=False, server_default=text("'active'")),
    Column("quotas", Document(dict[str, Any]), nullable=False, server_default=text("'{}'")),
    Column("suspended_reason", Text),
    timestamp_column("suspended_at", nullable=True),
    PrimaryKeyConstraint("tenant_id"),
    UniqueConstraint("name"),
    CheckConstraint("state IN ('active', 'suspended', 'deleting', 'deleted')", name="state"),
)

# One row for each tenant that was deleted, or is being deleted.
tenant_deletions: Final = Table(
    "tenant_deletions",
    metadata,
    tenant_column(),
    text_column("name"),
    timestamp_column("requested_at", default=True),
    id_column("requested_by", nullable=True),
    json_column("rows_deleted", dict[str, int]),
    integer_column("files_deleted", default=0),
    integer_column("bytes_deleted", default=0),
    json_column("rows_left", dict[str, int], nullable=True),
    integer_column("files_left", nullable=True),
    timestamp_column("cleared_at", nullable=True),
    timestamp_column("finished_at", nullable=True),
    PrimaryKeyConstraint("tenant_id"),
    of_tenant(),
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
    # The datasets that the key reaches; null for all of the tenant's.
    json_column("grants", tuple[Grant, ...], nullable=True),
    timestamp_column("expires_at", nullable=True),
    # The minute of the last request.
    timestamp_column("last_used_at", nullable=True),
    # The key that made it; null for the first of an installation.
    id_column("created_by", nullable=True),
    Column("requests_per_second", Integer),
    PrimaryKeyConstraint("tenant_id", "id"),
    UniqueConstraint("digest"),
    CheckConstraint("octet_length(digest) = 32", name="digest"),
    of_tenant(),
)

# Who sent tokens: the actors of jobs and timelines that are no keys.
token_subjects: Final = Table(
    "token_subjects",
    metadata,
    tenant_column(),
    id_column("id"),
    text_column("issuer"),
    text_column("subject"),
    timestamp_column("created_at", default=True),
    # Exact to a day.
    timestamp_column("last_seen_at", default=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    of_tenant(),
    Index("token_subjects_seen", "tenant_id", "last_seen_at", "id"),
)

# A row for each dataset, so that commits of different datasets do not wait for each other.
usage_days: Final = Table(
    "usage_days",
    metadata,
    tenant_column(),
    Column("day", Date, nullable=False),
    id_column("dataset_id"),
    integer_column("rows_written", default=0),
    integer_column("bytes_written", default=0),
    integer_column("changes", default=0),
    integer_column("job_milliseconds", default=0),
    # The largest sample of the day.
    integer_column("stored_bytes", default=0),
    PrimaryKeyConstraint("tenant_id", "day", "dataset_id"),
    of_tenant(),
)

# The writes of each hour, for eight days.
dataset_hours: Final = Table(
    "dataset_hours",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    timestamp_column("hour"),
    integer_column("writes", default=0),
    integer_column("rows_written", default=0),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "hour"),
    of_tenant(),
    Index("dataset_hours_hour", "tenant_id", "hour"),
)

key_usage_days: Final = Table(
    "key_usage_days",
    metadata,
    tenant_column(),
    Column("day", Date, nullable=False),
    id_column("key_id"),
    integer_column("requests", default=0),
    integer_column("egress_bytes", default=0),
    PrimaryKeyConstraint("tenant_id", "day", "key_id"),
    of_tenant(),
)

# The latest sample of a tenant's files.
storage_samples: Final = Table(
    "storage_samples",
    metadata,
    tenant_column(),
    integer_column("stored_bytes", default=0),
    timestamp_column("sampled_at", default=True),
    PrimaryKeyConstraint("tenant_id"),
    of_tenant(),
)
