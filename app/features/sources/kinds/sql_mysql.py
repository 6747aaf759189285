"""MySQL and MariaDB as kinds of databases of sources: rows as the text protocol returns them, in UTF-8.

A watermark is compared as a literal of the type of its column, so that an index is used and no digit is lost. Texts are
compared by their bytes: under most collations, different texts are equal. Literals of texts are in hexadecimal, whose
meaning no setting of the server changes.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import msgspec
from pymysql.constants import FIELD_TYPE, FLAG
from pymysql.protocol import FieldDescriptorPacket

from app.features.sources.kinds.sql_dialect import (
    DatabaseAccess,
    DatabaseOutOfReach,
    Dialect,
    Line,
    RowsOrigin,
    StatementRefused,
    number,
)
from app.infra.outbound.bounded_mysql import (
    BoundedMysql,
    MysqlLogin,
    MysqlLost,
    MysqlRefused,
    Row,
    connected_mysql,
)
from app.infra.outbound.bounds import Bounds
from app.infra.outbound.connector import CONNECT_SECONDS_MAX
from app.infra.outbound.foreign import foreign_text
from app.kernel.format.schema.types import Decimal

# The description of up to 4,096 columns counts with the first row.
_DESCRIPTION_BYTES: Final = 2 * 1024 * 1024
_PRECISION_MAX: Final = 38
_BITS_MAX: Final = 63
_BIT_BYTES_MAX: Final = 8
_BINARY_CHARSET: Final = 63
_TIMED_OUT: Final = frozenset({1969, 3024})
# Errors that pass: too many connections, locks, a server that ends or has no memory or space, a killed query.
_PASSING: Final = frozenset(
    {1021, 1037, 1038, 1040, 1041, 1053, 1105, 1114, 1159, 1161, 1203, 1205, 1206, 1213, 1226, 1317, 3168}
)

Encode = Callable[[bytes], bytes]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Column:
    """A column of a result. `encode`: writes its values as JSON. `literal`: writes a watermark as SQL; None for a
    column that cannot be one. `order`: what orders the column by.
    """

    name: str
    type_: str
    encode: Encode
    literal: Callable[[str], str] | None = None
    order: Callable[[str], str] = str

    @property
    def key(self) -> bytes:
        return msgspec.json.encode(self.name) + b":"


class _Session:
    """See `Session`."""

    def __init__(self, connection: BoundedMysql, relation: RowsOrigin) -> None:
        self._connection = connection
        self._relation = relation

    def columns(self) -> Mapping[str, str | None]:
        """See `Session.columns`."""
        return {column.name: column.type_ for column in self._columns}

    def count_after(self, since: str | None, limit: int | None) -> int:
        """See `Session.count_after`."""
        if limit is None:
            return number(self._one(f"SELECT COUNT(*) {self._after(since)}"))
        some = f"SELECT 1 {self._after(since)} LIMIT {limit}"
        return number(self._one(f"SELECT COUNT(*) FROM ({some}) AS found"))

    def rows_after(self, since: str | None, count: int) -> Generator[Line]:
        """See `Session.rows_after`. MySQL has no `WITH TIES`: the last watermark is found first."""
        place, column = self._watermark
        order, after = column.order(self._name(column.name)), self._after(since)
        name = self._name(column.name)
        watermark_rows = self._all(
            f"SELECT {name} {after} ORDER BY {order} LIMIT 1 OFFSET {count - 1}", columns=1
        )
        if watermark_rows:
            after += f" AND {order} <= {_literal(column, _text(watermark_rows[0][0]))}"
        with closing(self._lines(f"SELECT source.* {after} ORDER BY {order}")) as rows:
            for line, row in rows:
                yield line, _text(row[place])

    def rows(self) -> Generator[Line]:
        """See `Session.rows`."""
        with closing(self._lines(f"SELECT source.* {self._from()}")) as rows:
            for line, _ in rows:
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
        fields = self._connection.columns(f"SELECT source.* {self._from()} LIMIT 0")
        if not fields:
            raise StatementRefused("the database describes no columns")
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

    def _lines(self, statement: str) -> Generator[tuple[bytes, Row]]:
        keys = [column.key for column in self._columns]
        encoders = [column.encode for column in self._columns]
        with closing(self._rows(statement, len(keys))) as rows:
            for row in rows:
                values = (
                    key + (b"null" if value is None else encode(value))
                    for key, encode, value in zip(keys, encoders, row, strict=True)
                )
                yield b"{" + b",".join(values) + b"}\n", row

    def _rows(self, statement: str, columns: int) -> Generator[Row]:
        with closing(self._connection.rows(statement)) as rows:
            for row in rows:
                if len(row) != columns:
                    raise StatementRefused(f"the database returns a row that is not of {columns} values")
                yield row

    def _all(self, statement: str, *, columns: int) -> list[Row]:
        """The rows of a statement that returns one at most."""
        rows: list[Row] = []
        with closing(self._rows(statement, columns)) as cursor:
            for row in cursor:
                if rows:
                    raise StatementRefused("the database returns more rows than one")
                rows.append(row)
        return rows

    def _one(self, statement: str) -> str:
        rows = self._all(statement, columns=1)
        if not rows:
            raise StatementRefused("the database returns no row where one is expected")
        return _text(rows[0][0])


@contextmanager
def _session(access: DatabaseAccess, relation: RowsOrigin, bounds: Bounds) -> Iterator[_Session]:
    login = MysqlLogin(
        host=access.host,
        address=access.address,
        port=access.port,
        user=access.user,
        password=access.password,
        database=access.database,
        verify=not access.plain,
    )
    try:
        with connected_mysql(login, bounds, CONNECT_SECONDS_MAX) as connection:
            _begin(connection, access.seconds)
            try:
                yield _Session(connection, relation)
            except MysqlRefused as error:
                raise _refused(error) from error
    except MysqlRefused as error:
        # The login, or what begins a transaction.
        raise DatabaseOutOfReach(foreign_text(error)) from error
    except MysqlLost as error:
        raise DatabaseOutOfReach(foreign_text(error)) from error
    except TimeoutError:
        raise
    except OSError as error:
        raise DatabaseOutOfReach(foreign_text(error)) from error


def _begin(connection: BoundedMysql, seconds: float) -> None:
    """Begins a transaction that only reads, and sees one snapshot, with times in UTC."""
    if "mariadb" in connection.server_version.lower():
        limit = f"max_statement_time = {seconds:.3f}"
    else:
        limit = f"max_execution_time = {int(seconds * 1000)}"
    connection.run(f"SET SESSION time_zone = '+00:00', {limit}")
    connection.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    connection.run("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")


def _refused(error: MysqlRefused) -> Exception:
    text = foreign_text(error)
    if error.code in _TIMED_OUT:
        return TimeoutError(text)
    return DatabaseOutOfReach(text) if error.code in _PASSING else StatementRefused(text)


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
        case code if code in _WHOLE_TYPES:
            return _Column(name=name, type_=_WHOLE_TYPES[code][unsigned], encode=_whole, literal=_WHOLE)
        case FIELD_TYPE.NEWDECIMAL | FIELD_TYPE.DECIMAL:
            digits = field.length - (field.scale > 0) - (not unsigned)
            scale = min(field.scale, _PRECISION_MAX)
            type_ = str(Decimal(max(1, scale, min(digits, _PRECISION_MAX)), scale))
            return _Column(name=name, type_=type_, encode=_checked(_DECIMAL), literal=_DECIMAL)
        case FIELD_TYPE.DOUBLE:
            return _Column(name=name, type_="double", encode=_checked(_DOUBLE), literal=_double)
        case FIELD_TYPE.FLOAT:
            # Its text has fewer digits than its value.
            return _Column(name=name, type_="float", encode=_checked(_DOUBLE))
        case FIELD_TYPE.TIMESTAMP:
            return _Column(name=name, type_="timestamp", encode=_utc, literal=_moment)
        case FIELD_TYPE.DATETIME:
            return _Column(name=name, type_="timestamp_ntz", encode=_string, literal=_moment)
        case FIELD_TYPE.DATE | FIELD_TYPE.NEWDATE:
            return _Column(name=name, type_="date", encode=_string, literal=_day)
        case FIELD_TYPE.BIT if field.length == 1:
            return _Column(name=name, type_="boolean", encode=_bit)
        case FIELD_TYPE.BIT:
            type_ = "int64" if field.length <= _BITS_MAX else "decimal(20, 0)"
            return _Column(name=name, type_=type_, encode=_bits)
        case FIELD_TYPE.TIME | FIELD_TYPE.JSON | FIELD_TYPE.NULL:
            return _Column(name=name, type_="string", encode=_string)
    if field.charsetnr == _BINARY_CHARSET:
        return _Column(name=name, type_="binary", encode=_base64)
    return _Column(name=name, type_="string", encode=_string, literal=_hexadecimal, order=_bytes_of)


# Signed, and unsigned. No type has unsigned numbers of 64 bits.
_WHOLE_TYPES: Final = {
    FIELD_TYPE.TINY: ("int8", "uint8"),
    FIELD_TYPE.SHORT: ("int16", "uint16"),
    FIELD_TYPE.INT24: ("int32", "uint32"),
    FIELD_TYPE.LONG: ("int32", "uint32"),
    FIELD_TYPE.LONGLONG: ("int64", "decimal(20, 0)"),
    FIELD_TYPE.YEAR: ("int16", "int16"),
}


def _buffered_bytes(row_bytes: int) -> int:
    return row_bytes + _DESCRIPTION_BYTES


MYSQL: Final = Dialect(scheme="mysql", port=3306, session=_session, buffered_bytes=_buffered_bytes)
"""See the module."""
