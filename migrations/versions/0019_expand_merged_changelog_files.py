"""Changelog files with the changes of several commits, and the files that they have replaced.

Revision ID: 0019
Revises: 0018
"""

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

TENANT = "(NULLIF(current_setting('headwater.tenant_id', true), ''))::uuid"
INDEXES = (
    "changelog_files_path ON changelog_files (tenant_id, dataset_id, path)",
    "changelog_files_small ON changelog_files (tenant_id, dataset_id, first_offset) "
    "WHERE first_row = 0 AND size_bytes < 8388608",
)
STATEMENTS = (
    # A merged file has a row for each of its segments. The index becomes the key as it is.
    "ALTER TABLE changelog_files DROP CONSTRAINT changelog_files_pkey, "
    "ADD CONSTRAINT changelog_files_pkey PRIMARY KEY USING INDEX changelog_files_first_offset",
    "GRANT UPDATE (path, size_bytes, checksum, first_row, file_rows, file_segments) ON changelog_files TO headwater_app",
    f"""
    CREATE TABLE replaced_changelog_files (
        tenant_id uuid NOT NULL DEFAULT {TENANT},
        dataset_id uuid NOT NULL,
        path text COLLATE "C" NOT NULL,
        size_bytes bigint NOT NULL,
        replaced_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        CONSTRAINT replaced_changelog_files_pkey PRIMARY KEY (tenant_id, dataset_id, path),
        CONSTRAINT replaced_changelog_files_datasets_fkey FOREIGN KEY (tenant_id, dataset_id)
            REFERENCES datasets (tenant_id, id)
    )
    """,
    "ALTER TABLE replaced_changelog_files ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE replaced_changelog_files FORCE ROW LEVEL SECURITY",
    "CREATE POLICY tenant ON replaced_changelog_files TO headwater_app "
    f"USING (tenant_id = {TENANT}) WITH CHECK (tenant_id = {TENANT})",
    "GRANT SELECT, INSERT, DELETE ON replaced_changelog_files TO headwater_app",
)


def upgrade() -> None:
    # A default that is a constant rewrites no row.
    op.execute(
        "ALTER TABLE changelog_files ADD COLUMN IF NOT EXISTS first_row bigint NOT NULL DEFAULT 0, "
        "ADD COLUMN IF NOT EXISTS file_rows bigint, ADD COLUMN IF NOT EXISTS file_segments bigint"
    )
    # Commits are made meanwhile. A build that was interrupted leaves an invalid index, which is made again.
    with op.get_context().autocommit_block():
        for index in INDEXES:
            name = index.split()[0]
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            op.execute(f"CREATE INDEX CONCURRENTLY {index}")
    for statement in STATEMENTS:
        op.execute(statement)
