"""The rows of all tables, out of a database and into one: for backups.

The third module beside `session` that connects to Postgres: a backup is of all tenants, and a restore begins before
there are any. Rows are read by the roles of the service, under row level security, so that the owner of the schema
needs no rights beyond those of `headwater init`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, Final, LiteralString

import msgspec
import psycopg
from psycopg import sql
from psycopg.errors import InsufficientPrivilege

from app.infra.db.deletion_hold import HOLD_LOCK
from app.infra.db.session import ADMINISTRATOR_ROLE, APPLICATION_ROLE, RELAY_ROLE

# Values have the same texts whatever the settings of the server and of the login.
_TEXTS: Final = (
    "-c datestyle=ISO -c intervalstyle=postgres -c timezone=UTC -c extra_float_digits=1 -c bytea_output=hex "
    "-c client_encoding=UTF8 -c standard_conforming_strings=on"
)
# So that a firewall does not drop the connection while the storage is copied, and its end is noticed.
_KEEPALIVE_SECONDS: Final = 60
_CONNECT_SECONDS: Final = 10
# A restore needs the tables for itself.
_LOCK_TIMEOUT: Final = "10s"
# Processes that check the hold have it for a moment; another backup has it for long.
_HOLD_SECONDS_MAX: Final = 5.0
# More than the attempts of a job between a backup and the loss of its database.
EPOCHS_SKIPPED: Final = 1_000_000

_POLICIES: Final = """
    SELECT tablename::text AS name, role::text, qual, permissive = 'PERMISSIVE' AS permissive
    FROM pg_policies, unnest(roles) AS role
    WHERE schemaname = 'public' AND cmd IN ('ALL', 'SELECT') AND role = ANY(%s)
"""
_MAY_READ: Final = "SELECT has_table_privilege(%s, %s::regclass, 'SELECT')"
# Without those of which no number was used.
_SEQUENCES: Final = """
    SELECT c.relname::text, a.attname::text, s.last_value
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
    JOIN pg_sequences s ON to_regclass(format('%I.%I', s.schemaname, s.sequencename))
        = pg_get_serial_sequence(quote_ident(c.relname), a.attname)::regclass
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attidentity <> ''
          AND s.last_value IS NOT NULL ORDER BY 1, 2
"""
_TABLES: Final = """
    SELECT relname::text FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND relname <> 'alembic_version' ORDER BY 1
"""
_AS_TENANT: Final = "SELECT set_config('headwater.tenant_id', %s, true)"
_IN_THE_SCHEMA: Final = "SELECT to_regclass('public.alembic_version') IS NOT NULL"


class CopyFailed(Exception):
    """The database refuses. The message is the server's, or states what is wrong, without a password."""


class TableHasRows(CopyFailed):
    """Rows cannot be loaded into a table that has some."""


class SequencePosition(msgspec.Struct, frozen=True, kw_only=True):
    """The last number of the sequence of an identity column."""

    table: str
    column: str
    last: int


