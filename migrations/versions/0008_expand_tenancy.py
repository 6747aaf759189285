"""Tenants that can be suspended; grants, expiry and use of API keys; the role that administers them.

Revision ID: 0008
Revises: 0007
"""

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

# Roles belong to the whole server, so another database's migration may be making it at this moment.
ROLE = """
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'headwater_admin') THEN
        CREATE ROLE headwater_admin NOLOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$
"""

STATEMENTS = (
    ROLE,
    "GRANT USAGE ON SCHEMA public TO headwater_admin",
    "ALTER TABLE tenants ADD COLUMN state text NOT NULL DEFAULT 'active'",
    "ALTER TABLE tenants ADD COLUMN quotas json NOT NULL DEFAULT '{}'",
    "ALTER TABLE tenants ADD COLUMN suspended_reason text",
    "ALTER TABLE tenants ADD COLUMN suspended_at timestamptz",
    "ALTER TABLE tenants ADD CONSTRAINT tenants_state_check CHECK (state IN ('active', 'suspended'))",
    "ALTER TABLE api_keys ADD COLUMN grants json",
    "ALTER TABLE api_keys ADD COLUMN expires_at timestamptz",
    "ALTER TABLE api_keys ADD COLUMN last_used_at timestamptz",
    "ALTER TABLE api_keys ADD COLUMN created_by uuid",
    # The owner may not be a superuser: it sees the rows of all tenants only without the forced security.
    "ALTER TABLE api_keys NO FORCE ROW LEVEL SECURITY",
    # A key that could write could also change and remove; an operator's key can also administer.
    """
    UPDATE api_keys SET scopes = (
        SELECT array_agg(DISTINCT scope ORDER BY scope) FROM unnest(
            array_replace(scopes, 'operator', 'operate')
            || CASE WHEN scopes && ARRAY['operator', 'write'] THEN ARRAY['manage'] ELSE ARRAY[]::text[] END
        ) AS scope
    ) WHERE scopes && ARRAY['operator', 'write']
    """,
    "ALTER TABLE api_keys FORCE ROW LEVEL SECURITY",
    # Serving needs to know a tenant and its keys, not to make or change them.
    "REVOKE INSERT ON tenants, api_keys FROM headwater_app",
    "REVOKE UPDATE (revoked_at) ON api_keys FROM headwater_app",
    "GRANT UPDATE (last_used_at) ON api_keys TO headwater_app",
    # The state of its tenant is read with a key.
    """
    CREATE POLICY credential ON tenants FOR SELECT TO headwater_app USING (tenant_id = (
        SELECT api_keys.tenant_id FROM api_keys
        WHERE api_keys.digest = decode(current_setting('headwater.key_digest', true), 'hex')
    ))
    """,
    "GRANT SELECT, INSERT, UPDATE, DELETE ON tenants, api_keys TO headwater_admin",
    "CREATE POLICY admin ON tenants TO headwater_admin USING (true) WITH CHECK (true)",
    "CREATE POLICY admin ON api_keys TO headwater_admin USING (true) WITH CHECK (true)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
