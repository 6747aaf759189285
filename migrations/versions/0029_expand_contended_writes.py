"""Groups of writes that have lost several races.

Revision ID: 0029
Revises: 0028
"""

from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None

STATEMENTS = ("ALTER TABLE jobs ADD COLUMN contended boolean NOT NULL DEFAULT false",)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
