"""Jobs that wait for the storage or the database, loops of workers that stand still, and the claims of dead workers.

Revision ID: 0010
Revises: 0009
"""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE jobs ADD COLUMN outages bigint DEFAULT 0 NOT NULL, ADD COLUMN not_before timestamptz",
    "GRANT SELECT (not_before, owner) ON jobs TO headwater_relay",
    # Each worker writes its row with its next poll.
    "ALTER TABLE workers ADD COLUMN stalled json DEFAULT '{}' NOT NULL",
    "GRANT UPDATE (stalled) ON workers TO headwater_relay",
    # The relay finds the claims of a dead worker; they are ended as their tenants.
    "GRANT SELECT (member) ON consumers TO headwater_relay",
    "GRANT SELECT (owner) ON table_keeping TO headwater_relay",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
