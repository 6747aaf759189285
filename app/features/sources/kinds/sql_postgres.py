"""PostgreSQL as a kind of database of sources: rows as `row_to_json` returns them.

Each statement is sent by itself, so that a query cannot end the transaction, which only reads.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import Any, Final

import psycopg
from psycopg import sql

from app.features.sources.kinds.sql_dialect import (
    DatabaseAccess,
    DatabaseOutOfReach,
    Dialect,
    Line,
    RowsOrigin,
    StatementRefused,
    number,
)
from app.infra.outbound.bounded_postgres import BoundedConnection, connected
from app.infra.outbound.bounds import Bounds
from app.infra.outbound.connector import CONNECT_SECONDS_MAX
from app.infra.outbound.foreign import foreign_text
from app.kernel.format.schema.types import Decimal

# While a row is waited for, rows after it arrive: libpq fills its buffer, which is up to twice as large as the largest
# row, and the system the window of the socket.
_BUFFER_FACTOR: Final = 2
_AHEAD_BYTES: Final = 4 * 1024 * 1024
_ROW: Final = sql.SQL("row_to_json(source)::text")
_PRECISION_MAX: Final = 38


class _Session:
    """See `Session`."""

    def __init__(self, connection: BoundedConnection, relation: RowsOrigin) -> None:
        self._connection = connection
        self._relation = relation
        self._watermark = sql.Identifier("source", relation.watermark or "")

    def columns(self) -> Mapping[str, str | None]:
        """See `Session.columns`."""
        query = sql.SQL("SELECT source.* {} LIMIT 0").format(self._from()).as_bytes(self._connection)
        # In binary form, a statement is sent by itself, too.
        cursor = self._connection.cursor(binary=True).execute(query)
        return {column.name: _type(column) for column in cursor.description or ()}

    def count_after(self, since: str | None, limit: int | None) -> int:
        """See `Session.count_after`."""
        if limit is None:
            query = sql.SQL("SELECT count(*)::text {}").format(self._after(since))
        else:
            query = sql.SQL("SELECT count(*)::text FROM (SELECT 1 {} LIMIT {}) AS found").format(
                self._after(since), limit
            )
        return number(self._one(query, since))

    def rows_after(self, since: str | None, count: int) -> Generator[Line]:
        """See `Session.rows_after`."""
        query = sql.SQL("SELECT {}, {}::text {} ORDER BY {} FETCH FIRST {} ROWS WITH TIES").format(
            _ROW, self._watermark, self._after(since), self._watermark, count
        )
        with closing(self._texts(query, since, columns=2)) as rows:
            for text, value in rows:
                yield text.encode() + b"\n", value

    def rows(self) -> Generator[Line]:
        """See `Session.rows`."""
        query = sql.SQL("SELECT {} {}").format(_ROW, self._from())
        with closing(self._texts(query, None, columns=1)) as rows:
            for (text,) in rows:
                yield text.encode() + b"\n", None

    def digest(self) -> str:
        """See `Session.digest`."""
        query = sql.SQL(
            "SELECT count(*) || '-' || coalesce(sum(hashtextextended(source::text, 0)::numeric), 0) {}"
        ).format(self._from())
        return self._one(query, None)

    def _from(self) -> sql.Composable:
        """The rows, under the name `source`."""
        if self._relation.table is not None:
            return sql.SQL("FROM {} AS source").format(sql.Identifier(*self._relation.table.split(".")))
        # It is a query of the user's own database, with the user's own account.
        return sql.SQL("FROM ({}) AS source").format(sql.SQL(self._relation.subquery()))

    def _after(self, since: str | None) -> sql.Composable:
        if since is None:
            return sql.SQL("{} WHERE {} IS NOT NULL").format(self._from(), self._watermark)
        return sql.SQL("{} WHERE {} > %(watermark)s").format(self._from(), self._watermark)

    def _one(self, query: sql.Composable, since: str | None) -> str:
        with closing(self._texts(query, since, columns=1)) as rows:
            for row in rows:
                text: str = row[0]
                if next(rows, None) is None:
                    return text
                break
        raise StatementRefused("the database does not return one row where one is expected")

    def _texts(self, query: sql.Composable, since: str | None, *, columns: int) -> Generator[tuple[Any, ...]]:
        """The rows of a statement as they arrive, of this number of texts. One that is not read to its end closes the
        connection.
        """
        parameters = None if since is None else {"watermark": since}
        rows = self._connection.cursor().stream(self._literal(query, since), parameters)
        try:
            for row in rows:
                if len(row) != columns or not all(isinstance(value, str) for value in row):
                    raise StatementRefused(f"the database returns a row that is not of {columns} texts")
                yield row
        except (GeneratorExit, StatementRefused):
            self._connection.close()
            raise

    def _literal(self, query: sql.Composable, since: str | None) -> bytes:
        """The text of a statement. Without parameters, psycopg leaves the signs `%` of a user's query alone."""
        text = query.as_bytes(self._connection)
        if since is None:
            return text
        before, place, after = text.rpartition(b"%(watermark)s")
        return before.replace(b"%", b"%%") + place + after.replace(b"%", b"%%")


