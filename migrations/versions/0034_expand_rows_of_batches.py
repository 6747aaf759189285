"""The rows of the batches of streams, as a digest.

Revision ID: 0034
Revises: 0033
"""

from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE writer_batches ADD COLUMN rows_digest text",
    "GRANT UPDATE (rows_digest) ON writer_batches TO headwater_app",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
