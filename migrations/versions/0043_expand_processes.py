"""The register of workers becomes that of all processes: what each is, where it runs, and the space of its disks.

Revision ID: 0043
Revises: 0042
"""

from alembic import op

revision = "0043"
down_revision = "0042"
branch_labels = None
depends_on = None

COLUMNS = {
    "kind": "text NOT NULL DEFAULT 'worker'",
    "host": "text NOT NULL DEFAULT ''",
    "pid": "integer NOT NULL DEFAULT 0",
    "version": "text NOT NULL DEFAULT ''",
    "disk_free_bytes": "bigint",
    "disk_total_bytes": "bigint",
}


def upgrade() -> None:
    for name, definition in COLUMNS.items():
        op.execute(f"ALTER TABLE workers ADD COLUMN {name} {definition}")
    op.execute("GRANT UPDATE (disk_free_bytes, disk_total_bytes) ON workers TO headwater_relay")
