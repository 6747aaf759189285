"""Runs of exports that have a version of the table, and how far the cron schedule of an export is done.

Revision ID: 0044
Revises: 0043
"""

from alembic import op

revision = "0044"
down_revision = "0043"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE exports ADD COLUMN planned_at timestamptz")
    op.execute("ALTER TABLE export_runs ADD COLUMN version bigint")
    # Two snapshots may have the same range. Of runs without a version, the index has the rule of the constraint.
    op.execute(
        "CREATE UNIQUE INDEX export_runs_ranges ON export_runs (tenant_id, export_id, since, until) "
        "WHERE version IS NULL"
    )
    op.execute(
        "CREATE UNIQUE INDEX export_runs_versions ON export_runs (tenant_id, export_id, version) "
        "WHERE version IS NOT NULL"
    )
    op.execute("ALTER TABLE export_runs DROP CONSTRAINT export_runs_tenant_id_export_id_since_until_key")
