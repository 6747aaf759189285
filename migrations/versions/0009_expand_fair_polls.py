"""Indexes by which a poll finds the datasets with waiting jobs of each tenant, however many jobs wait.

Revision ID: 0009
Revises: 0008
"""

from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

INDEXES = (
    "jobs_queued ON jobs (lane, tenant_id, dataset_id) WHERE state = 'queued'",
    "jobs_running ON jobs (lane, tenant_id, dataset_id) WHERE state = 'running'",
)


def upgrade() -> None:
    # The poll for followers takes those first that moved longest ago.
    op.execute("GRANT SELECT (moved_at) ON consumers TO headwater_relay")
    # Jobs are accepted and run meanwhile. A build that was interrupted leaves an invalid index, which is made again.
    with op.get_context().autocommit_block():
        for index in INDEXES:
            name = index.split()[0]
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            op.execute(f"CREATE INDEX CONCURRENTLY {index}")
