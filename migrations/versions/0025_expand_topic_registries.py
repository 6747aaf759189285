"""The password for the schema registry of a webhook's topic.

Revision ID: 0025
Revises: 0024
"""

from alembic import op

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE webhooks ADD COLUMN registry_password text")
