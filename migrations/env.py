"""Runs the migrations, on the connection it is given or on the one that the environment names.

Migrations go forward only: a mistake is put right by the next one.
"""

import os

from alembic import context
from sqlalchemy import Connection, create_engine, make_url, text
from sqlalchemy.pool import NullPool

from app.process.tables import metadata

# A migration that waits for a lock makes everyone behind it wait: better to give up and be run again.
LIMITS = {"lock_timeout": "5s", "statement_timeout": "10min"}


def _run(connection: Connection) -> None:
    for name, limit in LIMITS.items():
        connection.execute(text(f"SET {name} = '{limit}'"))
    connection.commit()
    context.configure(connection=connection, target_metadata=metadata, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()
    for name in LIMITS:
        connection.execute(text(f"RESET {name}"))
    connection.commit()


def _from_environment() -> None:
    url = os.environ.get("HEADWATER_MIGRATION_DATABASE_URL") or os.environ["HEADWATER_DATABASE_URL"]
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"), poolclass=NullPool)
    with engine.connect() as connection:
        _run(connection)


given = context.config.attributes.get("connection")
if given is not None:
    _run(given)
else:
    _from_environment()
