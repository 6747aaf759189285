"""The tables of what is kept of a dataset's past, who reads it, and what is done for the dataset by itself."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    Column,
    Index,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

from app.db.columns import (
    id_column,
    integer_column,
    json_column,
    metadata,
    of_dataset,
    tenant_column,
    timestamp_column,
)
from app.maintenance.values import ReconcilerRecord

# When the table services of a dataset want to be asked again, though nothing is committed, and by whom they are now.
table_maintenance: Final = Table(
    "table_keeping",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    timestamp_column("wake_at", nullable=True),
    Column("owner", Text),
    integer_column("epoch", default=0),
    timestamp_column("lease_until", nullable=True),
    # What each of them remembers, by its name.
    json_column("memory", dict[str, ReconcilerRecord]),
    PrimaryKeyConstraint("tenant_id", "dataset_id"),
    of_dataset(),
    Index("table_keeping_wake", "wake_at", postgresql_where=text("wake_at IS NOT NULL")),
)
