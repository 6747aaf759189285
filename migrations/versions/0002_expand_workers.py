"""Workers report that they are alive, and the reaper deletes uploads.

Revision ID: 0002
Revises: 0001
"""

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

STATEMENTS = (
    # Workers serve every tenant, so this table has none; only the relay's role sees it.
    """
    CREATE TABLE workers (
        id text COLLATE "C" NOT NULL,
        started_at timestamptz DEFAULT clock_timestamp() NOT NULL,
        polled_at timestamptz DEFAULT clock_timestamp() NOT NULL,
        CONSTRAINT workers_pkey PRIMARY KEY (id)
    )
    """,
    "ALTER TABLE workers ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE workers FORCE ROW LEVEL SECURITY",
    "CREATE POLICY relay ON workers TO headwater_relay USING (true) WITH CHECK (true)",
    "GRANT SELECT, INSERT, DELETE, UPDATE (polled_at) ON workers TO headwater_relay",
    "GRANT DELETE ON uploads TO headwater_app",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