@contextmanager
def _session(access: DatabaseAccess, relation: RowsOrigin, bounds: Bounds) -> Iterator[_Session]:
    try:
        with connected(_stated(access), bounds, CONNECT_SECONDS_MAX) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            yield _Session(connection, relation)
    except psycopg.errors.QueryCanceled as error:
        raise TimeoutError(_text(error)) from error
    except (psycopg.ProgrammingError, psycopg.DataError, psycopg.errors.ReadOnlySqlTransaction) as error:
        raise StatementRefused(_text(error)) from error
    except psycopg.Error as error:
        raise DatabaseOutOfReach(_text(error)) from error


def _stated(access: DatabaseAccess) -> dict[str, str]:
    """The parameters of libpq."""
    parameters = {
        "host": access.host,
        "hostaddr": access.address,
        "port": str(access.port),
        "user": access.user,
        "password": access.password,
        "dbname": access.database,
        "options": f"-c statement_timeout={int(access.seconds * 1000)} -c timezone=UTC",
        "application_name": "headwater source",
    }
    if access.plain:
        return {**parameters, "sslmode": "prefer"}
    return {**parameters, "sslmode": "verify-full", "sslrootcert": "system"}


def _text(error: psycopg.Error) -> str:
    return foreign_text(str(error).partition("\n")[0])


def _type(column: psycopg.Column) -> str | None:
    if column.type_code == _NUMERIC and column.precision is not None and column.scale is not None:
        # Postgres admits negative scales, and scales above the precision.
        if 0 <= column.scale <= column.precision <= _PRECISION_MAX:
            return str(Decimal(column.precision, column.scale))
        return None
    return _TYPES.get(column.type_code)


def _buffered_bytes(row_bytes: int) -> int:
    return _BUFFER_FACTOR * row_bytes + _AHEAD_BYTES


_NUMERIC: Final = 1700
# By the numbers of Postgres's own types, which never change; see pg_type.dat.
_TYPES: Final = {
    16: "boolean",
    21: "int16",
    23: "int32",
    20: "int64",
    26: "int64",
    700: "float",
    701: "double",
    1082: "date",
    1114: "timestamp_ntz",
    1184: "timestamp",
    # bytea, "char", name, text, money, bpchar, varchar, time, timetz, interval, uuid, cidr, inet, macaddr
    **dict.fromkeys((17, 18, 19, 25, 790, 1042, 1043, 1083, 1266, 1186, 2950, 650, 869, 829), "string"),
}

POSTGRES: Final = Dialect(scheme="postgresql", port=5432, session=_session, buffered_bytes=_buffered_bytes)
"""See the module."""
