"""MySQL and MariaDB as kinds of databases of sources: rows as the text protocol returns them, in UTF-8.

A watermark is compared as a literal of the type of its column, so that an index is used and no digit is lost. Texts are
compared by their bytes: under most collations, different texts are equal. Literals of texts are in hexadecimal, whose
meaning no setting of the server changes.
"""

from __future__ import annotations

import base64
import re
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from threading import Timer
from typing import Final

import msgspec
from pymysql import err
from pymysql.connections import Connection
from pymysql.constants import FIELD_TYPE, FLAG
from pymysql.cursors import SSCursor
from pymysql.protocol import FieldDescriptorPacket

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
from app.infra.outbound.connector import CONNECT_SECONDS_MAX
from app.infra.outbound.foreign import foreign_text
from app.kernel.format.schema.types import Form, foreign_types

_BITS_MAX: Final = 63
_BIT_BYTES_MAX: Final = 8
_BINARY_CHARSET: Final = 63
_TIMED_OUT: Final = frozenset({1969, 3024})
# Errors that pass: too many connections, locks, a server that ends or has no memory or space, a killed query.
_PASSING: Final = frozenset(
    {1021, 1037, 1038, 1040, 1041, 1053, 1105, 1114, 1159, 1161, 1203, 1205, 1206, 1213, 1226, 1317, 3168}
)

