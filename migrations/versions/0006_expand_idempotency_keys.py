"""Idempotency keys of requests that are not jobs, with their replies; renames of datasets; lists of jobs.

Revision ID: 0006
Revises: 0005
"""

from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

TENANT = "(NULLIF(current_setting('headwater.tenant_id', true), ''))::uuid"

STATEMENTS = (
    f"""
    CREATE TABLE idempotency_keys (
        tenant_id uuid NOT NULL DEFAULT {TENANT},
        scope text COLLATE "C" NOT NULL,
        key text COLLATE "C" NOT NULL,
        request_hash text NOT NULL,
        status integer NOT NULL,
        headers json NOT NULL,
        body bytea NOT NULL,
        created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
        expires_at timestamptz NOT NULL,
        CONSTRAINT idempotency_keys_pkey PRIMARY KEY (tenant_id, scope, key),
        CONSTRAINT idempotency_keys_tenants_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id)
    )
    """,
    "CREATE INDEX idempotency_keys_expiry ON idempotency_keys (tenant_id, expires_at)",
    "ALTER TABLE idempotency_keys ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE idempotency_keys FORCE ROW LEVEL SECURITY",
    f"""
    CREATE POLICY tenant ON idempotency_keys TO headwater_app
        USING (tenant_id = {TENANT}) WITH CHECK (tenant_id = {TENANT})
    """,
    "GRANT SELECT, INSERT, UPDATE, DELETE ON idempotency_keys TO headwater_app",
    # Datasets may be renamed.
    "GRANT UPDATE (name) ON datasets TO headwater_app",
    # Jobs are listed by the order of their acceptance, of a dataset or of all.
    "CREATE INDEX jobs_accepted ON jobs (tenant_id, seq)",
    "CREATE INDEX jobs_of_dataset ON jobs (tenant_id, dataset_id, seq)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
