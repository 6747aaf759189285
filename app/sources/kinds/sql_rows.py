"""Kind `sql`: rows of a table or a query of a Postgres database, by a growing column or as whole snapshots.

By watermark, the position is the greatest value that was read; rows with equal values are read together. Without one,
the position is a digest of all rows: a round reads all of them if it has changed.

Rows are read one at a time as they arrive, within the limits of the round: a server may send more than it was asked
for. Each statement is sent by itself, so that a query cannot end the transaction, which only reads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, BinaryIO, Final
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec
import psycopg
from psycopg import sql

from app.format.errors import FieldError, SourceFailed, SourceUnavailable
from app.format.operation import Operation
from app.format.rows.formats import Format
from app.outbound.addresses import AddressRefused, Rules, Target
from app.outbound.bounded_postgres import BoundedConnection, Bounds, ReplyTooLarge, connected
from app.outbound.connector import CONNECT_SECONDS_MAX, Connector
from app.outbound.foreign import foreign_text
from app.sources.kinds.configs import checked_config, refused_config
from app.sources.ports import (
    Ledger,
    Output,
    Part,
    PartRead,
    Place,
    Position,
    RoundLimits,
    RoundPlan,
    SourceEnvironment,
    SourceLag,
)

_PORT: Final = 5432
# Rows with the value of the last one are read beyond the limits of a round, up to these.
_EQUAL_ROWS_MAX: Final = 100_000
_EQUAL_BYTES_MAX: Final = 64 * 1024 * 1024
# While a row is waited for, rows after it arrive: libpq fills its buffer, which is up to twice as large as the largest
# row, and the system the window of the socket.
_BUFFER_FACTOR: Final = 2
_AHEAD_BYTES: Final = 4 * 1024 * 1024
# The share of its time after which a round by watermark takes no further value.
_READING_SHARE: Final = 0.75
_DIGITS_MAX: Final = 18
_SHOWN_CHARACTERS: Final = 100
_TEXT = Annotated[str, msgspec.Meta(min_length=1, max_length=10_000)]


class SqlConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The config of a source of rows. Either `table` (with its schema before a dot) or `query` is specified."""

    url: str
    table: _TEXT | None = None
    query: _TEXT | None = None
    watermark: _TEXT | None = None
    password: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SqlRows:
    """See the module. It waits for others, so its parts are fetched by threads of workers.

    `row_bytes_max`: the limit of a row.
    """

    row_bytes_max: int
    secrets: frozenset[str] = frozenset({"password"})
    in_task: bool = False

    def checked(self, config: dict[str, Any], environment: SourceEnvironment) -> dict[str, Any]:
        """See `SourceKind.checked`."""
        del environment
        found = checked_config(config, SqlConfig)
        try:
            _target(found.url)
        except ValueError as reason:
            raise refused_config(FieldError(pointer="/config/url", detail=str(reason))) from None
        if "\0" in (found.password or ""):
            raise refused_config(
                FieldError(pointer="/config/password", detail="a password cannot have the character U+0000")
            )
        if (found.table is None) == (found.query is None):
            raise refused_config(
                FieldError(pointer="/config/table", detail="specify either the table or a query")
            )
        return {name: value for name, value in msgspec.to_builtins(found).items() if value is not None}

    def plan(self, place: Place, position: Position, limits: RoundLimits, ledger: Ledger) -> RoundPlan | None:
        """See `SourceKind.plan`."""
        del ledger
        config = msgspec.convert(place.config, SqlConfig)
        with self._connected(config, place.environment, limits.seconds) as connection:
            if config.watermark is None:
                if position.get("digest") == _digest(connection, config):
                    return None
                return RoundPlan(parts=(Part(content={}),), position={}, operation=Operation.SNAPSHOT)
            count = sql.SQL("SELECT count(*)::text FROM (SELECT 1 {} LIMIT {}) AS found").format(
                _after(config, position), limits.rows + 1
            )
            found = _number(connection, count, position)
        if not found:
            return None
        return RoundPlan(
            parts=(Part(content={"since": position.get("watermark")}),),
            position=dict(position),
            more=found > limits.rows,
        )

    def fetch(self, place: Place, part: Part, limits: RoundLimits, output: Output) -> PartRead:
        """See `SourceKind.fetch`."""
        config = msgspec.convert(place.config, SqlConfig)
        with self._connected(config, place.environment, limits.seconds, output.check) as connection:
            if config.watermark is None:
                # Both see the same rows: the transaction has one snapshot.
                digest = _digest(connection, config)
                query = sql.SQL("SELECT row_to_json(source)::text {}").format(_from(config))
                with _body(output) as body, closing(_rows(connection, query, {}, columns=1)) as rows:
                    _copy_all(rows, body, limits)
                return PartRead(position={"digest": digest})
            since = {} if part.content["since"] is None else {"watermark": part.content["since"]}
            column = sql.Identifier("source", config.watermark)
            query = sql.SQL(
                "SELECT row_to_json(source)::text, {}::text {} ORDER BY {} FETCH FIRST {} ROWS WITH TIES"
            ).format(column, _after(config, since), column, limits.rows)
            with _body(output) as body, closing(_rows(connection, query, since, columns=2)) as rows:
                last = _copy_values(rows, body, limits)
        return PartRead(position=since if last is None else {"watermark": last})

    def lag(self, place: Place, position: Position, ledger: Ledger) -> SourceLag:
        """See `SourceKind.lag`. Of snapshots, it is not known."""
        del ledger
        config = msgspec.convert(place.config, SqlConfig)
        if config.watermark is None:
            return SourceLag()
        with self._connected(config, place.environment, RoundLimits().seconds) as connection:
            count = sql.SQL("SELECT count(*)::text {}").format(_after(config, position))
            return SourceLag(rows=_number(connection, count, position))

    def committed(self, place: Place, position: Position) -> None:
        """A database does not need to know how far it was read."""

    @contextmanager
    def _connected(
        self,
        config: SqlConfig,
        environment: SourceEnvironment,
        seconds: float,
        check: Callable[[], None] | None = None,
    ) -> Iterator[BoundedConnection]:
        """A transaction that only reads, and sees one snapshot; all of it takes these seconds at most.

        Raises SourceUnavailable, SourceFailed, and what `check` raises.
        """
        bounds = Bounds(
            deadline=time.monotonic() + seconds,
            reply_bytes_max=_BUFFER_FACTOR * self.row_bytes_max + _AHEAD_BYTES,
        )
        if check is not None:
            bounds = replace(bounds, check=check)
        try:
            parts, target = _target(config.url)
        except ValueError as reason:
            # It was registered with an earlier release.
            raise SourceFailed(f"the URL of the source is not valid: {reason}") from None
        shown = f"postgresql://{target.host}:{target.port}{target.path}"
        try:
            [address, *_] = _connector(environment.allow).addresses(target, CONNECT_SECONDS_MAX)
            stated = _stated(config, parts, target, address, environment, seconds)
            with connected(stated, bounds, CONNECT_SECONDS_MAX) as connection:
                connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                connection.read_only = True
                yield connection
        except AddressRefused as reason:
            raise SourceFailed(f"{shown} cannot be read: {reason}") from None
        except ReplyTooLarge as error:
            raise SourceFailed(
                f"{shown} sends a row of more than {self.row_bytes_max} bytes, the limit of a row: {error}"
            ) from None
        except (psycopg.errors.QueryCanceled, TimeoutError) as error:
            raise SourceUnavailable(f"{shown} takes more than {seconds:.0f} s: {error}") from error
        except (psycopg.ProgrammingError, psycopg.DataError, psycopg.errors.ReadOnlySqlTransaction) as error:
            raise SourceFailed(f"{shown} refuses the query: {_text(error)}") from error
        except psycopg.Error as error:
            raise SourceUnavailable(f"{shown} is out of reach: {_text(error)}") from error


