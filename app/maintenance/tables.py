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

from app.db.columns import document, id_column, metadata, moment, number, of_dataset, tenant_column
from app.maintenance.values import Remembered

# When the table services of a dataset want to be asked again, though nothing is committed, and by whom they are now.
table_keeping: Final = Table(
    "table_keeping",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    moment("wake_at", nullable=True),
    Column("owner", Text),
    number("epoch", default=0),
    moment("lease_until", nullable=True),
    # What each of them remembers, by its name.
    document("memory", dict[str, Remembered]),
    PrimaryKeyConstraint("tenant_id", "dataset_id"),
    of_dataset(),
    Index("table_keeping_wake", "wake_at", postgresql_where=text("wake_at IS NOT NULL")),
)
