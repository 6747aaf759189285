"""The monitor reads how many bytes files in quarantine and rendered files have.

Revision ID: 0052
Revises: 0051
"""

from alembic import op

revision = "0052"
down_revision = "0051"
branch_labels = None
depends_on = None

STATEMENTS = (
    "GRANT SELECT (size_bytes) ON quarantine_files TO headwater_monitor",
    "CREATE POLICY monitor ON rendered_files FOR SELECT TO headwater_monitor USING (true)",
    "GRANT SELECT (tenant_id, path, size_bytes) ON rendered_files TO headwater_monitor",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
