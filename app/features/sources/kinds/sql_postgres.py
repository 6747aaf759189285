"""PostgreSQL as a kind of database of sources: rows as `row_to_json` returns them.

Each statement is sent by itself, so that a query cannot end the transaction, which only reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo
from psycopg.types.string import ByteaBinaryLoader

from app.features.sources.kinds.sql_dialect import (
    PRECISION_MAX,
    DatabaseAccess,
    DatabaseOutOfReach,
    Line,
    RowsOrigin,
    StatementRefused,
    decimal_type,
    number,
)
from app.infra.outbound.bounds import ReplyTooLarge
from app.infra.outbound.connector import CONNECT_SECONDS_MAX
from app.infra.outbound.foreign import foreign_text
from app.kernel.format.schema.types import Form, foreign_types

_ROW: Final = sql.SQL("row_to_json(source)::text")


class _Session:
    """See `Session`."""

    def __init__(self, connection: psycopg.Connection[Any], relation: RowsOrigin) -> None:
        self._connection = connection
        self._relation = relation
        self._watermark = sql.Identifier("source", relation.watermark or "")

    def columns(self) -> Mapping[str, str | None]:
        """See `Session.columns`."""
        return {column.name: _type(column) for column in self._columns}

    @cached_property
    def _columns(self) -> Sequence[psycopg.Column]:
        query = sql.SQL("SELECT source.* {} LIMIT 0").format(self._from()).as_bytes(self._connection)
        # In binary form, a statement is sent by itself, too.
        return self._connection.cursor(binary=True).execute(query).description or ()

    def count_after(self, since: str | None, limit: int | None) -> int:
        """See `Session.count_after`."""
        if limit is None:
            return number(self._one(sql.SQL("SELECT count(*)::text {}").format(self._after(since)), since))
        return number(self._one(_count_to(limit, self._after(since)), since))

    def count_without_watermark(self, limit: int) -> int:
        """See `Session.count_without_watermark`."""
        rows = sql.SQL("{} WHERE {} IS NULL").format(self._from(), self._watermark)
        return number(self._one(_count_to(limit, rows), None))

    def rows_after(self, since: str | None, count: int) -> Iterator[Line]:
        """See `Session.rows_after`."""
        self._check_watermark()
        query = sql.SQL("SELECT {}, {}::text {} ORDER BY {} FETCH FIRST {} ROWS WITH TIES").format(
            _ROW, self._watermark, self._after(since, self._rows()), self._watermark, count
        )
        for text, value in self._texts(query, since, columns=2):
            yield text + b"\n", value.decode()

    def rows(self) -> Iterator[Line]:
        """See `Session.rows`."""
        query = sql.SQL("SELECT {} {}").format(_ROW, self._rows())
        for (text,) in self._texts(query, None, columns=1):
            yield text + b"\n", None

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

    def _rows(self) -> sql.Composable:
        """As `_from`, with columns whose JSON is that of their type."""
        if not any(column.type_code in _AS_JSON for column in self._columns):
            return self._from()
        values = (
            sql.SQL(_AS_JSON.get(column.type_code, "{}") + " AS {}").format(
                sql.Identifier("source", column.name), sql.Identifier(column.name)
            )
            for column in self._columns
        )
        return sql.SQL("FROM (SELECT {} {}) AS source").format(sql.SQL(", ").join(values), self._from())

    def _check_watermark(self) -> None:
        """Raises StatementRefused for bytes: their texts have another order."""
        name = self._relation.watermark
        if any((column.name, column.type_code) == (name, _BYTEA) for column in self._columns):
            raise StatementRefused(
                f"the column {name!r} of type bytea cannot be the watermark; expected numbers, times or a text"
            )

    def _after(self, since: str | None, rows: sql.Composable | None = None) -> sql.Composable:
        rows = self._from() if rows is None else rows
        if since is None:
            return sql.SQL("{} WHERE {} IS NOT NULL").format(rows, self._watermark)
        return sql.SQL("{} WHERE {} > %(watermark)s").format(rows, self._watermark)

    def _one(self, query: sql.Composable, since: str | None) -> str:
        rows = self._texts(query, since, columns=1)
        row = next(rows, None)
        if row is None or next(rows, None) is not None:
            raise StatementRefused("the database does not return one row where one is expected")
        return row[0].decode()

    def _texts(
        self, query: sql.Composable, since: str | None, *, columns: int
    ) -> Iterator[tuple[bytes, ...]]:
        """The rows of a statement as they arrive, of this number of texts."""
        parameters = None if since is None else {"watermark": since}
        for row in self._connection.cursor().stream(self._literal(query, since), parameters, binary=True):
            if len(row) != columns or not all(isinstance(value, bytes) for value in row):
                raise StatementRefused(f"the database returns a row that is not of {columns} texts")
            yield row

    def _literal(self, query: sql.Composable, since: str | None) -> bytes:
        """The text of a statement. Without parameters, psycopg leaves the signs `%` of a user's query alone."""
        text = query.as_bytes(self._connection)
        if since is None:
            return text
        before, place, after = text.rpartition(b"%(watermark)s")
        return before.replace(b"%", b"%%") + place + after.replace(b"%", b"%%")


