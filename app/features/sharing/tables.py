"""The tables of shares, their datasets, their recipients, and the tokens of these.

The digest of a token is unique across tenants, as that of an API key is: it determines the tenant of a request.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)

from app.features.sharing.values import RecipientGrant
from app.infra.db.columns import (
    id_column,
    integer_column,
    json_column,
    metadata,
    of_dataset,
    of_tenant,
    tenant_column,
    text_column,
    timestamp_column,
)

shares: Final = Table(
    "shares",
    metadata,
    tenant_column(),
    id_column("id"),
    text_column("name"),
    # Names are compared in this form.
    text_column("folded_name"),
    Column("deleted_rows", Text, nullable=False),
    integer_column("revision", default=1),
    timestamp_column("created_at", default=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    UniqueConstraint("tenant_id", "folded_name", name="shares_folded_name_key"),
    CheckConstraint("deleted_rows IN ('rendered', 'vector')", name="deleted_rows"),
    of_tenant(),
)

shared_datasets: Final = Table(
    "shared_datasets",
    metadata,
    tenant_column(),
    id_column("share_id"),
    id_column("dataset_id"),
    # In the share. The name of the dataset may change.
    text_column("name"),
    text_column("folded_name"),
    PrimaryKeyConstraint("tenant_id", "share_id", "dataset_id"),
    UniqueConstraint("tenant_id", "share_id", "folded_name", name="shared_datasets_folded_name_key"),
    ForeignKeyConstraint(["tenant_id", "share_id"], ["shares.tenant_id", "shares.id"], ondelete="CASCADE"),
    of_dataset(),
    Index("shared_datasets_dataset", "tenant_id", "dataset_id"),
)

recipients: Final = Table(
    "recipients",
    metadata,
    tenant_column(),
    id_column("id"),
    id_column("share_id"),
    text_column("name"),
    # By the ids of datasets; null for all of the share. One whose dataset left the share stays, and holds again if the
    # dataset comes back.
    json_column("grants", tuple[RecipientGrant, ...], nullable=True),
    timestamp_column("expires_at", nullable=True),
    Column("requests_per_second", Integer),
    integer_column("revision", default=1),
    timestamp_column("created_at", default=True),
    # The key, or the subject of a token, that made it.
    id_column("created_by", nullable=True),
    # The minute of the last request.
    timestamp_column("last_used_at", nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    UniqueConstraint("tenant_id", "share_id", "name", name="recipients_name_key"),
    ForeignKeyConstraint(["tenant_id", "share_id"], ["shares.tenant_id", "shares.id"], ondelete="CASCADE"),
)

share_tokens: Final = Table(
    "share_tokens",
    metadata,
    tenant_column(),
    id_column("recipient_id"),
    Column("digest", LargeBinary, nullable=False),
    timestamp_column("created_at", default=True),
    # When one that was replaced ends; null for the present one.
    timestamp_column("ends_at", nullable=True),
    PrimaryKeyConstraint("tenant_id", "recipient_id", "digest"),
    UniqueConstraint("digest"),
    CheckConstraint("octet_length(digest) = 32", name="digest"),
    ForeignKeyConstraint(
        ["tenant_id", "recipient_id"], ["recipients.tenant_id", "recipients.id"], ondelete="CASCADE"
    ),
)
