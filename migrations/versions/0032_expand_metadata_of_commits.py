"""The metadata that writers choose, with the entries of timelines and with commits.

Revision ID: 0032
Revises: 0031
"""

from alembic import op

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE instants ADD COLUMN metadata json")
    op.execute("ALTER TABLE commits ADD COLUMN metadata json, ADD COLUMN metadata_bytes integer")
