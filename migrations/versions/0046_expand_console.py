"""Sessions of the console, and links that sign in once.

Revision ID: 0046
Revises: 0045
"""

from alembic import op

revision = "0046"
down_revision = "0045"
branch_labels = None
depends_on = None

TENANT = "(NULLIF(current_setting('headwater.tenant_id', true), ''))::uuid"
TABLES = {
    "console_sessions": """
        tenant_id uuid NOT NULL DEFAULT {tenant},
        digest bytea NOT NULL,
        key_id uuid,
        claims json,
        created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        ends_at timestamptz NOT NULL,
        CONSTRAINT console_sessions_pkey PRIMARY KEY (tenant_id, digest),
        CONSTRAINT console_sessions_digest_key UNIQUE (digest),
        CONSTRAINT console_sessions_digest_check CHECK (octet_length(digest) = 32),
        CONSTRAINT console_sessions_origin_check CHECK ((key_id IS NULL) <> (claims IS NULL)),
        CONSTRAINT console_sessions_tenants_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id),
        CONSTRAINT console_sessions_api_keys_fkey FOREIGN KEY (tenant_id, key_id)
            REFERENCES api_keys (tenant_id, id) ON DELETE CASCADE
    """,
    "console_links": """
        tenant_id uuid NOT NULL DEFAULT {tenant},
        digest bytea NOT NULL,
        key_id uuid NOT NULL,
        ends_at timestamptz NOT NULL,
        CONSTRAINT console_links_pkey PRIMARY KEY (tenant_id, digest),
        CONSTRAINT console_links_digest_key UNIQUE (digest),
        CONSTRAINT console_links_digest_check CHECK (octet_length(digest) = 32),
        CONSTRAINT console_links_api_keys_fkey FOREIGN KEY (tenant_id, key_id)
            REFERENCES api_keys (tenant_id, id) ON DELETE CASCADE
    """,
}


def upgrade() -> None:
    for table, columns in TABLES.items():
        op.execute(f"CREATE TABLE {table} ({columns.format(tenant=TENANT)})")
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        op.execute(
            f"CREATE POLICY tenant ON {table} TO headwater_app "
            f"USING (tenant_id = {TENANT}) WITH CHECK (tenant_id = {TENANT})"
        )
        # The tenant is not known before the row is found: a request with its digest may read that one row.
        op.execute(
            f"CREATE POLICY credential ON {table} FOR SELECT TO headwater_app "
            "USING (digest = decode(current_setting('headwater.key_digest', true), 'hex'))"
        )
        op.execute(f"GRANT SELECT, INSERT, DELETE ON {table} TO headwater_app")
        op.execute(f"CREATE INDEX {table}_ends ON {table} (tenant_id, ends_at)")
