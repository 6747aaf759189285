"""Initialises a database: the latest schema, the roles, the first tenant and its operator key."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, create_engine, make_url, text
from sqlalchemy.pool import NullPool

import migrations
from app.access.errors import NotFound
from app.access.tenants.repository.administration import AdministrationStore
from app.access.tenants.values import DEFAULT_TENANT_ID, KeyScope, NewKey
from app.infra.db.examination import Examination, Owner
from app.infra.db.session import (
    ADMINISTRATOR_ROLE,
    APPLICATION_ROLE,
    MONITOR_ROLE,
    RELAY_ROLE,
    Database,
)
from app.infra.errors import Unavailable

DEFAULT_TENANT_NAME: Final = "default"
OPERATOR_SCOPES: Final = tuple(KeyScope)
_SERVICE_ROLES: Final = frozenset({APPLICATION_ROLE, RELAY_ROLE, MONITOR_ROLE})
_ROLES: Final = _SERVICE_ROLES | {ADMINISTRATOR_ROLE}
_LOCK: Final = 0x68656164776174  # "headwat": the advisory lock of a process that initialises a database
# Longer than the migrations of a release take.
_LOCK_SECONDS_MAX: Final = 1_800.0
_LOCK_PAUSE_SECONDS: Final = 0.1


class RightsMissing(Exception):
    """The owner of the schema cannot make it. The message has the SQL that a superuser runs."""


class BootstrapResult(msgspec.Struct, frozen=True, kw_only=True):
    """`api_key`: the operator key if this call has created it, otherwise None: it cannot be read again."""

    tenant_id: str
    api_key: str | None

    def __repr__(self) -> str:
        return f"BootstrapResult(tenant_id={self.tenant_id!r})"


def initialise(
    database_url: str,
    *,
    application_url: str | None = None,
    administration_url: str | None = None,
    api_key: str | None = None,
    another_key: bool = False,
) -> BootstrapResult:
    """Migrates to the latest schema; creates the default tenant and, if it has no key yet, its operator key.

    May be called repeatedly and by several processes at once. `database_url`: the schema's owner. `application_url`:
    its login gets the roles of the service (default: the owner). `administration_url`: its login gets the role that
    administers tenants and keys. `api_key`: the operator key to use instead of a new one. `another_key`: an
    operator key is created also if the tenant has keys. Raises ValueError if `api_key` does not have the form of a key,
    RightsMissing, Unavailable if another call does not end.
    """
    with _alone(database_url) as connection:
        logins = _logins(application_url, administration_url)
        owner = _checked_owner(connection, logins)
        migrate(connection)
        _grant_roles(connection, {**logins, owner.name: _ROLES})
        database = Database(
            database_url, role=ADMINISTRATOR_ROLE, application_name="headwater init", connections_max=1
        )
        try:
            return _first_tenant(database, api_key, another_key=another_key)
        finally:
            database.close()


def check_rights(
    database_url: str, *, application_url: str | None = None, administration_url: str | None = None
) -> None:
    """Raises RightsMissing if `initialise` would fail with these URLs because the owner lacks rights, or logins."""
    with _alone(database_url) as connection:
        _checked_owner(connection, _logins(application_url, administration_url))


def migrate(connection: Connection, revision: str = "head") -> None:
    """Runs the migrations up to `revision` and commits."""
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    command.upgrade(config, revision)
    connection.commit()


def migrate_to(database_url: str, revision: str) -> None:
    """Runs the migrations up to `revision`, as the schema's owner. Raises Unavailable if another call does not end."""
    with _alone(database_url) as connection:
        migrate(connection, revision)


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


def _logins(application_url: str | None, administration_url: str | None) -> dict[str, frozenset[str]]:
    """The roles of each login."""
    logins: dict[str, frozenset[str]] = {}
    for url, roles in (
        (application_url, _SERVICE_ROLES),
        (administration_url, frozenset({ADMINISTRATOR_ROLE})),
    ):
        login = make_url(url).username if url else None
        if login is not None:
            logins[login] = logins.get(login, frozenset()) | roles
    return logins


def _checked_owner(connection: Connection, logins: Mapping[str, frozenset[str]]) -> Owner:
    owner = Examination(connection).owner(_ROLES | set(logins))
    connection.commit()
    if statements := _statements(owner, logins, connection.dialect.identifier_preparer.quote):
        lines = (
            f"the login {owner.name} of HEADWATER_MIGRATION_DATABASE_URL cannot make the schema yet. As a superuser, "
            "run this SQL, and repeat the command:",
            *statements,
        )
        raise RightsMissing("\n".join(lines))
    return owner


def _statements(owner: Owner, logins: Mapping[str, frozenset[str]], quote: Callable[[str], str]) -> list[str]:
    """The SQL that gives the owner the rights that it lacks, and makes the logins that are missing."""
    absent = sorted(set(logins) - set(owner.grantable))
    ungrantable = {role for role in _ROLES if not owner.grantable.get(role, role not in absent)}
    statements = [f"CREATE ROLE {quote(login)} LOGIN PASSWORD '…';" for login in absent]
    if not owner.makes_tables:
        statements.append(f"ALTER DATABASE {quote(owner.database)} OWNER TO {quote(owner.name)};")
    if not owner.makes_roles and _ROLES - {*owner.grantable, *absent}:
        statements.append(f"ALTER ROLE {quote(owner.name)} CREATEROLE;")
    if granted := sorted(ungrantable - {owner.name}):
        statements.append(
            f"GRANT {', '.join(granted)} TO {quote(owner.name)} WITH ADMIN TRUE, INHERIT FALSE, SET TRUE;"
        )
    return statements


def _grant_roles(connection: Connection, logins: Mapping[str, frozenset[str]]) -> None:
    """Grants the roles to the logins without inheritance: a session has one role at a time."""
    quote = connection.dialect.identifier_preparer.quote
    for member, roles in sorted(logins.items()):
        for role in sorted(roles - {member}):
            connection.execute(text(f"GRANT {role} TO {quote(member)} WITH INHERIT FALSE, SET TRUE"))
    connection.commit()


def _first_tenant(database: Database, api_key: str | None, *, another_key: bool) -> BootstrapResult:
    store = AdministrationStore(database)
    try:
        store.tenant(DEFAULT_TENANT_ID)
    except NotFound:
        store.add_tenant(DEFAULT_TENANT_NAME, tenant_id=DEFAULT_TENANT_ID)
    if not another_key and store.keys(DEFAULT_TENANT_ID, page_size=1, page_token=None).items:
        return BootstrapResult(tenant_id=DEFAULT_TENANT_ID, api_key=None)
    new = NewKey(name="operator", scopes=tuple(OPERATOR_SCOPES))
    key = store.add_key(DEFAULT_TENANT_ID, new, api_key=api_key)
    return BootstrapResult(tenant_id=DEFAULT_TENANT_ID, api_key=key.api_key)
