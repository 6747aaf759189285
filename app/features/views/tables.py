"""The tables of views and of their inputs."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    Boolean,
    Column,
    ForeignKeyConstraint,
    Index,
    PrimaryKeyConstraint,
    Table,
    text,
)

from app.features.views.values import ViewDefinition
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
from app.kernel.format.errors import Fault

# A view is a dataset that only its own refreshes write to.
views: Final = Table(
    "views",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    json_column("definition", ViewDefinition),
    # Whether it is paused, and the number of changes of that.
    Column("paused", Boolean, nullable=False, server_default=text("false")),
    integer_column("revision", default=1),
    # The fault of the last refresh, the number of failures in a row with its code, and when the last began; null and 0
    # after a success.
    json_column("error", Fault, nullable=True),
    integer_column("failures", default=0),
    timestamp_column("attempted_at", nullable=True),
    timestamp_column("refreshed_at", nullable=True),
    timestamp_column("created_at", default=True),
    PrimaryKeyConstraint("tenant_id", "dataset_id"),
    of_dataset(),
)

# The datasets that a view reads, by their names in its SQL.
view_inputs: Final = Table(
    "view_inputs",
    metadata,
    tenant_column(),
    id_column("view_id"),
    id_column("dataset_id"),
    text_column("relation"),
    PrimaryKeyConstraint("tenant_id", "view_id", "dataset_id"),
    ForeignKeyConstraint(
        ["tenant_id", "view_id"], ["views.tenant_id", "views.dataset_id"], ondelete="CASCADE"
    ),
    of_dataset(),
    Index("view_inputs_dataset", "tenant_id", "dataset_id"),
)
