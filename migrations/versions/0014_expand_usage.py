"""Usage of tenants by day, dataset and key; rates of API keys.

Revision ID: 0014
Revises: 0013
"""

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

TENANT = "(NULLIF(current_setting('headwater.tenant_id', true), ''))::uuid"
TABLES = {
    "usage_days": """
        tenant_id uuid NOT NULL DEFAULT {tenant},
        day date NOT NULL,
        dataset_id uuid NOT NULL,
        rows_written bigint NOT NULL DEFAULT 0,
        bytes_written bigint NOT NULL DEFAULT 0,
        changes bigint NOT NULL DEFAULT 0,
        job_milliseconds bigint NOT NULL DEFAULT 0,
        stored_bytes bigint NOT NULL DEFAULT 0,
        CONSTRAINT usage_days_pkey PRIMARY KEY (tenant_id, day, dataset_id),
    """,
    "key_usage_days": """
        tenant_id uuid NOT NULL DEFAULT {tenant},
        day date NOT NULL,
        key_id uuid NOT NULL,
        requests bigint NOT NULL DEFAULT 0,
        egress_bytes bigint NOT NULL DEFAULT 0,
        CONSTRAINT key_usage_days_pkey PRIMARY KEY (tenant_id, day, key_id),
    """,
    "storage_samples": """
        tenant_id uuid NOT NULL DEFAULT {tenant},
        stored_bytes bigint NOT NULL DEFAULT 0,
        sampled_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        CONSTRAINT storage_samples_pkey PRIMARY KEY (tenant_id),
    """,
}


def upgrade() -> None:
    for table, columns in TABLES.items():
        foreign = f"CONSTRAINT {table}_tenants_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id)"
        op.execute(f"CREATE TABLE {table} ({columns.format(tenant=TENANT)} {foreign})")
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        op.execute(
            f"CREATE POLICY tenant ON {table} TO headwater_app "
            f"USING (tenant_id = {TENANT}) WITH CHECK (tenant_id = {TENANT})"
        )
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO headwater_app")
    op.execute("ALTER TABLE api_keys ADD COLUMN requests_per_second integer")
    # Workers apply the weights and the time limits of all tenants.
    op.execute("GRANT SELECT (quotas) ON tenants TO headwater_relay")
