"""Initialises a database: the latest schema, the roles, the first tenant and its operator key."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, create_engine, make_url, select, text
from sqlalchemy.pool import NullPool

import migrations
from app.db.session import APPLICATION_ROLE, RELAY_ROLE, Database
from app.format.errors import Unavailable
from app.tenants.repository import TenantStore
from app.tenants.tables import api_keys, tenants

DEFAULT_TENANT_NAME: Final = "default"
DEFAULT_TENANT_ID: Final = "00000000-0000-7000-8000-000000000001"
"""The same in every installation: tenants see nothing but themselves, so it cannot be looked up by name."""

OPERATOR_SCOPES: Final = ("operator", "read", "write")
_LOCK: Final = 0x68656164776174  # "headwat": the advisory lock of a process that initialises a database
# Longer than the migrations of a release take.
_LOCK_SECONDS_MAX: Final = 1_800.0
_LOCK_PAUSE_SECONDS: Final = 0.1


class BootstrapResult(msgspec.Struct, frozen=True, kw_only=True):
    """`api_key`: the operator key if this call has created it, otherwise None: it cannot be read again."""

    tenant_id: str
    api_key: str | None

    def __repr__(self) -> str:
        return f"BootstrapResult(tenant_id={self.tenant_id!r})"


def initialise(
    database_url: str, *, application_url: str | None = None, api_key: str | None = None
) -> BootstrapResult:
    """Migrates to the latest schema; creates the default tenant and, if it has no key yet, its operator key.

    May be called repeatedly and by several processes at once. `database_url`: the schema's owner. `application_url`:
    its login gets the roles of the service (default: the owner). `api_key`: the operator key to use instead of a new
    one. Raises ValueError if it does not have the form of a key, Unavailable if another call does not end.
    """
    with _alone(database_url) as connection:
        migrate(connection)
        _grant_roles(connection, make_url(application_url or database_url).username)
        database = Database(database_url, application_name="headwater init", connections_max=1)
        try:
            return _first_tenant(database, api_key)
        finally:
            database.close()


def migrate(connection: Connection, revision: str = "head") -> None:
    """Runs the migrations up to `revision` and commits."""
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    command.upgrade(config, revision)
    connection.commit()


@contextmanager
def _alone(database_url: str) -> Iterator[Connection]:
    """A connection with the advisory lock, for which a second caller waits."""
    engine = create_engine(make_url(database_url).set(drivername="postgresql+psycopg"), poolclass=NullPool)
    with engine.connect() as connection:
        # A transaction that waits for the lock would be waited for by migrations that build an index concurrently.
        deadline = time.monotonic() + _LOCK_SECONDS_MAX
        while not connection.execute(
            text("SELECT pg_try_advisory_lock(:lock)"), {"lock": _LOCK}
        ).scalar_one():
            connection.commit()
            if time.monotonic() > deadline:
                raise Unavailable("another initialisation has not ended; run this one again")
            time.sleep(_LOCK_PAUSE_SECONDS)
        connection.commit()
        # Closing the connection releases the lock, also after a failure.
        yield connection


def _grant_roles(connection: Connection, login: str | None) -> None:
    """Grants the roles to the service's login without inheritance: a session has one role at a time."""
    logins = {login, connection.execute(text("SELECT current_user")).scalar_one()} - {None}
    quote = connection.dialect.identifier_preparer.quote
    for member in sorted(logins):
        for role in {APPLICATION_ROLE, RELAY_ROLE} - {member}:
            connection.execute(text(f"GRANT {role} TO {quote(member)} WITH INHERIT FALSE, SET TRUE"))
    connection.commit()


def _first_tenant(database: Database, api_key: str | None) -> BootstrapResult:
    with database.tenant(DEFAULT_TENANT_ID) as connection:
        known = connection.execute(select(tenants.c.tenant_id)).one_or_none() is not None
        key = connection.execute(select(api_keys.c.id).limit(1)).one_or_none()
    store = TenantStore(database)
    if not known:
        store.add_tenant(DEFAULT_TENANT_NAME, tenant_id=DEFAULT_TENANT_ID)
    if key is not None:
        return BootstrapResult(tenant_id=DEFAULT_TENANT_ID, api_key=None)
    made = store.add_key(DEFAULT_TENANT_ID, OPERATOR_SCOPES, name="operator", api_key=api_key)
    return BootstrapResult(tenant_id=DEFAULT_TENANT_ID, api_key=made.api_key)
