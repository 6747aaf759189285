"""Sources, and what they have read.

Revision ID: 0021
Revises: 0020
"""

from alembic import op

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None

_TENANT = "(NULLIF(current_setting('headwater.tenant_id', true), ''))::uuid"

STATEMENTS = (
    f"""
    CREATE TABLE sources (
        tenant_id uuid NOT NULL DEFAULT {_TENANT},
        id uuid NOT NULL,
        name text COLLATE "C" NOT NULL,
        dataset_id uuid,
        dataset_name text COLLATE "C" NOT NULL,
        definition json NOT NULL,
        secrets json NOT NULL,
        state text NOT NULL,
        revision bigint NOT NULL DEFAULT 1,
        position json NOT NULL,
        rounds bigint NOT NULL DEFAULT 0,
        reported bigint NOT NULL DEFAULT 0,
        failures bigint NOT NULL DEFAULT 0,
        error json,
        lag json,
        last_round json,
        job_id uuid,
        due_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        epoch bigint NOT NULL DEFAULT 0,
        created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        CONSTRAINT sources_pkey PRIMARY KEY (tenant_id, id),
        CONSTRAINT sources_tenant_id_name_key UNIQUE (tenant_id, name),
        CONSTRAINT sources_state_check CHECK (state IN ('active', 'paused', 'finished', 'failed')),
        CONSTRAINT sources_datasets_fkey FOREIGN KEY (tenant_id, dataset_id) REFERENCES datasets (tenant_id, id)
    )
    """,
    "CREATE INDEX sources_dataset ON sources (tenant_id, dataset_id)",
    "CREATE INDEX sources_due ON sources (due_at) WHERE state = 'active'",
    f"""
    CREATE TABLE source_items (
        tenant_id uuid NOT NULL DEFAULT {_TENANT},
        source_id uuid NOT NULL,
        name text COLLATE "C" NOT NULL,
        fingerprint text COLLATE "C" NOT NULL,
        checksum text NOT NULL,
        size_bytes bigint NOT NULL,
        round bigint NOT NULL,
        error json,
        read_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        CONSTRAINT source_items_pkey PRIMARY KEY (tenant_id, source_id, name, fingerprint),
        CONSTRAINT source_items_sources_fkey FOREIGN KEY (tenant_id, source_id)
            REFERENCES sources (tenant_id, id) ON DELETE CASCADE
    )
    """,
    *(
        statement.format(table=table)
        for table in ("sources", "source_items")
        for statement in (
            "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
            "ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
            "CREATE POLICY tenant ON {table} TO headwater_app "
            f"USING (tenant_id = {_TENANT}) WITH CHECK (tenant_id = {_TENANT})",
            "GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO headwater_app",
        )
    ),
    # The relay finds the sources whose next round is due.
    "GRANT SELECT (tenant_id, id, state, due_at) ON sources TO headwater_relay",
    "CREATE POLICY relay ON sources FOR SELECT TO headwater_relay USING (true)",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
