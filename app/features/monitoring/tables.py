"""The tables of what is sampled, and of which process gathers."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Column, Double, ForeignKeyConstraint, PrimaryKeyConstraint, Table

from app.infra.db.columns import (
    id_column,
    integer_column,
    metadata,
    tenant_column,
    text_column,
    timestamp_column,
)

# The latest sample of a dataset.
dataset_samples: Final = Table(
    "dataset_samples",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    integer_column("version"),
    # Of base files, without those that deletion vectors delete: of these, `deleted_rows`.
    integer_column("rows"),
    integer_column("deleted_rows"),
    integer_column("files"),
    integer_column("logs"),
    integer_column("size_bytes"),
    # The median of the times between its latest writes; null with too few of them.
    Column("write_gap_seconds", Double),
    # What the sample took.
    integer_column("milliseconds", default=0),
    timestamp_column("sampled_at", default=True),
    PrimaryKeyConstraint("tenant_id", "dataset_id"),
    # A release that does not know the samples deletes datasets, too.
    ForeignKeyConstraint(
        ["tenant_id", "dataset_id"], ["datasets.tenant_id", "datasets.id"], ondelete="CASCADE"
    ),
)

# Which process does a task for all. They serve every tenant, so this table has none; only the relay's role sees it.
leaders: Final = Table(
    "leaders",
    metadata,
    text_column("task"),
    text_column("owner"),
    timestamp_column("lease_until"),
    PrimaryKeyConstraint("task"),
)