def _target(url: str) -> tuple[SplitResult, Target]:
    """Raises ValueError with the reason why it is no URL of a database."""
    parts = urlsplit(url)
    if parts.scheme != "postgresql" or not parts.hostname or not parts.path.strip("/") or not parts.username:
        raise ValueError("expected postgresql://user@host:5432/database")
    if "\0" in unquote(parts.username + parts.path):
        raise ValueError("neither the user nor the database can have the character U+0000")
    if parts.password is not None:
        raise ValueError("the password is a member of its own, which is never shown")
    if parts.query or parts.fragment:
        raise ValueError("a URL of a database has no query here")
    target = Target(scheme="postgresql", host=parts.hostname, port=parts.port or _PORT, path=parts.path)
    return parts, target


def _stated(
    config: SqlConfig,
    parts: SplitResult,
    target: Target,
    address: str,
    environment: SourceEnvironment,
    seconds: float,
) -> dict[str, str]:
    """The parameters of libpq."""
    found = {
        "host": target.host,
        "hostaddr": address,
        "port": str(target.port),
        "user": unquote(parts.username or ""),
        "password": config.password or "",
        "dbname": unquote(target.path.strip("/")),
        "options": f"-c statement_timeout={int(seconds * 1000)} -c timezone=UTC",
        "application_name": "headwater source",
    }
    if environment.plain_http:
        return {**found, "sslmode": "prefer"}
    return {**found, "sslmode": "verify-full", "sslrootcert": "system"}


def _text(error: psycopg.Error) -> str:
    return foreign_text(str(error).partition("\n")[0])


def _from(config: SqlConfig) -> sql.Composable:
    """The rows, under the name `source`."""
    if config.table is not None:
        return sql.SQL("FROM {} AS source").format(sql.Identifier(*config.table.split(".")))
    # It is a query of the user's own database, with the user's own account.
    query = (config.query or "").rstrip().rstrip(";")
    return sql.SQL("FROM ({}) AS source").format(sql.SQL(query))


