"""The tables of what is kept of a dataset's past, who reads it, and what is done for the dataset by itself."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

from app.services.keeper_model import Remembered
from app.store.columns import (
    document,
    id_column,
    metadata,
    moment,
    number,
    of_dataset,
    tenant_column,
    word,
)

# Savepoints and tags: versions whose files are kept as long as these are.
named_versions: Final = Table(
    "named_versions",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    word("name"),
    Column("kind", Text, nullable=False),
    number("version"),
    Column("automatic", Boolean, nullable=False, server_default=text("false")),
    moment("created_at", default=True),
    moment("expires_at", nullable=True),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "name"),
    CheckConstraint("kind IN ('savepoint', 'tag')", name="kind"),
    CheckConstraint("version >= 0", name="version"),
    of_dataset(),
    Index("named_versions_version", "tenant_id", "dataset_id", "version"),
)

# Who reads a version now: its files stay until the lease has run out, whatever becomes of the version.
read_leases: Final = Table(
    "read_leases",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    # What reads, by a name of its own: a job with its epoch. It may read several versions.
    word("reader"),
    number("version"),
    moment("lease_until"),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "reader", "version"),
    of_dataset(),
)

# Files of instants that have left the catalogue, in the order of their ids.
timeline_archives: Final = Table(
    "timeline_archives",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    word("path"),
    word("first_instant"),
    word("last_instant"),
    number("row_count"),
    number("size_bytes"),
    Column("checksum", Text, nullable=False),
    moment("created_at", default=True),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "path"),
    CheckConstraint("first_instant <= last_instant", name="order"),
    of_dataset(),
    Index("timeline_archives_last", "tenant_id", "dataset_id", "last_instant", unique=True),
)

# What a read job has written, in order.
read_files: Final = Table(
    "read_files",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    word("path"),
    id_column("job_id"),
    number("number"),
    word("name"),
    number("row_count"),
    number("size_bytes"),
    Column("checksum", Text, nullable=False),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "path"),
    ForeignKeyConstraint(["tenant_id", "job_id"], ["jobs.tenant_id", "jobs.id"]),
    Index("read_files_job", "tenant_id", "job_id", "number", unique=True),
)

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
