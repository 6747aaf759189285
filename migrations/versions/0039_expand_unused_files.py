"""When a clean found that no retained version uses a file, so that its row and bytes can stay for some time.

Revision ID: 0039
Revises: 0038
"""

from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None

INDEX = "files_unused ON files (tenant_id, unused_at) WHERE unused_at IS NOT NULL"


def upgrade() -> None:
    op.execute("ALTER TABLE files ADD COLUMN unused_at timestamptz")
    op.execute("GRANT UPDATE (unused_at) ON files TO headwater_app")
    # Commits add files meanwhile. A build that was interrupted leaves an invalid index, which is made again.
    with op.get_context().autocommit_block():
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS files_unused")
        op.execute(f"CREATE INDEX CONCURRENTLY {INDEX}")
