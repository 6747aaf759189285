"""Jobs that have used up a time slice.

Revision ID: 0033
Revises: 0032
"""

from alembic import op

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The default is constant, so the rows are not rewritten.
    op.execute("ALTER TABLE jobs ADD COLUMN slow boolean NOT NULL DEFAULT false")
