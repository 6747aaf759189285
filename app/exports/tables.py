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
)

from app.db.columns import document, id_column, metadata, moment, number, of_dataset, tenant_column, word
from app.exports.values import ExportDefinition, Manifest

exports: Final = Table(
    "exports",
    metadata,
    tenant_column(),
    id_column("id"),
    id_column("dataset_id"),
    document("definition", ExportDefinition),
    Column("state", Text, nullable=False),
    # Where it stopped that has ended; that of the others is the position of its consumer.
    number("stopped_at", nullable=True),
    number("revision", default=1),
    moment("created_at", default=True),
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
    number("number"),
    number("since"),
    number("until"),
    id_column("job_id"),
    document("manifest", Manifest, nullable=True),
    moment("created_at", default=True),
    PrimaryKeyConstraint("tenant_id", "export_id", "number"),
    UniqueConstraint("tenant_id", "export_id", "since", "until"),
    ForeignKeyConstraint(["tenant_id", "export_id"], ["exports.tenant_id", "exports.id"], ondelete="CASCADE"),
    ForeignKeyConstraint(["tenant_id", "job_id"], ["jobs.tenant_id", "jobs.id"]),
)

export_files: Final = Table(
    "export_files",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    word("path"),
    id_column("export_id"),
    number("number"),
    Column("name", Text, nullable=False),
    number("size_bytes"),
    number("row_count"),
    Column("checksum", Text, nullable=False),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "path"),
    UniqueConstraint("tenant_id", "export_id", "number", "name"),
    ForeignKeyConstraint(
        ["tenant_id", "export_id", "number"],
        ["export_runs.tenant_id", "export_runs.export_id", "export_runs.number"],
        ondelete="CASCADE",
    ),
)
