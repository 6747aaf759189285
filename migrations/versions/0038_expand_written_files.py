"""An index of the live files by the commits that wrote them.

Revision ID: 0038
Revises: 0037
"""

from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None

INDEX = (
    "files_written ON files (tenant_id, dataset_id, "
    "(CASE WHEN written_version IS NULL THEN added_version ELSE written_version END)) "
    "WHERE removed_version IS NULL"
)


def upgrade() -> None:
    # Commits are made meanwhile. A build that was interrupted leaves an invalid index, which is made again.
    with op.get_context().autocommit_block():
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS files_written")
        op.execute(f"CREATE INDEX CONCURRENTLY {INDEX}")
