"""The watermark of a version moves with a refresh that changes no row.

Revision ID: 0026
Revises: 0025
"""

from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("GRANT UPDATE (watermark) ON commits TO headwater_app")