def _after(config: SqlConfig, position: Position) -> sql.Composable:
    """The rows after the position. Raises SourceFailed."""
    column = sql.Identifier("source", config.watermark or "")
    if "watermark" not in position:
        return sql.SQL("{} WHERE {} IS NOT NULL").format(_from(config), column)
    if not isinstance(position["watermark"], str):
        raise SourceFailed(f'the position {position} is not valid; expected {{"watermark": "…"}}')
    return sql.SQL("{} WHERE {} > %(watermark)s").format(_from(config), column)


def _parameters(position: Position) -> dict[str, Any] | None:
    return {"watermark": position["watermark"]} if "watermark" in position else None


def _rows(
    connection: BoundedConnection, query: sql.Composable, position: Position, *, columns: int
) -> Generator[tuple[Any, ...]]:
    """The rows of a statement as they arrive. One that is not read to its end closes the connection.

    Raises SourceFailed for rows that are not of this many texts.
    """
    rows = connection.cursor().stream(_literal(query, connection, position), _parameters(position))
    try:
        for row in rows:
            if len(row) != columns or not all(isinstance(value, str) for value in row):
                raise SourceFailed(f"the database returns a row that is not of {columns} texts")
            yield row
    except (GeneratorExit, SourceFailed):
        connection.close()
        raise


def _one(connection: BoundedConnection, query: sql.Composable, position: Position) -> str:
    """The text that a statement returns. Raises SourceFailed."""
    with closing(_rows(connection, query, position, columns=1)) as rows:
        for row in rows:
            found: str = row[0]
            if next(rows, None) is None:
                return found
            break
    raise SourceFailed("the database does not return one row where one is expected")


def _number(connection: BoundedConnection, query: sql.Composable, position: Position) -> int:
    """The number that a statement returns as text. Raises SourceFailed."""
    found = _one(connection, query, position)
    if not (found.isascii() and found.isdigit() and len(found) <= _DIGITS_MAX):
        raise SourceFailed("the database does not return a number where one is expected")
    return int(found)


def _digest(connection: BoundedConnection, config: SqlConfig) -> str:
    """The number of rows, and the sum of their hashes."""
    query = sql.SQL(
        "SELECT count(*) || '-' || coalesce(sum(hashtextextended(source::text, 0)::numeric), 0) {}"
    ).format(_from(config))
    return _one(connection, query, {})


def _body(output: Output) -> AbstractContextManager[BinaryIO]:
    return output.body(Format.NDJSON, f"rows read at {time.strftime('%H:%M:%S', time.gmtime())}")


def _copy_all(rows: Iterator[tuple[Any, ...]], body: BinaryIO, limits: RoundLimits) -> None:
    """Writes the rows of a snapshot as lines. Raises SourceFailed if these are more than the limits."""
    size_bytes = 0
    for number, (text,) in enumerate(rows, 1):
        line = text.encode() + b"\n"
        size_bytes += len(line)
        if number > limits.rows or size_bytes > limits.bytes:
            raise SourceFailed(
                f"the snapshot has more than {limits.rows} rows or {limits.bytes} bytes, and is read in one round: "
                "raise max_rows and max_bytes, or read by a watermark; for the columns of a new dataset, register the "
                "dataset first"
            )
        body.write(line)


def _copy_values(rows: Iterator[tuple[Any, ...]], body: BinaryIO, limits: RoundLimits) -> str | None:
    """Writes rows as lines up to the limits, those with equal watermarks together; returns the last watermark.

    Raises SourceFailed if too many rows beyond the limits have the same one.
    """
    last: str | None = None
    count = size_bytes = 0
    stop_at = time.monotonic() + limits.seconds * _READING_SHARE
    for text, value in rows:
        line = text.encode() + b"\n"
        count, size_bytes = count + 1, size_bytes + len(line)
        full = count > limits.rows or size_bytes > limits.bytes or time.monotonic() > stop_at
        if full and last is not None and value != last:
            break
        if count > limits.rows + _EQUAL_ROWS_MAX or size_bytes > limits.bytes + _EQUAL_BYTES_MAX:
            raise SourceFailed(
                f"too many rows have the watermark {value[:_SHOWN_CHARACTERS]!r}, which are read in one round: more "
                f"than {_EQUAL_ROWS_MAX} rows or {_EQUAL_BYTES_MAX} bytes beyond max_rows and max_bytes"
            )
        body.write(line)
        last = value
    return last


def _literal(query: sql.Composable, connection: psycopg.Connection[Any], position: Position) -> bytes:
    """The text of a statement. Without parameters, psycopg leaves the signs `%` of a user's query alone."""
    text = query.as_bytes(connection)
    if not _parameters(position):
        return text
    before, place, after = text.rpartition(b"%(watermark)s")
    return before.replace(b"%", b"%%") + place + after.replace(b"%", b"%%")


@lru_cache(maxsize=4)
def _connector(allow: tuple[str, ...]) -> Connector:
    return Connector(rules=Rules.of(allow, http=True))