class Snapshot:
    """All committed rows at one moment."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection
        self._whole: dict[str, str] = {}
        self._by_tenant: set[str] = set()

    def begin(self) -> datetime:
        """Takes the snapshot; returns its time. Raises CopyFailed on a standby: files are not held there."""
        [(at, standby)] = self._rows("SELECT now(), pg_is_in_recovery()")
        if standby:
            raise CopyFailed(
                "the server is a standby: back up its primary, so that no file is deleted meanwhile"
            )
        self._find_readers()
        moment: datetime = at
        return moment

    def revision(self) -> str:
        """The last migration; empty without one."""
        if not self._rows(_IN_THE_SCHEMA)[0][0]:
            return ""
        return "".join(row[0] for row in self._rows("SELECT version_num FROM alembic_version"))

    def tables(self) -> list[str]:
        """The tables with rows of the service."""
        return [row[0] for row in self._rows(_TABLES)]

    def sequences(self) -> list[SequencePosition]:
        """The positions of all sequences, at this moment or later."""
        return [
            SequencePosition(table=table, column=column, last=last)
            for table, column, last in self._rows(_SEQUENCES)
        ]

    def tenants(self) -> list[str]:
        """Ids of all tenants, also of deleted ones."""
        self._act_as(ADMINISTRATOR_ROLE)
        tenant_ids = [str(row[0]) for row in self._rows("SELECT tenant_id FROM tenants ORDER BY 1")]
        self._act_as(None)
        return tenant_ids

    def copy_out(
        self, table: str, columns: Sequence[str], tenants: Iterable[str], write: Callable[[bytes], Any]
    ) -> int:
        """Writes the rows of a table in the text format of COPY; returns their number."""
        statement = sql.SQL("COPY {} ({}) TO STDOUT").format(sql.Identifier(table), _names(columns))
        if role := self._whole.get(table):
            self._act_as(role)
            rows = self._copy(statement, write)
        elif table in self._by_tenant:
            self._act_as(APPLICATION_ROLE)
            rows = 0
            for tenant_id in tenants:
                self._connection.execute(_AS_TENANT, [tenant_id])
                rows += self._copy(statement, write)
        else:
            raise CopyFailed(f"no role of the service may read all rows of the table {table}")
        self._act_as(None)
        return rows

    def _copy(self, statement: sql.Composed, write: Callable[[bytes], Any]) -> int:
        with self._connection.cursor() as cursor:
            with cursor.copy(statement) as copy:
                for block in copy:
                    write(bytes(block))
            return cursor.rowcount

    def _find_readers(self) -> None:
        """Which role reads a table: one whose policy shows all rows, or that of the tenants, tenant by tenant."""
        policies = self._rows(_POLICIES, [[APPLICATION_ROLE, RELAY_ROLE, ADMINISTRATOR_ROLE]])
        restrictive_tables = {name for name, _, _, permissive in policies if not permissive}
        for name, role, condition, _ in policies:
            if name in restrictive_tables:
                continue
            if role == APPLICATION_ROLE and "headwater.tenant_id" in (condition or ""):
                self._by_tenant.add(name)
            elif condition == "true" and self._rows(_MAY_READ, [role, name])[0][0]:
                self._whole[name] = role

    def _act_as(self, role: str | None) -> None:
        name = sql.Identifier(role) if role else sql.SQL("NONE")
        self._connection.execute(sql.SQL("SET LOCAL ROLE {}").format(name))

    def _rows(self, query: LiteralString, values: Sequence[Any] = ()) -> list[Any]:
        return self._connection.execute(query, values or None).fetchall()


class Load:
    """A transaction that fills empty tables: all of them, or none."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def begin(self, tables: Collection[str], seeds: Collection[str]) -> None:
        """Locks the tables, and lets the owner write them. Raises TableHasRows, CopyFailed if one is missing.

        `seeds`: tables that migrations fill. Their rows are removed.
        """
        self._protect(tables, "NO FORCE")
        for table in sorted(set(tables) & set(seeds)):
            self._connection.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))
        for table in sorted(tables):
            query = sql.SQL("SELECT EXISTS (SELECT FROM {})").format(sql.Identifier(table))
            if self._connection.execute(query).fetchall() != [(False,)]:
                raise TableHasRows(
                    f"the database is not empty: its table {table} has rows. Restore into a new database"
                )

    def copy_in(self, table: str, columns: Sequence[str], blocks: Iterable[bytes]) -> int:
        """Adds rows in the text format of COPY; returns their number."""
        statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table), _names(columns))
        with self._connection.cursor() as cursor:
            with cursor.copy(statement) as copy:
                for block in blocks:
                    copy.write(block)
            return cursor.rowcount

    def continue_sequences(self, positions: Iterable[SequencePosition]) -> None:
        """Later rows get numbers after these."""
        for position in positions:
            self._connection.execute(
                "SELECT setval(pg_get_serial_sequence(quote_ident(%s), %s), %s)",
                [position.table, position.column, position.last],
            )

    def skip_epochs(self) -> None:
        """Later attempts at unfinished jobs write files under names that no lost attempt has used."""
        self._connection.execute(
            "UPDATE jobs SET epoch = epoch + %s WHERE state IN ('queued', 'running')", [EPOCHS_SKIPPED]
        )

    def end(self, tables: Collection[str]) -> None:
        """Checks all references between rows; row level security counts for the owner again."""
        self._connection.execute("SET CONSTRAINTS ALL IMMEDIATE")
        self._protect(tables, "FORCE")

    def _protect(self, tables: Collection[str], how: LiteralString) -> None:
        for table in sorted(tables):
            statement = sql.SQL("ALTER TABLE {} " + how + " ROW LEVEL SECURITY").format(sql.Identifier(table))
            self._connection.execute(statement)


