"""Processes report the memory that they occupy, and the monitor reads how many bytes datasets have.

Revision ID: 0047
Revises: 0046
"""

from alembic import op

revision = "0047"
down_revision = "0046"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE workers ADD COLUMN resident_bytes bigint",
    "GRANT UPDATE (resident_bytes) ON workers TO headwater_relay",
    "GRANT SELECT (size_bytes) ON dataset_samples TO headwater_monitor",
    "CREATE POLICY monitor ON usage_days FOR SELECT TO headwater_monitor USING (true)",
    "GRANT SELECT (tenant_id, day, dataset_id, stored_bytes) ON usage_days TO headwater_monitor",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
