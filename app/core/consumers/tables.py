"""The tables of what follows a feed: consumers, and the webhooks, exports and views that have one each."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    CheckConstraint,
    Column,
    Index,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

from app.infra.db.columns import (
    id_column,
    integer_column,
    metadata,
    of_dataset,
    tenant_column,
    text_column,
    timestamp_column,
)

# Positions in feeds. Readers move their own; workers move those of followers (all other kinds).
consumers: Final = Table(
    "consumers",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    text_column("name"),
    Column("kind", Text, nullable=False),
    integer_column("position"),
    # Where it is within the rows of a version, after which the changes start at `position`; null behind the rows.
    Column("snapshot", Text),
    integer_column("revision", default=1),
    integer_column("max_lag_rows", nullable=True),
    integer_column("max_lag_seconds", nullable=True),
    Column("member", Text),
    integer_column("lease_epoch", default=0),
    timestamp_column("lease_until", nullable=True),
    # When a follower is due: null whenever it is behind the head, otherwise at that time, 'infinity' for never.
    timestamp_column("wake_at", nullable=True),
    timestamp_column("created_at", default=True),
    timestamp_column("moved_at", default=True),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "name"),
    CheckConstraint("kind IN ('reader', 'webhook', 'partition_webhook', 'export', 'view')", name="kind"),
    CheckConstraint("position >= 0", name="position"),
    CheckConstraint("(member IS NULL) = (lease_until IS NULL)", name="lease"),
    of_dataset(),
    Index("consumers_followers", "tenant_id", "dataset_id", postgresql_where=text("kind <> 'reader'")),
)
