"""The table of the secrets from which keys for tables are derived. They are of the deployment, of no tenant."""

from __future__ import annotations

from typing import Final

from sqlalchemy import CheckConstraint, Column, Integer, LargeBinary, PrimaryKeyConstraint, Table

from app.infra.db.columns import metadata, timestamp_column

# Only the relay's role sees it. The greatest generation signs, and the one before still verifies.
table_key_secrets: Final = Table(
    "table_key_secrets",
    metadata,
    Column("generation", Integer, nullable=False, autoincrement=False),
    Column("secret", LargeBinary, nullable=False),
    timestamp_column("created_at", default=True),
    PrimaryKeyConstraint("generation"),
    CheckConstraint("generation > 0", name="generation"),
)
