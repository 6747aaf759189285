"""The secrets from which keys for tables are derived, and when files of expired versions may be removed.

Revision ID: 0037
Revises: 0036
"""

import secrets

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None

_SECRET_BYTES = 32

STATEMENTS = (
    # They are of the deployment. Only the relay's role sees them.
    """
    CREATE TABLE table_key_secrets (
        generation integer NOT NULL,
        secret bytea NOT NULL,
        created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
        CONSTRAINT table_key_secrets_pkey PRIMARY KEY (generation),
        CONSTRAINT table_key_secrets_generation_check CHECK (generation > 0)
    )
    """,
    "ALTER TABLE table_key_secrets ENABLE ROW LEVEL SECURITY",
    "ALTER TABLE table_key_secrets FORCE ROW LEVEL SECURITY",
    "CREATE POLICY relay ON table_key_secrets TO headwater_relay USING (true) WITH CHECK (true)",
    "GRANT SELECT, INSERT, DELETE ON table_key_secrets TO headwater_relay",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
    # Row level security would refuse a row of the owner.
    op.execute("ALTER TABLE table_key_secrets NO FORCE ROW LEVEL SECURITY")
    op.execute(
        sa.text("INSERT INTO table_key_secrets (generation, secret) VALUES (1, :secret)").bindparams(
            sa.bindparam("secret", secrets.token_bytes(_SECRET_BYTES), type_=sa.LargeBinary)
        )
    )
    op.execute("ALTER TABLE table_key_secrets FORCE ROW LEVEL SECURITY")