Encode = Callable[[bytes], bytes]
Row = tuple[bytes | None, ...]
"""The values of a row as the server has sent them: text, or the bytes of binary columns."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Column:
    """A column of a result. `encode`: writes its values as JSON. `literal`: writes a watermark as SQL; None for a
    column that cannot be one. `order`: what orders the column by. `type_`: None for nulls alone.
    """

    name: str
    type_: str | None
    encode: Encode
    literal: Callable[[str], str] | None = None
    order: Callable[[str], str] = str

    @property
    def key(self) -> bytes:
        return msgspec.json.encode(self.name) + b":"


class _Session:
    """See `Session`."""

    def __init__(self, connection: Connection, relation: RowsOrigin) -> None:
        self._connection = connection
        self._relation = relation

    def columns(self) -> Mapping[str, str | None]:
        """See `Session.columns`."""
        return {column.name: column.type_ for column in self._columns}

    def count_after(self, since: str | None, limit: int | None) -> int:
        """See `Session.count_after`."""
        if limit is None:
            return number(self._one(f"SELECT COUNT(*) {self._after(since)}"))
        return number(self._one(_count_to(limit, self._after(since))))

    def count_without_watermark(self, limit: int) -> int:
        """See `Session.count_without_watermark`."""
        _, column = self._watermark
        return number(self._one(_count_to(limit, f"{self._from()} WHERE {self._name(column.name)} IS NULL")))

    def rows_after(self, since: str | None, count: int) -> Iterator[Line]:
        """See `Session.rows_after`. MySQL has no `WITH TIES`: the last watermark is found first."""
        place, column = self._watermark
        order, after = column.order(self._name(column.name)), self._after(since)
        name = self._name(column.name)
        watermark_rows = self._all(
            f"SELECT {name} {after} ORDER BY {order} LIMIT 1 OFFSET {count - 1}", columns=1
        )
        if watermark_rows:
            after += f" AND {order} <= {_literal(column, _text(watermark_rows[0][0]))}"
        for line, row in self._lines(f"SELECT source.* {after} ORDER BY {order}"):
            yield line, _text(row[place])

    def rows(self) -> Iterator[Line]:
        """See `Session.rows`."""
        for line, _ in self._lines(f"SELECT source.* {self._from()}"):
            yield line, None

    def digest(self) -> str:
        """See `Session.digest`."""
        # A hash for each value: together, the values of a row may have more bytes than a function may take.
        values = (
            f"COALESCE(MD5(CAST({self._name(column.name)} AS BINARY)), '-')" for column in self._columns
        )
        row = f"MD5(CONCAT_WS('.', {', '.join(values)}))"
        total = f"SUM(CAST(CONV(SUBSTRING({row}, 1, 15), 16, 10) AS UNSIGNED))"
        return self._one(f"SELECT CONCAT(COUNT(*), '-', COALESCE({total}, 0)) {self._from()}")

    @cached_property
    def _columns(self) -> Sequence[_Column]:
        cursor = _executed(self._connection, f"SELECT source.* {self._from()} LIMIT 0")
        # The description of DB-API has neither the flags nor the set of characters.
        fields = getattr(cursor._result, "fields", None)
        if not fields:
            raise StatementRefused("the database describes no columns")
        while cursor.fetchone() is not None:
            pass
        return [_column(field) for field in fields]

    @cached_property
    def _watermark(self) -> tuple[int, _Column]:
        """The number of the column, and the column. Raises StatementRefused."""
        name = (self._relation.watermark or "").lower()
        for place, column in enumerate(self._columns):
            if column.name.lower() == name:
                if column.literal is None:
                    raise StatementRefused(
                        f"a column of type {column.type_} of this database cannot be the watermark; expected whole "
                        "numbers, DECIMAL, DOUBLE, DATE, DATETIME, TIMESTAMP or a text"
                    )
                return place, column
        raise StatementRefused(f"there is no column {self._relation.watermark!r}, the watermark")

    def _from(self) -> str:
        if self._relation.table is not None:
            return f"FROM {'.'.join(map(_quoted, self._relation.table.split('.')))} AS source"
        # It is a query of the user's own database, with the user's own account.
        return f"FROM ({self._relation.subquery()}) AS source"

    def _after(self, since: str | None) -> str:
        _, column = self._watermark
        name = self._name(column.name)
        if since is None:
            return f"{self._from()} WHERE {name} IS NOT NULL"
        return f"{self._from()} WHERE {column.order(name)} > {_literal(column, since)}"

    def _name(self, column: str) -> str:
        return f"source.{_quoted(column)}"

    def _lines(self, statement: str) -> Iterator[tuple[bytes, Row]]:
        keys = [column.key for column in self._columns]
        encoders = [column.encode for column in self._columns]
        for row in self._rows(statement, len(keys)):
            values = (
                key + (b"null" if value is None else encode(value))
                for key, encode, value in zip(keys, encoders, row, strict=True)
            )
            yield b"{" + b",".join(values) + b"}\n", row

    def _rows(self, statement: str, columns: int) -> Iterator[Row]:
        cursor = _executed(self._connection, statement)
        while (row := cursor.fetchone()) is not None:
            if len(row) != columns:
                raise StatementRefused(f"the database returns a row that is not of {columns} values")
            yield row

    def _all(self, statement: str, *, columns: int) -> list[Row]:
        """The rows of a statement that returns one at most."""
        rows: list[Row] = []
        for row in self._rows(statement, columns):
            if rows:
                raise StatementRefused("the database returns more rows than one")
            rows.append(row)
        return rows

    def _one(self, statement: str) -> str:
        rows = self._all(statement, columns=1)
        if not rows:
            raise StatementRefused("the database returns no row where one is expected")
        return _text(rows[0][0])


def _count_to(limit: int, rows: str) -> str:
    return f"SELECT COUNT(*) FROM (SELECT 1 {rows} LIMIT {limit}) AS found"


class _LoginRefused:
    """A method of login that would send the password as it is."""

    def __init__(self, connection: Connection) -> None:
        del connection

    def authenticate(self, _packet: object) -> None:
        """Raises DatabaseOutOfReach."""
        raise DatabaseOutOfReach("the server requires a method of login that is not supported")


_LOGINS_REFUSED: Final = dict.fromkeys(
    (b"mysql_clear_password", b"dialog", b"mysql_old_password", b"client_ed25519"), _LoginRefused
)


@contextmanager
def open_mysql(access: DatabaseAccess, origin: RowsOrigin) -> Iterator[_Session]:
    """See `OpenSession`."""
    try:
        connection = _connected(access)
        _begin(connection, access.seconds)
    except (err.MySQLError, OSError) as error:
        raise DatabaseOutOfReach(foreign_text(error.args[-1] if error.args else error)) from error
    try:
        yield _Session(connection, origin)
    except err.MySQLError as error:
        raise _refused(error) from error


def _connected(access: DatabaseAccess) -> Connection:
    connection = Connection(
        host=access.host,
        user=access.user,
        # PyMySQL would encode a text as Latin 1.
        password=access.password.encode(),
        database=access.database,
        charset="utf8mb4",
        autocommit=None,
        use_unicode=False,
        conv={},
        cursorclass=SSCursor,
        auth_plugin_map=_LOGINS_REFUSED,
        # Without one, the connection is encrypted where the server offers it.
        ssl=None if access.plain else ssl.create_default_context(),
        defer_connect=True,
    )
    # Of these, PyMySQL would send its version and the number of the process, too.
    connection._connect_attrs = {"program_name": "headwater source"}
    plain = socket.create_connection((access.address, access.port), CONNECT_SECONDS_MAX)
    # The time for all of the login; PyMySQL has one for each read, that of statements, too.
    with plain.dup() as same:
        timer = Timer(CONNECT_SECONDS_MAX, same.shutdown, (socket.SHUT_RDWR,))
        timer.start()
        connection.connect(plain)
        timer.cancel()
    return connection


def _begin(connection: Connection, seconds: float) -> None:
    """Begins a transaction that only reads, and sees one snapshot, with times in UTC."""
    if "mariadb" in connection.server_version.lower():
        limit = f"max_statement_time = {seconds:.3f}"
    else:
        limit = f"max_execution_time = {int(seconds * 1000)}"
    for statement in (
        f"SET SESSION time_zone = '+00:00', {limit}",
        "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
        "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
    ):
        if _executed(connection, statement).fetchone() is not None:
            raise DatabaseOutOfReach("the server returns rows where none are expected")


def _executed(connection: Connection, statement: str) -> SSCursor:
    cursor = connection.cursor()
    cursor.execute(statement)
    return cursor


# From 2000 on, numbers are those of the client's own errors.
_CLIENT_ERRORS: Final = range(2000, 3000)


def _refused(error: err.MySQLError) -> Exception:
    """The error of a statement, whose code is the server's unless it is one of PyMySQL."""
    code, text = error.args[0] if error.args else 0, foreign_text(error.args[-1] if error.args else error)
    if code in _TIMED_OUT:
        return TimeoutError(text)
    is_refusal = isinstance(code, int) and code >= 1000 and code not in _CLIENT_ERRORS
    return StatementRefused(text) if is_refusal and code not in _PASSING else DatabaseOutOfReach(text)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _text(value: bytes | None) -> str:
    """Raises StatementRefused."""
    try:
        return (value or b"").decode()
    except UnicodeDecodeError:
        raise StatementRefused("the database returns a text that is not UTF-8") from None


