"""The table of the states of alerts."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Boolean, CheckConstraint, Column, PrimaryKeyConstraint, Table, Text, text

from app.infra.db.columns import metadata, text_column, timestamp_column

# Alerts are of the installation, so this table has no tenant; only the relay's role sees it.
alerts: Final = Table(
    "alerts",
    metadata,
    text_column("name"),
    Column("phase", Text, nullable=False),
    timestamp_column("since"),
    timestamp_column("fired_at", nullable=True),
    timestamp_column("resolved_at", nullable=True),
    Column("detail", Text, nullable=False, server_default=text("''")),
    # Whether the event of this phase was delivered.
    Column("sent", Boolean, nullable=False, server_default=text("false")),
    PrimaryKeyConstraint("name"),
    CheckConstraint("phase IN ('pending', 'firing', 'resolved')", name="phase"),
)