@contextmanager
def open_postgres(access: DatabaseAccess, origin: RowsOrigin) -> Iterator[_Session]:
    """See `OpenSession`."""
    try:
        connection = psycopg.connect(make_conninfo(**_stated(access)))
        # Texts in binary form are their bytes.
        connection.adapters.register_loader("text", ByteaBinaryLoader)
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
        yield _Session(connection, origin)
    except psycopg.errors.QueryCanceled as error:
        raise TimeoutError(_text(error)) from error
    except (psycopg.ProgrammingError, psycopg.DataError, psycopg.errors.ReadOnlySqlTransaction) as error:
        raise StatementRefused(_text(error)) from error
    except psycopg.Error as error:
        # libpq has no code for the lack of memory for a reply.
        if error.sqlstate is None and "memory" in str(error):
            raise ReplyTooLarge(_text(error)) from error
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
        "client_encoding": "UTF8",
        "connect_timeout": str(int(CONNECT_SECONDS_MAX)),
        # No ticket of Kerberos is used, and no other method that does not need the password.
        "gssencmode": "disable",
        "require_auth": "none,password,md5,scram-sha-256",
    }
    if access.plain:
        return {**parameters, "sslmode": "prefer"}
    return {**parameters, "sslmode": "verify-full", "sslrootcert": "system"}


def _count_to(limit: int, rows: sql.Composable) -> sql.Composable:
    return sql.SQL("SELECT count(*)::text FROM (SELECT 1 {} LIMIT {}) AS found").format(rows, limit)


def _text(error: psycopg.Error) -> str:
    return foreign_text(str(error).partition("\n")[0])


def _type(column: psycopg.Column) -> str | None:
    if column.type_code == _NUMERIC and column.precision is not None and column.scale is not None:
        # Postgres admits negative scales, and scales above the precision.
        if 0 <= column.scale <= column.precision <= PRECISION_MAX:
            return decimal_type(column.precision, column.scale)
        return None
    return _TYPES.get(column.type_code)


_NUMERIC: Final = 1700
_OID: Final = 26
_BYTEA: Final = 17
# The names in the table of types, by the numbers of Postgres's own types, which never change; see pg_type.dat.
_NAMES: Final = {
    16: "boolean",
    _BYTEA: "bytea",
    18: '"char"',
    19: "name",
    20: "bigint",
    21: "smallint",
    23: "integer",
    25: "text",
    _OID: "oid",
    650: "cidr",
    700: "real",
    701: "double precision",
    790: "money",
    829: "macaddr",
    869: "inet",
    1042: "char",
    1043: "varchar",
    1082: "date",
    1083: "time",
    1114: "timestamp",
    1184: "timestamptz",
    1186: "interval",
    1266: "timetz",
    2950: "uuid",
}
_TABLE: Final = foreign_types(Form.POSTGRES)
_TYPES: Final = {number: _TABLE[name] for number, name in _NAMES.items()}
# Numbers of type oid would be texts, and bytes hexadecimal digits.
_AS_JSON: Final = {_OID: "{}::int8", _BYTEA: "translate(encode({}, 'base64'), E'\\n', '')"}
