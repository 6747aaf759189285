"""The states of alerts, and what finds jobs that have failed lately.

Revision ID: 0045
Revises: 0044
"""

from alembic import op

revision = "0045"
down_revision = "0044"
branch_labels = None
depends_on = None

STATEMENTS = (
    """
    CREATE TABLE alerts (
        name text COLLATE "C" NOT NULL,
        phase text NOT NULL,
        since timestamptz NOT NULL,
        fired_at timestamptz,
        resolved_at timestamptz,
        detail text NOT NULL DEFAULT '',
        sent boolean NOT NULL DEFAULT false,
        CONSTRAINT alerts_pkey PRIMARY KEY (name),
        CONSTRAINT alerts_phase_check CHECK (phase IN ('pending', 'firing', 'resolved'))
    )
    """,
    "ALTER TABLE alerts ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE alerts FORCE ROW LEVEL SECURITY",
    "CREATE POLICY relay ON alerts TO headwater_relay USING (true) WITH CHECK (true)",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON alerts TO headwater_relay",
    "CREATE INDEX jobs_failed ON jobs (finished_at) WHERE state = 'failed'",
    "GRANT SELECT (finished_at) ON jobs TO headwater_monitor",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
