"""Deletion of tenants.

Revision ID: 0013
Revises: 0012
"""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_TENANT = "(NULLIF(current_setting('headwater.tenant_id', true), ''))::uuid"

# What only the deletion of a tenant deletes.
_ENDS_WITH_ITS_TENANT = (
    "consumers exports named_versions partition_events partition_feeds partition_marks read_leases table_keeping "
    "timeline_archives views webhooks export_runs read_files view_inputs webhook_deliveries export_files token_subjects"
).split()

STATEMENTS = (
    "ALTER TABLE tenants DROP CONSTRAINT tenants_state_check",
    "ALTER TABLE tenants ADD CONSTRAINT tenants_state_check "
    "CHECK (state IN ('active', 'suspended', 'deleting', 'deleted'))",
    f"""
    CREATE TABLE tenant_deletions (
        tenant_id uuid NOT NULL DEFAULT {_TENANT},
        name text COLLATE "C" NOT NULL,
        requested_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        requested_by uuid,
        rows_deleted json NOT NULL,
        files_deleted bigint NOT NULL DEFAULT 0,
        bytes_deleted bigint NOT NULL DEFAULT 0,
        rows_left json,
        files_left bigint,
        cleared_at timestamptz,
        finished_at timestamptz,
        CONSTRAINT tenant_deletions_pkey PRIMARY KEY (tenant_id),
        CONSTRAINT tenant_deletions_tenants_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id)
    )
    """,
    "ALTER TABLE tenant_deletions ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE tenant_deletions FORCE ROW LEVEL SECURITY",
    # The service deletes the data and reports it; it neither begins a deletion nor finishes one.
    "GRANT SELECT, UPDATE (rows_deleted, files_deleted, bytes_deleted, rows_left, files_left, cleared_at) "
    "ON tenant_deletions TO headwater_app",
    f"CREATE POLICY tenant ON tenant_deletions TO headwater_app "
    f"USING (tenant_id = {_TENANT}) WITH CHECK (tenant_id = {_TENANT})",
    "GRANT SELECT, INSERT, UPDATE, DELETE ON tenant_deletions TO headwater_admin",
    "CREATE POLICY admin ON tenant_deletions TO headwater_admin USING (true) WITH CHECK (true)",
    "GRANT SELECT (tenant_id, cleared_at) ON tenant_deletions TO headwater_relay",
    "CREATE POLICY relay ON tenant_deletions FOR SELECT TO headwater_relay USING (true)",
    f"GRANT DELETE ON {', '.join(_ENDS_WITH_ITS_TENANT)} TO headwater_app",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
