"""The tables of partitions that are done: marks and events."""

from __future__ import annotations

from typing import Final

from sqlalchemy import CheckConstraint, Column, Index, PrimaryKeyConstraint, Table, Text, text

from app.infra.db.columns import (
    id_column,
    integer_column,
    metadata,
    of_dataset,
    tenant_column,
    text_column,
    timestamp_column,
)

# The version up to which partitions are marked, and the number of the next event. Its lock orders the events.
partition_feeds: Final = Table(
    "partition_feeds",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    integer_column("version", default=0),
    integer_column("next_event", default=0),
    PrimaryKeyConstraint("tenant_id", "dataset_id"),
    of_dataset(),
)

partition_marks: Final = Table(
    "partition_marks",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    text_column("path"),
    integer_column("changed_version"),
    timestamp_column("changed_at"),
    integer_column("done_version", nullable=True),
    timestamp_column("done_at", nullable=True),
    # The version in the marker file, if there is one.
    integer_column("marker_version", nullable=True),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "path"),
    CheckConstraint("(done_version IS NULL) = (done_at IS NULL)", name="done"),
    CheckConstraint("done_version >= changed_version", name="order"),
    of_dataset(),
    Index(
        "partition_marks_open",
        "tenant_id",
        "dataset_id",
        "changed_at",
        postgresql_where=text("done_at IS NULL"),
    ),
)

partition_events: Final = Table(
    "partition_events",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    integer_column("number"),
    Column("kind", Text, nullable=False),
    text_column("partition"),
    integer_column("version"),
    Column("reason", Text),
    timestamp_column("at", default=True),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "number"),
    CheckConstraint("kind IN ('done', 'reopened')", name="kind"),
    CheckConstraint("(reason IS NOT NULL) = (kind = 'done')", name="reason"),
    of_dataset(),
)
