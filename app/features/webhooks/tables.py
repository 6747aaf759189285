"""The tables of webhooks: their definitions and messages, and the alerts that some of them send."""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    ARRAY,
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Index,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

from app.core.changes.values import DeliveryFormat
from app.features.webhooks.values import AlertEvent, HeldAlert, WebhookAttempt, WebhookDefinition
from app.infra.db.columns import (
    id_column,
    integer_column,
    json_column,
    metadata,
    of_dataset,
    of_tenant,
    tenant_column,
    timestamp_column,
)
from app.infra.db.stored_json import Document
from app.kernel.format.errors import Fault

webhooks: Final = Table(
    "webhooks",
    metadata,
    tenant_column(),
    id_column("id"),
    # Null for the alerts of all datasets.
    id_column("dataset_id", nullable=True),
    json_column("definition", WebhookDefinition),
    Column("secret", Text, nullable=False),
    # The secret before it, which signs along until then.
    Column("old_secret", Text),
    timestamp_column("old_secret_until", nullable=True),
    # For the schema registry of a topic.
    Column("registry_password", Text),
    Column("state", Text, nullable=False),
    # Why it is paused; null if its user did that.
    json_column("error", Fault, nullable=True),
    # Null while it is active, and if that was not recorded.
    timestamp_column("paused_at", nullable=True),
    # Deliveries given up in a row.
    integer_column("failures", default=0),
    integer_column("revision", default=1),
    # Up to ATTEMPTS_MAX, the latest first; null before the first.
    json_column("recent_attempts", tuple[WebhookAttempt, ...], nullable=True),
    timestamp_column("created_at", default=True),
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
    integer_column("since"),
    integer_column("next_since"),
    # Where rows of a version begin and end; null for changes, and after the last row.
    Column("since_snapshot", Text),
    Column("next_snapshot", Text),
    json_column("telling", DeliveryFormat),
    Column("state", Text, nullable=False),
    integer_column("attempts", default=0),
    timestamp_column("next_attempt_at", nullable=True),
    # Of the last attempt: the HTTP status of the answer, or why there was none.
    integer_column("status", nullable=True),
    Column("error", Text),
    timestamp_column("created_at", default=True),
    timestamp_column("ended_at", nullable=True),
    PrimaryKeyConstraint("tenant_id", "id"),
    CheckConstraint("since < next_since OR since_snapshot IS NOT NULL", name="range"),
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

# The number of the next event of a tenant, and the states of its alerts. Its lock orders the events.
alert_feeds: Final = Table(
    "alert_feeds",
    metadata,
    tenant_column(),
    integer_column("next_event", default=0),
    Column("states", Document(dict[str, HeldAlert]), nullable=False, server_default=text("'{}'")),
    PrimaryKeyConstraint("tenant_id"),
    of_tenant(),
)

alert_events: Final = Table(
    "alert_events",
    metadata,
    tenant_column(),
    integer_column("number"),
    # Null for what is of the whole tenant.
    id_column("dataset_id", nullable=True),
    json_column("event", AlertEvent),
    timestamp_column("at", default=True),
    PrimaryKeyConstraint("tenant_id", "number"),
    of_dataset(),
)

# The positions of webhooks that send alerts: they count the events of their tenant.
alert_followers: Final = Table(
    "alert_followers",
    metadata,
    tenant_column(),
    id_column("webhook_id"),
    integer_column("position"),
    # All events from this number on are sent. Of those before, the alerts that were active when it began.
    integer_column("first_event", default=0),
    Column("active_events", ARRAY(BigInteger), nullable=False, server_default=text("'{}'")),
    Column("member", Text),
    integer_column("lease_epoch", default=0),
    timestamp_column("lease_until", nullable=True),
    # When it is due: 'infinity' and null for never, until there is an event.
    timestamp_column("wake_at", nullable=True),
    timestamp_column("moved_at", default=True),
    PrimaryKeyConstraint("tenant_id", "webhook_id"),
    CheckConstraint("(member IS NULL) = (lease_until IS NULL)", name="lease"),
    ForeignKeyConstraint(
        ["tenant_id", "webhook_id"], ["webhooks.tenant_id", "webhooks.id"], ondelete="CASCADE"
    ),
)
