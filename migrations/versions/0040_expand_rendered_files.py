"""Files of tables as readers of a part of a dataset see them.

Revision ID: 0040
Revises: 0039
"""

from alembic import op

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None

_TENANT = "(NULLIF(current_setting('headwater.tenant_id', true), ''))::uuid"

STATEMENTS = (
    f"""
    CREATE TABLE rendered_files (
        tenant_id uuid NOT NULL DEFAULT {_TENANT},
        dataset_id uuid NOT NULL,
        key bytea NOT NULL,
        view text COLLATE "C" NOT NULL,
        content text COLLATE "C" NOT NULL,
        size_bytes bigint NOT NULL,
        row_count bigint NOT NULL,
        statistics json NOT NULL,
        path text COLLATE "C",
        data_path text COLLATE "C",
        origin_version bigint NOT NULL,
        schema_id integer,
        rendered_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        used_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        CONSTRAINT rendered_files_pkey PRIMARY KEY (tenant_id, dataset_id, key),
        CONSTRAINT rendered_files_rows_check CHECK (row_count > 0 OR path IS NULL),
        CONSTRAINT rendered_files_datasets_fkey FOREIGN KEY (tenant_id, dataset_id)
            REFERENCES datasets (tenant_id, id)
    )
    """,
    "CREATE INDEX rendered_files_content ON rendered_files (tenant_id, dataset_id, view, content)",
    "CREATE INDEX rendered_files_path ON rendered_files (tenant_id, dataset_id, path) WHERE path IS NOT NULL",
    "CREATE INDEX rendered_files_used ON rendered_files (tenant_id, used_at)",
    "ALTER TABLE rendered_files ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE rendered_files FORCE ROW LEVEL SECURITY",
    "CREATE POLICY tenant ON rendered_files TO headwater_app "
    f"USING (tenant_id = {_TENANT}) WITH CHECK (tenant_id = {_TENANT})",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON rendered_files TO headwater_app",
    # How much the objects of each tenant take.
    "GRANT SELECT (tenant_id, size_bytes, path) ON rendered_files TO headwater_relay",
    "CREATE POLICY relay ON rendered_files FOR SELECT TO headwater_relay USING (true)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
