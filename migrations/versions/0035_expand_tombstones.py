"""Files of tombstones, and the commit times of files.

Revision ID: 0035
Revises: 0034
"""

from alembic import op

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None

_TABLES = ("commits", "files")

STATEMENTS = (
    """
    ALTER TABLE files
        ADD COLUMN written_at timestamptz,
        DROP CONSTRAINT files_kind_check,
        ADD CONSTRAINT files_kind_check CHECK (kind IN ('base', 'log', 'postponed', 'tombstone'))
    """,
    # Of writes that are still to be merged. Row level security would hide the rows from their owner, too.
    *(f"ALTER TABLE {table} NO FORCE ROW LEVEL SECURITY" for table in _TABLES),
    """
    UPDATE files SET written_at = commits.committed_at
    FROM commits
    WHERE files.kind IN ('log', 'postponed') AND commits.tenant_id = files.tenant_id
        AND commits.dataset_id = files.dataset_id
        AND commits.version = coalesce(files.written_version, files.added_version)
    """,
    *(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY" for table in _TABLES),
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
