"""${message}

Revision ID: ${up_revision}
Revises: ${down_revision | comma,n}

Every migration runs in a transaction of its own, with the time limits of env.py. The old version of the service
still runs while it does, and after it: expand in one release, contract in a later one.
"""

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}
