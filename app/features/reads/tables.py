"""The table of the files of read jobs."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    Column,
    ForeignKeyConstraint,
    Index,
    PrimaryKeyConstraint,
    Table,
    Text,
)

from app.infra.db.columns import id_column, integer_column, metadata, tenant_column, text_column

# The result files of a read job, in order.
read_files: Final = Table(
    "read_files",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    text_column("path"),
    id_column("job_id"),
    integer_column("number"),
    text_column("name"),
    integer_column("row_count"),
    integer_column("size_bytes"),
    Column("checksum", Text, nullable=False),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "path"),
    ForeignKeyConstraint(["tenant_id", "job_id"], ["jobs.tenant_id", "jobs.id"]),
    Index("read_files_job", "tenant_id", "job_id", "number", unique=True),
)
