"""When the attempt of a job began that runs or that ended it: usage counts no others.

Revision ID: 0016
Revises: 0015
"""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE jobs ADD COLUMN claimed_at timestamptz",
    # Few jobs run. Of those that began more than once, only the first start is known.
    "UPDATE jobs SET claimed_at = CASE WHEN attempts = 1 THEN started_at ELSE now() END WHERE state = 'running'",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
