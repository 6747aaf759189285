"""Runs the migrations, on the connection it is given or on the one that the environment names.

Migrations go forward only: a mistake is put right by the next one.
"""

import os

from alembic import context
from sqlalchemy import Connection, create_engine, make_url
from sqlalchemy.pool import NullPool

from app.store.models import metadata


def _run(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=metadata, transaction_per_migration=True)
    with context.begin_transaction():
        context.run_migrations()


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
