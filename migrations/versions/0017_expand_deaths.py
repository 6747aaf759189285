"""How often the process of a job was killed while the job ran.

Revision ID: 0017
Revises: 0016
"""

from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # The default is constant, so the rows are not rewritten.
    op.execute("ALTER TABLE jobs ADD COLUMN deaths bigint NOT NULL DEFAULT 0")