def _literal(column: _Column, value: str) -> str:
    """Raises StatementRefused for a watermark that is not of the type of the column."""
    assert column.literal is not None
    try:
        return column.literal(value)
    except ValueError:
        raise StatementRefused(
            f"the watermark {value[:100]!r} is not one of the column {column.name!r}"
        ) from None


def _matched(pattern: str) -> Callable[[str], str]:
    """Returns the text if it matches. Raises ValueError."""
    regex = re.compile(pattern, re.ASCII)

    def check(text: str) -> str:
        if regex.fullmatch(text) is None:
            raise ValueError(text)
        return text

    return check


_WHOLE: Final = _matched(r"-?\d{1,20}")
_DECIMAL: Final = _matched(r"-?\d{1,65}(\.\d{1,38})?")
_DOUBLE: Final = _matched(r"-?\d{1,320}(\.\d{1,320})?(e[+-]?\d{1,3})?")
_MOMENT: Final = _matched(r"\d{4}-\d\d-\d\d( \d\d:\d\d:\d\d(\.\d{1,6})?)?")


def _checked(check: Callable[[str], str]) -> Encode:
    """Writes numbers as they are."""

    def encode(value: bytes) -> bytes:
        try:
            return check(value.decode("ascii")).encode()
        except ValueError:
            raise StatementRefused("the database returns a text where a number is expected") from None

    return encode


def _real(value: bytes) -> bytes:
    text = _checked(_DOUBLE)(value)
    # Digits that the server left out are zeros: without an exponent it would be another whole number.
    return text if b"." in text or b"e" in text else text + b"e0"


def _whole(value: bytes) -> bytes:
    # Numbers with ZEROFILL begin with zeros.
    return b"%d" % int(_checked(_WHOLE)(value))


def _string(value: bytes) -> bytes:
    return msgspec.json.encode(_text(value))


def _utc(value: bytes) -> bytes:
    return msgspec.json.encode(_text(value) + "Z")


def _base64(value: bytes) -> bytes:
    return b'"' + base64.b64encode(value) + b'"'


