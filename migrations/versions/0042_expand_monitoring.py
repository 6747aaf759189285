"""Numbers of datasets and of jobs, and the role that reads the numbers of all tenants.

Revision ID: 0042
Revises: 0041
"""

from alembic import op

revision = "0042"
down_revision = "0041"
branch_labels = None
depends_on = None

TENANT = "(NULLIF(current_setting('headwater.tenant_id', true), ''))::uuid"
# Roles belong to the whole server, so another database's migration may be making it at this moment.
ROLE = """
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'headwater_monitor') THEN
        CREATE ROLE headwater_monitor NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$
"""
TABLES = {
    "dataset_hours": """
        tenant_id uuid NOT NULL DEFAULT {tenant},
        dataset_id uuid NOT NULL,
        hour timestamptz NOT NULL,
        writes bigint NOT NULL DEFAULT 0,
        rows_written bigint NOT NULL DEFAULT 0,
        CONSTRAINT dataset_hours_pkey PRIMARY KEY (tenant_id, dataset_id, hour),
        CONSTRAINT dataset_hours_tenants_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id)
    """,
    "dataset_samples": """
        tenant_id uuid NOT NULL DEFAULT {tenant},
        dataset_id uuid NOT NULL,
        version bigint NOT NULL,
        rows bigint NOT NULL,
        deleted_rows bigint NOT NULL,
        files bigint NOT NULL,
        logs bigint NOT NULL,
        size_bytes bigint NOT NULL,
        write_gap_seconds double precision,
        milliseconds bigint NOT NULL DEFAULT 0,
        sampled_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        CONSTRAINT dataset_samples_pkey PRIMARY KEY (tenant_id, dataset_id),
        CONSTRAINT dataset_samples_datasets_fkey FOREIGN KEY (tenant_id, dataset_id)
            REFERENCES datasets (tenant_id, id) ON DELETE CASCADE
    """,
}
# What a metric counts, and the names that it states; no content of a tenant.
READ = {
    "tenants": "tenant_id, name, state",
    "datasets": "tenant_id, id, name, created_at, deleted_at",
    "heads": "tenant_id, dataset_id, version, next_offset, committed_at",
    "commits": "tenant_id, dataset_id, version, action, next_offset, committed_at",
    "jobs": "tenant_id, dataset_id, id, lane, state, kind, created_at, not_before",
    "consumers": "tenant_id, dataset_id, name, kind, position, moved_at",
    "sources": "tenant_id, id, state, failures",
    "webhooks": "tenant_id, id, state, failures",
    "quarantine_files": "tenant_id, dataset_id, path, row_count",
    "quarantine_redrives": "tenant_id, dataset_id, path, job_id",
    "storage_samples": "tenant_id, stored_bytes, sampled_at",
    "dataset_hours": "tenant_id, dataset_id, hour, writes, rows_written",
    "dataset_samples": "tenant_id, dataset_id, version, milliseconds, write_gap_seconds, sampled_at",
}
STATEMENTS = (
    "CREATE INDEX dataset_hours_hour ON dataset_hours (tenant_id, hour)",
    """
    CREATE TABLE leaders (
        task text COLLATE "C" NOT NULL,
        owner text COLLATE "C" NOT NULL,
        lease_until timestamptz NOT NULL,
        CONSTRAINT leaders_pkey PRIMARY KEY (task)
    )
    """,
    "ALTER TABLE leaders ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE leaders FORCE ROW LEVEL SECURITY",
    "CREATE POLICY relay ON leaders TO headwater_relay USING (true) WITH CHECK (true)",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON leaders TO headwater_relay",
    "ALTER TABLE jobs ADD COLUMN timings json",
    "ALTER TABLE jobs ADD COLUMN replans integer NOT NULL DEFAULT 0",
)


def upgrade() -> None:
    op.execute(ROLE)
    op.execute("GRANT USAGE ON SCHEMA public TO headwater_monitor")
    for table, columns in TABLES.items():
        op.execute(f"CREATE TABLE {table} ({columns.format(tenant=TENANT)})")
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        op.execute(
            f"CREATE POLICY tenant ON {table} TO headwater_app "
            f"USING (tenant_id = {TENANT}) WITH CHECK (tenant_id = {TENANT})"
        )
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO headwater_app")
    for table, columns in READ.items():
        op.execute(f"CREATE POLICY monitor ON {table} FOR SELECT TO headwater_monitor USING (true)")
        op.execute(f"GRANT SELECT ({columns}) ON {table} TO headwater_monitor")
    for statement in STATEMENTS:
        op.execute(statement)
