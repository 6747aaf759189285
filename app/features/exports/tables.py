"""The tables of what follows a feed: consumers, and the webhooks, exports and views that have one each."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from app.features.exports.values import ExportDefinition, Manifest
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

exports: Final = Table(
    "exports",
    metadata,
    tenant_column(),
    id_column("id"),
    id_column("dataset_id"),
    json_column("definition", ExportDefinition),
    Column("state", Text, nullable=False),
    # The final position of an ended export; the consumer has the position of the others.
    integer_column("stopped_at", nullable=True),
    integer_column("revision", default=1),
    timestamp_column("created_at", default=True),
    # The times of a cron schedule up to this one are done.
    timestamp_column("planned_at", nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    CheckConstraint("state IN ('active', 'paused', 'ended')", name="state"),
    CheckConstraint("(state = 'ended') = (stopped_at IS NOT NULL)", name="stopped"),
    of_dataset(),
    Index("exports_dataset", "tenant_id", "dataset_id", "id"),
)

export_runs: Final = Table(
    "export_runs",
    metadata,
    tenant_column(),
    id_column("export_id"),
    integer_column("number"),
    integer_column("since"),
    integer_column("until"),
    id_column("job_id"),
    json_column("manifest", Manifest, nullable=True),
    timestamp_column("created_at", default=True),
    # Of a snapshot. Versions without changes between them have the same range.
    integer_column("version", nullable=True),
    PrimaryKeyConstraint("tenant_id", "export_id", "number"),
    ForeignKeyConstraint(["tenant_id", "export_id"], ["exports.tenant_id", "exports.id"], ondelete="CASCADE"),
    ForeignKeyConstraint(["tenant_id", "job_id"], ["jobs.tenant_id", "jobs.id"]),
    Index("export_runs_job", "tenant_id", "job_id"),
    Index(
        "export_runs_ranges",
        "tenant_id",
        "export_id",
        "since",
        "until",
        unique=True,
        postgresql_where=text("version IS NULL"),
    ),
    Index(
        "export_runs_versions",
        "tenant_id",
        "export_id",
        "version",
        unique=True,
        postgresql_where=text("version IS NOT NULL"),
    ),
)

export_files: Final = Table(
    "export_files",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    text_column("path"),
    id_column("export_id"),
    integer_column("number"),
    Column("name", Text, nullable=False),
    integer_column("size_bytes"),
    integer_column("row_count"),
    Column("checksum", Text, nullable=False),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "path"),
    UniqueConstraint("tenant_id", "export_id", "number", "name"),
    ForeignKeyConstraint(
        ["tenant_id", "export_id", "number"],
        ["export_runs.tenant_id", "export_runs.export_id", "export_runs.number"],
        ondelete="CASCADE",
    ),
)
