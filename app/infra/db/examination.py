"""What a database is like before anything uses it: its server, its schema, and the logins of the deployment.

The only module beside `session` that connects to Postgres: a session needs roles that may be missing here.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
from sqlalchemy import Connection, bindparam, create_engine, make_url, text
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import NullPool

_CONNECT_SECONDS: Final = 5
_STATEMENT_MILLISECONDS: Final = 5_000
_VERSION_STEP: Final = 10_000

_LOGIN: Final = text(
    "SELECT r.rolname AS name, r.rolsuper AS superuser, r.rolbypassrls AS bypasses, "
    "(SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    " WHERE n.nspname = 'public' AND c.relkind = 'r' AND c.relowner = r.oid) AS owned "
    "FROM pg_roles r WHERE r.rolname = session_user"
)
# A role that does not exist is one that the login may not take.
_MAY_TAKE: Final = text(
    "SELECT rolname FROM pg_roles WHERE rolname IN :roles AND pg_has_role(session_user, oid, 'SET')"
).bindparams(bindparam("roles", expanding=True))
_UNPROTECTED: Final = text(
    "SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped "
    "WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND NOT (c.relrowsecurity AND c.relforcerowsecurity) "
    "ORDER BY 1"
)
_COLUMNS: Final = text(
    "SELECT c.relname AS name, array_agg(a.attname::text) AS columns FROM pg_class c "
    "JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid "
    "WHERE n.nspname = 'public' AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped GROUP BY 1"
)
_OWNER: Final = text(
    "SELECT r.rolname AS name, current_database() AS database, r.rolsuper OR r.rolcreaterole AS makes_roles, "
    "r.rolsuper OR has_schema_privilege('public', 'CREATE') AS makes_tables "
    "FROM pg_roles r WHERE r.rolname = current_user"
)
_ROLES: Final = text(
    "SELECT rolname AS name, pg_has_role(current_user, oid, 'MEMBER WITH ADMIN OPTION') AS grantable "
    "FROM pg_roles WHERE rolname IN :names"
).bindparams(bindparam("names", expanding=True))
_REVISION: Final = text("SELECT version_num FROM alembic_version")
_REVISION_READABLE: Final = text(
    "SELECT coalesce(has_table_privilege(to_regclass('public.alembic_version'), 'SELECT'), false)"
)


class DatabaseUnreachable(Exception):
    """No connection: the message is the server's, without the password."""


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """The login of a connection. `missing`: the roles of those required that it may not take.

    `own_table_count`: the number of tables of the schema that it owns.
    """

    name: str
    superuser: bool
    bypasses_row_security: bool
    own_table_count: int
    missing: tuple[str, ...]


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """The login of a connection as the owner of a schema: what it may make, and which of some roles it may grant.

    `grantable`: by role that exists. `database`: the name of the database.
    """

    name: str
    database: str
    makes_roles: bool
    makes_tables: bool
    grantable: dict[str, bool]


class Examination:
    """One open connection to a database, with what can be read about it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def server_version(self) -> str:
        """The version of the server, as it states it: `18.1`."""
        return str(self._connection.execute(text("SHOW server_version")).scalar_one()).split()[0]

    def server_major(self) -> int:
        """The major version of the server."""
        number = self._connection.execute(text("SHOW server_version_num")).scalar_one()
        return int(number) // _VERSION_STEP

    def clock_ahead(self) -> timedelta:
        """How far the clock of the server is ahead of that of this process."""
        began = time.monotonic()
        here = datetime.now(UTC)
        there = self._connection.execute(text("SELECT clock_timestamp()")).scalar_one()
        # The answer was made in the middle of the round trip, as far as one can know.
        ahead: timedelta = there - here - timedelta(seconds=time.monotonic() - began) / 2
        return ahead

    def login(self, roles: Collection[str]) -> Login:
        """The login of the connection. `roles`: those that it must be able to take."""
        row = self._connection.execute(_LOGIN).one()
        available_roles = set(self._connection.execute(_MAY_TAKE, {"roles": list(roles)}).scalars())
        return Login(
            name=row.name,
            superuser=row.superuser,
            bypasses_row_security=row.bypasses,
            own_table_count=row.owned,
            missing=tuple(sorted(set(roles) - available_roles)),
        )

    def owner(self, roles: Collection[str]) -> Owner:
        """The rights of the login to make the schema. `roles`: names of roles and logins, which may be missing."""
        row = self._connection.execute(_OWNER).one()
        return Owner(
            name=row.name,
            database=row.database,
            makes_roles=row.makes_roles,
            makes_tables=row.makes_tables,
            grantable={
                role.name: role.grantable
                for role in self._connection.execute(_ROLES, {"names": sorted(roles)})
            },
        )

    def tables_without_row_security(self) -> list[str]:
        """The tables with rows of tenants for which row level security is not forced."""
        return list(self._connection.execute(_UNPROTECTED).scalars())

    def revision(self) -> str | None:
        """The last migration, `""` before the first; None if the login may not read it."""
        if (
            self._connection.execute(text("SELECT to_regclass('public.alembic_version')")).scalar_one()
            is None
        ):
            return ""
        if not self._connection.execute(_REVISION_READABLE).scalar_one():
            return None
        return str(self._connection.execute(_REVISION).scalar() or "")

    def missing(self, required_columns: Mapping[str, Collection[str]]) -> list[str]:
        """The tables and columns of those expected that the schema lacks, as `table` and `table.column`."""
        actual_columns = {row.name: set(row.columns) for row in self._connection.execute(_COLUMNS)}
        lacking = [table for table in required_columns if table not in actual_columns]
        for table, columns in required_columns.items():
            if table in actual_columns:
                lacking += [f"{table}.{column}" for column in columns if column not in actual_columns[table]]
        return sorted(lacking)


@contextmanager
def examination(url: str) -> Iterator[Examination]:
    """A connection that lasts for a few seconds. `url`: postgresql://… of any login.

    Raises DatabaseUnreachable, also if a statement fails.
    """
    engine = create_engine(
        make_url(url).set(drivername="postgresql+psycopg"),
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT",
        connect_args={
            "connect_timeout": _CONNECT_SECONDS,
            "options": f"-c statement_timeout={_STATEMENT_MILLISECONDS}",
            "application_name": "headwater doctor",
        },
    )
    try:
        with engine.connect() as connection:
            yield Examination(connection)
    except SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).strip().splitlines()
        raise DatabaseUnreachable(reason[0] if reason else type(error).__name__) from error
