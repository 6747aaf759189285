"""Shares of datasets, their recipients, and the tokens of these.

Revision ID: 0041
Revises: 0040
"""

from alembic import op

revision = "0041"
down_revision = "0040"
branch_labels = None
depends_on = None

TENANT = "(NULLIF(current_setting('headwater.tenant_id', true), ''))::uuid"
TABLES = {
    "shares": """
        tenant_id uuid NOT NULL DEFAULT {tenant},
        id uuid NOT NULL,
        name text COLLATE "C" NOT NULL,
        folded_name text COLLATE "C" NOT NULL,
        deleted_rows text NOT NULL,
        revision bigint NOT NULL DEFAULT 1,
        created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        CONSTRAINT shares_pkey PRIMARY KEY (tenant_id, id),
        CONSTRAINT shares_folded_name_key UNIQUE (tenant_id, folded_name),
        CONSTRAINT shares_deleted_rows_check CHECK (deleted_rows IN ('rendered', 'vector')),
        CONSTRAINT shares_tenants_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id)
    """,
    "shared_datasets": """
        tenant_id uuid NOT NULL DEFAULT {tenant},
        share_id uuid NOT NULL,
        dataset_id uuid NOT NULL,
        name text COLLATE "C" NOT NULL,
        folded_name text COLLATE "C" NOT NULL,
        CONSTRAINT shared_datasets_pkey PRIMARY KEY (tenant_id, share_id, dataset_id),
        CONSTRAINT shared_datasets_folded_name_key UNIQUE (tenant_id, share_id, folded_name),
        CONSTRAINT shared_datasets_shares_fkey FOREIGN KEY (tenant_id, share_id)
            REFERENCES shares (tenant_id, id) ON DELETE CASCADE,
        CONSTRAINT shared_datasets_datasets_fkey FOREIGN KEY (tenant_id, dataset_id)
            REFERENCES datasets (tenant_id, id)
    """,
    "recipients": """
        tenant_id uuid NOT NULL DEFAULT {tenant},
        id uuid NOT NULL,
        share_id uuid NOT NULL,
        name text COLLATE "C" NOT NULL,
        grants json,
        expires_at timestamptz,
        requests_per_second integer,
        revision bigint NOT NULL DEFAULT 1,
        created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        created_by uuid,
        last_used_at timestamptz,
        CONSTRAINT recipients_pkey PRIMARY KEY (tenant_id, id),
        CONSTRAINT recipients_name_key UNIQUE (tenant_id, share_id, name),
        CONSTRAINT recipients_shares_fkey FOREIGN KEY (tenant_id, share_id)
            REFERENCES shares (tenant_id, id) ON DELETE CASCADE
    """,
    "share_tokens": """
        tenant_id uuid NOT NULL DEFAULT {tenant},
        recipient_id uuid NOT NULL,
        digest bytea NOT NULL,
        created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        ends_at timestamptz,
        CONSTRAINT share_tokens_pkey PRIMARY KEY (tenant_id, recipient_id, digest),
        CONSTRAINT share_tokens_digest_key UNIQUE (digest),
        CONSTRAINT share_tokens_digest_check CHECK (octet_length(digest) = 32),
        CONSTRAINT share_tokens_recipients_fkey FOREIGN KEY (tenant_id, recipient_id)
            REFERENCES recipients (tenant_id, id) ON DELETE CASCADE
    """,
}
INDEX = "CREATE INDEX shared_datasets_dataset ON shared_datasets (tenant_id, dataset_id)"
# The tenant is not known before the token is found: a request with its digest may read that one row.
CREDENTIAL_POLICY = """
CREATE POLICY credential ON share_tokens FOR SELECT TO headwater_app
    USING (digest = decode(current_setting('headwater.key_digest', true), 'hex'))
"""


def upgrade() -> None:
    for table, columns in TABLES.items():
        op.execute(f"CREATE TABLE {table} ({columns.format(tenant=TENANT)})")
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY")
        op.execute(
            f"CREATE POLICY tenant ON {table} TO headwater_app "
            f"USING (tenant_id = {TENANT}) WITH CHECK (tenant_id = {TENANT})"
        )
        op.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO headwater_app")
    op.execute(INDEX)
    op.execute(CREDENTIAL_POLICY)
