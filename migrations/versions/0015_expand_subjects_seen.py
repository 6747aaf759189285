"""When subjects of tokens were last seen.

Revision ID: 0015
Revises: 0014
"""

from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

STATEMENTS = (
    # `now()` is one value for all rows, so that the table is not rewritten.
    "ALTER TABLE token_subjects ADD COLUMN last_seen_at timestamptz NOT NULL DEFAULT now()",
    "ALTER TABLE token_subjects ALTER COLUMN last_seen_at SET DEFAULT clock_timestamp()",
    "CREATE INDEX token_subjects_seen ON token_subjects (tenant_id, last_seen_at, id)",
    # Rows may be deleted since 0013.
    "GRANT UPDATE (last_seen_at) ON token_subjects TO headwater_app",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
