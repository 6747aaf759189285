"""The tables of maintenance: claims of datasets with the state of reconcilers, and results of table services."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import (
    Column,
    Index,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

from app.features.maintenance.values import ReconcilerRecord
from app.infra.db.columns import (
    id_column,
    integer_column,
    json_column,
    metadata,
    of_dataset,
    tenant_column,
    text_column,
    timestamp_column,
)

# When the policies of a dataset are due without a commit, and which worker runs them now.
table_maintenance: Final = Table(
    "table_keeping",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    timestamp_column("wake_at", nullable=True),
    Column("owner", Text),
    integer_column("epoch", default=0),
    timestamp_column("lease_until", nullable=True),
    # The state of each reconciler, by its name.
    json_column("memory", dict[str, ReconcilerRecord]),
    PrimaryKeyConstraint("tenant_id", "dataset_id"),
    of_dataset(),
    Index("table_keeping_wake", "wake_at", postgresql_where=text("wake_at IS NOT NULL")),
)

# What a table service has found that makes no version: its last result, of the version that it has read.
service_results: Final = Table(
    "service_results",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    # The kind of its jobs.
    text_column("service"),
    integer_column("version"),
    # In a form of the service's own.
    json_column("result", dict[str, Any]),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "service"),
    of_dataset(),
)
