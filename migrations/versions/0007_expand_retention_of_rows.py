"""Retention of jobs and of what refers to them, and of the rows of deleted datasets.

Revision ID: 0007
Revises: 0006
"""

from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

STATEMENTS = (
    "CREATE INDEX jobs_finished ON jobs (tenant_id, finished_at, id) WHERE finished_at IS NOT NULL",
    # A job is deleted once nothing refers to it: each reference is looked up.
    "CREATE INDEX idempotency_job ON idempotency (tenant_id, job_id)",
    "CREATE INDEX writer_batches_job ON writer_batches (tenant_id, job_id)",
    "CREATE INDEX quarantine_files_job ON quarantine_files (tenant_id, job_id)",
    "CREATE INDEX quarantine_redrives_job ON quarantine_redrives (tenant_id, job_id)",
    "CREATE INDEX export_runs_job ON export_runs (tenant_id, job_id)",
    "GRANT DELETE ON jobs, idempotency, writer_batches, transactions, commits, heads, schema_versions, datasets "
    "TO headwater_app",
    # What is in use cannot be deleted, whatever the statement.
    "CREATE POLICY ended ON jobs AS RESTRICTIVE FOR DELETE TO headwater_app USING (finished_at IS NOT NULL)",
    "CREATE POLICY ended ON datasets AS RESTRICTIVE FOR DELETE TO headwater_app USING (deleted_at IS NOT NULL)",
    *(
        f"""
        CREATE POLICY ended ON {table} AS RESTRICTIVE FOR DELETE TO headwater_app USING (EXISTS (
            SELECT FROM datasets WHERE datasets.tenant_id = {table}.tenant_id
                AND datasets.id = {table}.dataset_id AND datasets.deleted_at IS NOT NULL
        ))
        """
        for table in ("commits", "heads", "schema_versions")
    ),
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
