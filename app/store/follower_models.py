"""The tables of what follows a feed: consumers, and the webhooks, exports and views that have one each."""

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
    UniqueConstraint,
    text,
)

from app.services.export_model import ExportDefinition, Manifest
from app.services.model import Fault
from app.services.view_model import ViewDefinition
from app.services.webhook_model import Telling, WebhookDefinition
from app.store.columns import document, id_column, metadata, moment, number, of_dataset, tenant_column, word

# Positions in feeds. A reader's is its own to move; followers (all other kinds) are served by workers.
consumers: Final = Table(
    "consumers",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    word("name"),
    Column("kind", Text, nullable=False),
    number("position"),
    number("revision", default=1),
    number("max_lag_rows", nullable=True),
    number("max_lag_seconds", nullable=True),
    Column("member", Text),
    number("lease_epoch", default=0),
    moment("lease_until", nullable=True),
    # When a follower is due: null whenever it is behind the head, otherwise at that time, 'infinity' for never.
    moment("wake_at", nullable=True),
    moment("created_at", default=True),
    moment("moved_at", default=True),
    PrimaryKeyConstraint("tenant_id", "dataset_id", "name"),
    CheckConstraint("kind IN ('reader', 'webhook', 'partition_webhook', 'export', 'view')", name="kind"),
    CheckConstraint("position >= 0", name="position"),
    CheckConstraint("(member IS NULL) = (lease_until IS NULL)", name="lease"),
    of_dataset(),
    Index("consumers_followers", "tenant_id", "dataset_id", postgresql_where=text("kind <> 'reader'")),
)

webhooks: Final = Table(
    "webhooks",
    metadata,
    tenant_column(),
    id_column("id"),
    id_column("dataset_id"),
    document("definition", WebhookDefinition),
    Column("secret", Text, nullable=False),
    # The secret before it, which signs along until then.
    Column("old_secret", Text),
    moment("old_secret_until", nullable=True),
    Column("state", Text, nullable=False),
    # Why it is paused; null if its user did that.
    document("error", Fault, nullable=True),
    # Deliveries given up in a row.
    number("failures", default=0),
    number("revision", default=1),
    moment("created_at", default=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    CheckConstraint("state IN ('active', 'paused')", name="state"),
    CheckConstraint("(old_secret IS NULL) = (old_secret_until IS NULL)", name="old_secret"),
    of_dataset(),
    Index("webhooks_dataset", "tenant_id", "dataset_id"),
)

webhook_deliveries: Final = Table(
    "webhook_deliveries",
    metadata,
    tenant_column(),
    id_column("id"),
    id_column("webhook_id"),
    number("since"),
    number("next_since"),
    document("telling", Telling),
    Column("state", Text, nullable=False),
    number("attempts", default=0),
    moment("next_attempt_at", nullable=True),
    # Of the last attempt: the HTTP status of the answer, or why there was none.
    number("status", nullable=True),
    Column("error", Text),
    moment("created_at", default=True),
    moment("ended_at", nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    CheckConstraint("since < next_since", name="range"),
    CheckConstraint("state IN ('pending', 'delivered', 'dead')", name="state"),
    ForeignKeyConstraint(
        ["tenant_id", "webhook_id"], ["webhooks.tenant_id", "webhooks.id"], ondelete="CASCADE"
    ),
    Index("webhook_deliveries_webhook", "tenant_id", "webhook_id", "id"),
    Index(
        "webhook_deliveries_pending",
        "tenant_id",
        "webhook_id",
        "next_attempt_at",
        postgresql_where=text("state = 'pending'"),
    ),
)

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

# A view is a dataset that nobody writes to but its own refreshes.
views: Final = Table(
    "views",
    metadata,
    tenant_column(),
    id_column("dataset_id"),
    document("definition", ViewDefinition),
    # Whether its user has stopped it from following its inputs by itself, and how often that was changed.
    Column("paused", Boolean, nullable=False, server_default=text("false")),
    number("revision", default=1),
    # Why the last refresh failed, how many in a row did, and when the last of them began; null and 0 once one succeeds.
    document("error", Fault, nullable=True),
    number("failures", default=0),
    moment("attempted_at", nullable=True),
    moment("refreshed_at", nullable=True),
    moment("created_at", default=True),
    PrimaryKeyConstraint("tenant_id", "dataset_id"),
    of_dataset(),
)

# The datasets that a view reads, by the name that its SQL knows each by.
view_inputs: Final = Table(
    "view_inputs",
    metadata,
    tenant_column(),
    id_column("view_id"),
    id_column("dataset_id"),
    word("relation"),
    PrimaryKeyConstraint("tenant_id", "view_id", "dataset_id"),
    ForeignKeyConstraint(
        ["tenant_id", "view_id"], ["views.tenant_id", "views.dataset_id"], ondelete="CASCADE"
    ),
    of_dataset(),
    Index("view_inputs_dataset", "tenant_id", "dataset_id"),
)
