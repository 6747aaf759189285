"""Watermarks of heads and commits.

Revision ID: 0022
Revises: 0021
"""

from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE heads ADD COLUMN watermark timestamptz",
    "GRANT UPDATE (watermark) ON heads TO headwater_app",
    "ALTER TABLE commits ADD COLUMN watermark timestamptz",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
