"""What all ways to write need: transactions, batches of streams, quarantine, deletion vectors and key indexes.

Revision ID: 0003
Revises: 0002
"""

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TENANT = "(NULLIF(current_setting('headwater.tenant_id', true), ''))::uuid"
DEFAULT = f"DEFAULT {TENANT}"

STATEMENTS = (
    f"""
    CREATE TABLE transactions (
        tenant_id uuid NOT NULL {DEFAULT},
        id uuid NOT NULL,
        idempotency_key text COLLATE "C",
        request_hash text NOT NULL,
        created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
        CONSTRAINT transactions_pkey PRIMARY KEY (tenant_id, id),
        CONSTRAINT transactions_tenant_id_idempotency_key_key UNIQUE (tenant_id, idempotency_key),
        CONSTRAINT transactions_tenants_fkey FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id)
    )
    """,
    """
    ALTER TABLE jobs
        ADD COLUMN alone boolean DEFAULT false NOT NULL,
        ADD COLUMN transaction_id uuid,
        ADD CONSTRAINT jobs_transactions_fkey FOREIGN KEY (tenant_id, transaction_id)
            REFERENCES transactions (tenant_id, id)
    """,
    "CREATE INDEX jobs_transaction ON jobs (tenant_id, transaction_id) WHERE transaction_id IS NOT NULL",
    """
    ALTER TABLE files
        ADD COLUMN kind text DEFAULT 'base' NOT NULL,
        ADD COLUMN written_version bigint,
        ADD COLUMN first_offset bigint,
        ADD COLUMN deletion_vector json,
        ADD COLUMN index_file json,
        ADD COLUMN vector_path text,
        ADD COLUMN index_path text,
        ADD CONSTRAINT files_kind_check CHECK (kind IN ('base', 'log', 'postponed'))
    """,
    "ALTER TABLE files DROP CONSTRAINT files_pkey",
    "ALTER TABLE files ADD CONSTRAINT files_pkey PRIMARY KEY (tenant_id, dataset_id, path, added_version)",
    "CREATE INDEX files_vector ON files (tenant_id, dataset_id, vector_path) WHERE vector_path IS NOT NULL",
    "CREATE INDEX files_index ON files (tenant_id, dataset_id, index_path) WHERE index_path IS NOT NULL",
    f"""
    CREATE TABLE quarantine_files (
        tenant_id uuid NOT NULL {DEFAULT},
        dataset_id uuid NOT NULL,
        seq bigint GENERATED ALWAYS AS IDENTITY NOT NULL,
        path text COLLATE "C" NOT NULL,
        job_id uuid NOT NULL,
        first_row bigint DEFAULT 0 NOT NULL,
        row_count bigint NOT NULL,
        size_bytes bigint NOT NULL,
        checksum text NOT NULL,
        written_at timestamptz DEFAULT clock_timestamp() NOT NULL,
        CONSTRAINT quarantine_files_pkey PRIMARY KEY (tenant_id, dataset_id, path),
        CONSTRAINT quarantine_files_rows_check CHECK (row_count > 0),
        CONSTRAINT quarantine_files_datasets_fkey FOREIGN KEY (tenant_id, dataset_id)
            REFERENCES datasets (tenant_id, id),
        CONSTRAINT quarantine_files_jobs_fkey FOREIGN KEY (tenant_id, job_id) REFERENCES jobs (tenant_id, id)
    )
    """,
    "CREATE INDEX quarantine_files_seq ON quarantine_files (tenant_id, dataset_id, seq)",
    f"""
    CREATE TABLE quarantine_redrives (
        tenant_id uuid NOT NULL {DEFAULT},
        dataset_id uuid NOT NULL,
        path text COLLATE "C" NOT NULL,
        record bigint NOT NULL,
        job_id uuid NOT NULL,
        CONSTRAINT quarantine_redrives_pkey PRIMARY KEY (tenant_id, dataset_id, path, record),
        CONSTRAINT quarantine_redrives_quarantine_files_fkey FOREIGN KEY (tenant_id, dataset_id, path)
            REFERENCES quarantine_files (tenant_id, dataset_id, path) ON DELETE CASCADE,
        CONSTRAINT quarantine_redrives_jobs_fkey FOREIGN KEY (tenant_id, job_id) REFERENCES jobs (tenant_id, id)
    )
    """,
    f"""
    CREATE TABLE writer_batches (
        tenant_id uuid NOT NULL {DEFAULT},
        dataset_id uuid NOT NULL,
        writer_id text COLLATE "C" NOT NULL,
        batch_id bigint NOT NULL,
        job_id uuid NOT NULL,
        created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
        CONSTRAINT writer_batches_pkey PRIMARY KEY (tenant_id, dataset_id, writer_id, batch_id),
        CONSTRAINT writer_batches_datasets_fkey FOREIGN KEY (tenant_id, dataset_id)
            REFERENCES datasets (tenant_id, id),
        CONSTRAINT writer_batches_jobs_fkey FOREIGN KEY (tenant_id, job_id)
            REFERENCES jobs (tenant_id, id) DEFERRABLE INITIALLY DEFERRED
    )
    """,
    *(
        statement.format(table=table)
        for table in ("transactions", "quarantine_files", "quarantine_redrives", "writer_batches")
        for statement in (
            "ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
            "ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
            "CREATE POLICY tenant ON {table} TO headwater_app "
            f"USING (tenant_id = {TENANT}) WITH CHECK (tenant_id = {TENANT})",
        )
    ),
    "GRANT SELECT, INSERT, UPDATE (idempotency_key) ON transactions TO headwater_app",
    "GRANT SELECT, INSERT, DELETE ON quarantine_files TO headwater_app",
    "GRANT SELECT, INSERT, DELETE ON quarantine_redrives TO headwater_app",
    "GRANT SELECT, INSERT, UPDATE (job_id, created_at) ON writer_batches TO headwater_app",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
