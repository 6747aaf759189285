"""Messages of webhooks with rows of a version, and followers that are within them.

Revision ID: 0024
Revises: 0023
"""

from alembic import op

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE webhook_deliveries ADD COLUMN since_snapshot text, ADD COLUMN next_snapshot text",
    "ALTER TABLE webhook_deliveries DROP CONSTRAINT webhook_deliveries_range_check",
    "ALTER TABLE webhook_deliveries ADD CONSTRAINT webhook_deliveries_range_check "
    "CHECK (since < next_since OR since_snapshot IS NOT NULL)",
    # Followers within the rows of a version are due, even if no change follows.
    "GRANT SELECT (snapshot) ON consumers TO headwater_relay",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
