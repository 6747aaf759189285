"""The executors of workers.

Revision ID: 0020
Revises: 0019
"""

from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE workers ADD COLUMN IF NOT EXISTS executors integer")
    op.execute("GRANT UPDATE (executors) ON workers TO headwater_relay")
