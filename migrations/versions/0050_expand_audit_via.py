"""The audit has where a request came from: from a client, or from a page or a form of the console.

Revision ID: 0050
Revises: 0049
"""

from alembic import op

revision = "0050"
down_revision = "0049"
branch_labels = None
depends_on = None

STATEMENTS = ("ALTER TABLE audit ADD COLUMN via text NOT NULL DEFAULT 'api'",)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
