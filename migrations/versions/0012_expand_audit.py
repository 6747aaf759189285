"""The audit: entries that are added, and not changed.

Revision ID: 0012
Revises: 0011
"""

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_TENANT = "(NULLIF(current_setting('headwater.tenant_id', true), ''))::uuid"

STATEMENTS = (
    f"""
    CREATE TABLE audit (
        tenant_id uuid NOT NULL DEFAULT {_TENANT},
        id uuid NOT NULL,
        first_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        at timestamptz NOT NULL DEFAULT clock_timestamp(),
        key_tenant_id uuid,
        key_id uuid,
        key_name text,
        operation text COLLATE "C" NOT NULL,
        method text NOT NULL,
        route text NOT NULL,
        resources json NOT NULL,
        members json NOT NULL,
        address text,
        outcome text NOT NULL,
        status bigint NOT NULL,
        code text,
        request_id text,
        count bigint NOT NULL DEFAULT 1,
        CONSTRAINT audit_pkey PRIMARY KEY (tenant_id, id),
        CONSTRAINT audit_outcome_check CHECK (outcome IN ('allowed', 'denied', 'failed'))
    )
    """,
    "CREATE INDEX audit_at ON audit (tenant_id, at)",
    "CREATE INDEX audit_newest ON audit (id DESC)",
    "ALTER TABLE audit ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE audit FORCE ROW LEVEL SECURITY",
    # No role may update an entry. Retention may delete one, but a mistaken or a stolen login no recent one.
    "GRANT SELECT, INSERT, DELETE ON audit TO headwater_app",
    f"CREATE POLICY tenant_reads ON audit FOR SELECT TO headwater_app USING (tenant_id = {_TENANT})",
    f"CREATE POLICY tenant_adds ON audit FOR INSERT TO headwater_app WITH CHECK (tenant_id = {_TENANT})",
    f"""
    CREATE POLICY tenant_expires ON audit FOR DELETE TO headwater_app
    USING (tenant_id = {_TENANT} AND at < clock_timestamp() - interval '30 days')
    """,
    "GRANT SELECT, INSERT ON audit TO headwater_admin",
    "CREATE POLICY admin_reads ON audit FOR SELECT TO headwater_admin USING (true)",
    "CREATE POLICY admin_adds ON audit FOR INSERT TO headwater_admin WITH CHECK (true)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
