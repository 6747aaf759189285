"""The tables of sources, and of what they have read."""

from __future__ import annotations

from typing import Any, Final

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

from app.features.sources.ports import SourceLag
from app.features.sources.values import SourceDefinition, StoredRound
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

sources: Final = Table(
    "sources",
    metadata,
    tenant_column(),
    id_column("id"),
    text_column("name"),
    # Null until the first round has registered the dataset, under the name.
    id_column("dataset_id", nullable=True),
    text_column("dataset_name"),
    json_column("definition", SourceDefinition),
    # The members of the config that are never shown.
    json_column("secrets", dict[str, Any]),
    Column("state", Text, nullable=False),
    integer_column("revision", default=1),
    json_column("position", dict[str, Any]),
    # Committed rounds: the commit of a round counts on from the number that it was read at.
    integer_column("rounds", default=0),
    # The number of rounds that the kind has been called for after their commit.
    integer_column("reported", default=0),
    integer_column("failures", default=0),
    json_column("error", Fault, nullable=True),
    json_column("lag", SourceLag, nullable=True),
    json_column("last_round", StoredRound, nullable=True),
    # The job of the last round that was started.
    id_column("job_id", nullable=True),
    # When a worker plans the next round; it claims the source by moving the time on, and the epoch.
    timestamp_column("due_at", default=True),
    integer_column("epoch", default=0),
    # The worker that has claimed it.
    text_column("planner", nullable=True),
    timestamp_column("created_at", default=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    UniqueConstraint("tenant_id", "name"),
    CheckConstraint("state IN ('active', 'paused', 'finished', 'failed')", name="state"),
    of_dataset(),
    Index("sources_dataset", "tenant_id", "dataset_id"),
    Index("sources_due", "due_at", postgresql_where=text("state = 'active'")),
)

source_items: Final = Table(
    "source_items",
    metadata,
    tenant_column(),
    id_column("source_id"),
    text_column("name"),
    text_column("fingerprint"),
    Column("checksum", Text, nullable=False),
    integer_column("size_bytes"),
    # The round that has read it.
    integer_column("round"),
    # Why it was left out.
    json_column("error", Fault, nullable=True),
    timestamp_column("read_at", default=True),
    PrimaryKeyConstraint("tenant_id", "source_id", "name", "fingerprint"),
    ForeignKeyConstraint(["tenant_id", "source_id"], ["sources.tenant_id", "sources.id"], ondelete="CASCADE"),
)
