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

from app.db.columns import id_column, metadata, moment, number, of_dataset, tenant_column, word

# Positions in feeds. A reader's is its own to move; followers (all other kinds) are served by workers.
consumers: Final = Table(
    "consumers",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    word("name"),
    Column("kind", Text, nullable=False),
    number("position"),
    number("revision", default=1),
    number("max_lag_rows", nullable=True),
    number("max_lag_seconds", nullable=True),
    Column("member", Text),
    number("lease_epoch", default=0),
    moment("lease_until", nullable=True),
    # When a follower is due: null whenever it is behind the head, otherwise at that time, 'infinity' for never.
    moment("wake_at", nullable=True),
    moment("created_at", default=True),
    moment("moved_at", default=True),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "name"),
    CheckConstraint("kind IN ('reader', 'webhook', 'partition_webhook', 'export', 'view')", name="kind"),
    CheckConstraint("position >= 0", name="position"),
    CheckConstraint("(member IS NULL) = (lease_until IS NULL)", name="lease"),
    of_dataset(),
    Index("consumers_followers", "tenant_id", "dataset_id", postgresql_where=text("kind <> 'reader'")),
)
