"""The worker that has claimed a source.

Revision ID: 0028
Revises: 0027
"""

from alembic import op

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

STATEMENTS = (
    'ALTER TABLE sources ADD COLUMN planner text COLLATE "C"',
    "GRANT SELECT (planner) ON sources TO headwater_relay",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