class DeletionHold:
    """Keeps all files of the storage that the database refers to since it began."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self._connection = connection

    def check(self) -> None:
        """Raises CopyFailed if the connection, and so the hold, was lost."""
        try:
            self._connection.execute("SELECT 1")
        except psycopg.Error as error:
            raise CopyFailed(
                f"the connection was lost meanwhile, so files may have been deleted: {_reason(error)}"
            ) from error


@contextmanager
def deletion_hold(url: str, *, seconds_max: float = _HOLD_SECONDS_MAX) -> Iterator[DeletionHold]:
    """Until the context is left, no process deletes files. `url`: postgresql://… of any login.

    Raises CopyFailed if another backup still runs after `seconds_max`.
    """
    with _connected(url, autocommit=True) as connection:
        milliseconds = sql.Literal(round(seconds_max * 1000))
        connection.execute(sql.SQL("SET lock_timeout = {}").format(milliseconds))
        try:
            connection.execute("SELECT pg_advisory_lock(%s)", [HOLD_LOCK])
        except psycopg.errors.LockNotAvailable as error:
            raise CopyFailed("another backup runs") from error
        try:
            yield DeletionHold(connection)
        finally:
            # At once: a session that is closed ends a moment later.
            with suppress(psycopg.Error):
                connection.execute("SELECT pg_advisory_unlock(%s)", [HOLD_LOCK])


@contextmanager
def snapshot(url: str) -> Iterator[Snapshot]:
    """A snapshot of all rows. `url`: postgresql://… of the schema's owner. Raises CopyFailed."""
    with _connected(url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        yield Snapshot(connection)


@contextmanager
def load(url: str) -> Iterator[Load]:
    """A transaction that is committed when the context is left without an exception. `url`: of the schema's owner.

    Raises CopyFailed.
    """
    with _connected(url) as connection:
        connection.execute(sql.SQL("SET LOCAL lock_timeout = {}").format(sql.Literal(_LOCK_TIMEOUT)))
        yield Load(connection)
        connection.commit()
        # Plans of the first queries need statistics.
        connection.autocommit = True
        connection.execute("ANALYZE")


@contextmanager
def _connected(url: str, *, autocommit: bool = False) -> Iterator[psycopg.Connection]:
    try:
        connection = psycopg.connect(
            url,
            autocommit=autocommit,
            connect_timeout=_CONNECT_SECONDS,
            application_name="headwater backup",
            options=_TEXTS,
            keepalives_idle=_KEEPALIVE_SECONDS,
        )
        try:
            yield connection
        finally:
            connection.close()
    except psycopg.Error as error:
        raise CopyFailed(_reason(error)) from error


def _names(columns: Sequence[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))


def _reason(error: psycopg.Error) -> str:
    lines = str(error).strip().splitlines()
    reason = lines[0] if lines else type(error).__name__
    if isinstance(error, InsufficientPrivilege):
        return f"{reason}: connect as the owner of the schema, with HEADWATER_MIGRATION_DATABASE_URL"
    return reason
