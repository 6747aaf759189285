"""The rows of small writes are kept with their jobs.

Revision ID: 0018
Revises: 0017
"""

from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE jobs ADD COLUMN staged_rows bytea",
    # Out of the row and uncompressed: updates of the row do not copy it, and compression would take more than it saves.
    "ALTER TABLE jobs ALTER COLUMN staged_rows SET STORAGE EXTERNAL",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
