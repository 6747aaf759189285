"""How often a dataset is expected to have a commit, and what the monitor reads to find views that fail.

Revision ID: 0048
Revises: 0047
"""

from alembic import op

revision = "0048"
down_revision = "0047"
branch_labels = None
depends_on = None

STATEMENTS = (
    "ALTER TABLE datasets ADD COLUMN expected_every_seconds bigint",
    "GRANT UPDATE (expected_every_seconds) ON datasets TO headwater_app",
    "GRANT SELECT (expected_every_seconds) ON datasets TO headwater_monitor",
    "CREATE POLICY monitor ON views FOR SELECT TO headwater_monitor USING (true)",
    "GRANT SELECT (tenant_id, dataset_id, failures) ON views TO headwater_monitor",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
