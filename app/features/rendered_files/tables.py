"""The table of rendered files."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    CheckConstraint,
    Column,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    text,
)

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
from app.kernel.format.file_group import ColumnStatistics

# A row outlives its object, so that what lists the file needs no rendering.
rendered_files: Final = Table(
    "rendered_files",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    Column("key", LargeBinary, nullable=False),
    text_column("view"),
    text_column("content"),
    integer_column("size_bytes"),
    integer_column("row_count"),
    json_column("statistics", dict[str, ColumnStatistics]),
    # The object; null once it is deleted, and for a file without rows.
    text_column("path", nullable=True),
    # The entry of the data file that it was rendered from; null for changes of the version.
    text_column("data_path", nullable=True),
    integer_column("origin_version"),
    Column("schema_id", Integer, nullable=True),
    timestamp_column("rendered_at", default=True),
    timestamp_column("used_at", default=True),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "key"),
    CheckConstraint("row_count > 0 OR path IS NULL", name="rows"),
    of_dataset(),
    Index("rendered_files_content", "tenant_id", "dataset_id", "view", "content"),
    Index(
        "rendered_files_path", "tenant_id", "dataset_id", "path", postgresql_where=text("path IS NOT NULL")
    ),
    Index("rendered_files_used", "tenant_id", "used_at"),
)
