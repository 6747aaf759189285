"""The subjects of tokens; a tenant is found by the name that a token states.

Revision ID: 0011
Revises: 0010
"""

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

TENANT = "(NULLIF(current_setting('headwater.tenant_id', true), ''))::uuid"

STATEMENTS = (
    f"""
    CREATE TABLE token_subjects (
        tenant_id uuid NOT NULL DEFAULT {TENANT},
        id uuid NOT NULL,
        issuer text COLLATE "C" NOT NULL,
        subject text COLLATE "C" NOT NULL,
        created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
        CONSTRAINT token_subjects_pkey PRIMARY KEY (tenant_id, id),
        CONSTRAINT token_subjects_tenants_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id)
    )
    """,
    "ALTER TABLE token_subjects ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE token_subjects FORCE ROW LEVEL SECURITY",
    f"""
    CREATE POLICY tenant ON token_subjects TO headwater_app
        USING (tenant_id = {TENANT}) WITH CHECK (tenant_id = {TENANT})
    """,
    "GRANT SELECT, INSERT ON token_subjects TO headwater_app",
    "CREATE POLICY named ON tenants FOR SELECT TO headwater_app "
    "USING (name = current_setting('headwater.tenant_name', true))",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