def _bits(value: bytes) -> bytes:
    if len(value) > _BIT_BYTES_MAX:
        raise StatementRefused("the database returns more bits than a column has")
    return b"%d" % int.from_bytes(value)


def _bit(value: bytes) -> bytes:
    return b"true" if any(value) else b"false"


def _hexadecimal(text: str) -> str:
    return f"x'{text.encode().hex()}'"


def _moment(text: str) -> str:
    return f"TIMESTAMP'{_MOMENT(text)}'"


def _day(text: str) -> str:
    return f"DATE'{_MOMENT(text)}'"


def _double(text: str) -> str:
    literal = _DOUBLE(text)
    return literal if "e" in literal else f"{literal}e0"


def _bytes_of(name: str) -> str:
    return f"CAST(CONVERT({name} USING utf8mb4) AS BINARY)"


def _column(field: FieldDescriptorPacket) -> _Column:
    name, unsigned = str(field.name), bool(field.flags & FLAG.UNSIGNED)
    match field.type_code:
        case code if code in _WHOLE_NAMES:
            type_ = _TYPES[_WHOLE_NAMES[code][unsigned]]
            return _Column(name=name, type_=type_, encode=_whole, literal=_WHOLE)
        case FIELD_TYPE.NEWDECIMAL | FIELD_TYPE.DECIMAL:
            return _Column(name=name, type_=_decimal(field), encode=_checked(_DECIMAL), literal=_DECIMAL)
        case code if code in _OTHERS:
            kind, encode, literal = _OTHERS[code]
            return _Column(name=name, type_=_TYPES[kind], encode=encode, literal=literal)
        case FIELD_TYPE.BIT if field.length == 1:
            return _Column(name=name, type_=_TYPES["BIT(1)"], encode=_bit)
        case FIELD_TYPE.BIT:
            bits = "BIT(2..63)" if field.length <= _BITS_MAX else "BIT(64)"
            return _Column(name=name, type_=_TYPES[bits], encode=_bits)
        case FIELD_TYPE.NULL:
            return _Column(name=name, type_=None, encode=_string)
    if field.charsetnr == _BINARY_CHARSET:
        kind = "GEOMETRY" if field.type_code == FIELD_TYPE.GEOMETRY else "VARBINARY"
        return _Column(name=name, type_=_TYPES[kind], encode=_base64)
    return _Column(name=name, type_=_TYPES["VARCHAR"], encode=_string, literal=_hexadecimal, order=_bytes_of)


def _decimal(field: FieldDescriptorPacket) -> str:
    digits = field.length - (field.scale > 0) - (not field.flags & FLAG.UNSIGNED)
    scale = min(field.scale, PRECISION_MAX)
    return decimal_type(max(1, scale, min(digits, PRECISION_MAX)), scale)


_TYPES: Final = foreign_types(Form.MYSQL)
# In the table of types: signed, and unsigned.
_WHOLE_NAMES: Final = {
    FIELD_TYPE.TINY: ("TINYINT", "TINYINT UNSIGNED"),
    FIELD_TYPE.SHORT: ("SMALLINT", "SMALLINT UNSIGNED"),
    FIELD_TYPE.INT24: ("MEDIUMINT", "MEDIUMINT UNSIGNED"),
    FIELD_TYPE.LONG: ("INT", "INT UNSIGNED"),
    FIELD_TYPE.LONGLONG: ("BIGINT", "BIGINT UNSIGNED"),
    FIELD_TYPE.YEAR: ("YEAR", "YEAR"),
}
_OTHERS: Final[Mapping[int, tuple[str, Encode, Callable[[str], str] | None]]] = {
    FIELD_TYPE.DOUBLE: ("DOUBLE", _real, _double),
    # Its text has fewer digits than its value.
    FIELD_TYPE.FLOAT: ("FLOAT", _real, None),
    FIELD_TYPE.TIMESTAMP: ("TIMESTAMP", _utc, _moment),
    FIELD_TYPE.DATETIME: ("DATETIME", _string, _moment),
    FIELD_TYPE.DATE: ("DATE", _string, _day),
    FIELD_TYPE.NEWDATE: ("DATE", _string, _day),
    FIELD_TYPE.TIME: ("TIME", _string, None),
    FIELD_TYPE.JSON: ("JSON", _string, None),
}
