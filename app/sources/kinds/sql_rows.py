"""Kind `sql`: rows of a table or a query of a Postgres database, by a growing column or as whole snapshots.

By watermark, the position is the greatest value that was read; rows with equal values are read together. Without one,
the position is a digest of all rows: a round reads all of them if it has changed.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Annotated, Any, Final
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec
import psycopg
from psycopg import sql

from app.format.errors import FieldError, SourceFailed, SourceUnavailable
from app.format.operation import Operation
from app.format.rows.formats import Format
from app.outbound.addresses import AddressRefused, Rules, Target
from app.outbound.connector import CONNECT_SECONDS_MAX, Connector
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
_STEP_ROWS: Final = 5_000
_TEXT = Annotated[str, msgspec.Meta(min_length=1, max_length=10_000)]


class SqlConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The config of a source of rows. Either `table` (with its schema before a dot) or `query` is specified."""

    url: str
    table: _TEXT | None = None
    query: _TEXT | None = None
    watermark: _TEXT | None = None
    password: str | None = None


class SqlRows:
    """See the module. It waits for others, so its parts are fetched by threads of workers."""

    secrets: frozenset[str] = frozenset({"password"})
    in_task = False

    def checked(self, config: dict[str, Any], environment: SourceEnvironment) -> dict[str, Any]:
        """See `SourceKind.checked`."""
        del environment
        found = checked_config(config, SqlConfig)
        try:
            _target(found.url)
        except ValueError as reason:
            raise refused_config(FieldError(pointer="/config/url", detail=str(reason))) from None
        if (found.table is None) == (found.query is None):
            raise refused_config(
                FieldError(pointer="/config/table", detail="specify either the table or a query")
            )
        return {name: value for name, value in msgspec.to_builtins(found).items() if value is not None}

    def plan(self, place: Place, position: Position, limits: RoundLimits, ledger: Ledger) -> RoundPlan | None:
        """See `SourceKind.plan`."""
        del ledger
        config = msgspec.convert(place.config, SqlConfig)
        with _connected(config, place.environment, limits.seconds) as connection:
            if config.watermark is None:
                if position.get("digest") == _digest(connection, config):
                    return None
                return RoundPlan(parts=(Part(content={}),), position={}, operation=Operation.SNAPSHOT)
            count = sql.SQL("SELECT count(*) FROM (SELECT 1 {} LIMIT {}) AS found").format(
                _after(config, position), limits.rows + 1
            )
            found = _one(connection, count, position)
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
        with _connected(config, place.environment, limits.seconds) as connection:
            if config.watermark is None:
                # Both see the same rows: the transaction has one snapshot.
                digest = _digest(connection, config)
                _copy(
                    connection,
                    sql.SQL("SELECT row_to_json(source)::text {}").format(_from(config)),
                    {},
                    output,
                )
                return PartRead(position={"digest": digest})
            since = {} if part.content["since"] is None else {"watermark": part.content["since"]}
            column = sql.Identifier("source", config.watermark)
            rows = sql.SQL(
                "SELECT row_to_json(source)::text, {}::text {} ORDER BY {} FETCH FIRST {} ROWS WITH TIES"
            ).format(column, _after(config, since), column, limits.rows)
            last = _copy(connection, rows, since, output)
        return PartRead(position=since if last is None else {"watermark": last})

    def lag(self, place: Place, position: Position, ledger: Ledger) -> SourceLag:
        """See `SourceKind.lag`. Of snapshots, it is not known."""
        del ledger
        config = msgspec.convert(place.config, SqlConfig)
        if config.watermark is None:
            return SourceLag()
        with _connected(config, place.environment, RoundLimits().seconds) as connection:
            count = sql.SQL("SELECT count(*) {}").format(_after(config, position))
            return SourceLag(rows=_one(connection, count, position))

    def committed(self, place: Place, position: Position) -> None:
        """A database does not need to know how far it was read."""


def _target(url: str) -> tuple[SplitResult, Target]:
    """Raises ValueError with the reason why it is no URL of a database."""
    parts = urlsplit(url)
    if parts.scheme != "postgresql" or not parts.hostname or not parts.path.strip("/"):
        raise ValueError("expected postgresql://user@host:5432/database")
    if parts.password is not None:
        raise ValueError("the password is a member of its own, which is never shown")
    if parts.query or parts.fragment:
        raise ValueError("a URL of a database has no query here")
    target = Target(scheme="postgresql", host=parts.hostname, port=parts.port or _PORT, path=parts.path)
    return parts, target


@contextmanager
def _connected(
    config: SqlConfig, environment: SourceEnvironment, seconds: float
) -> Iterator[psycopg.Connection[Any]]:
    """A transaction that only reads, and sees one snapshot. Raises SourceUnavailable, SourceFailed."""
    parts, target = _target(config.url)
    shown = f"postgresql://{target.host}:{target.port}{target.path}"
    milliseconds = int(seconds * 1000)
    try:
        connector = _connector(environment.allow)
        [address, *_] = connector.addresses(target, CONNECT_SECONDS_MAX)
        with psycopg.connect(
            host=target.host,
            hostaddr=address,
            port=target.port,
            user=unquote(parts.username or ""),
            password=config.password,
            dbname=unquote(target.path.strip("/")),
            connect_timeout=int(CONNECT_SECONDS_MAX),
            sslmode="prefer" if environment.plain_http else "verify-full",
            sslrootcert=None if environment.plain_http else "system",
            options=f"-c statement_timeout={milliseconds} -c timezone=UTC -c default_transaction_read_only=on",
            application_name="headwater source",
        ) as connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            yield connection
            connection.rollback()
    except AddressRefused as reason:
        raise SourceFailed(f"{shown} cannot be read: {reason}") from None
    except (psycopg.errors.QueryCanceled, TimeoutError) as error:
        raise SourceUnavailable(f"{shown} takes more than {seconds:.0f} s: {error}") from error
    except (psycopg.ProgrammingError, psycopg.DataError, psycopg.errors.ReadOnlySqlTransaction) as error:
        raise SourceFailed(f"{shown} refuses the query: {_text(error)}") from error
    except psycopg.Error as error:
        raise SourceUnavailable(f"{shown} is out of reach: {_text(error)}") from error


def _text(error: psycopg.Error) -> str:
    return str(error).partition("\n")[0].replace("\0", "")


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


def _one(connection: psycopg.Connection[Any], query: sql.Composable, position: Position) -> Any:
    row = connection.execute(_literal(query, connection, position), _parameters(position)).fetchone()
    return None if row is None else row[0]


def _digest(connection: psycopg.Connection[Any], config: SqlConfig) -> str:
    """The number of rows, and the sum of their hashes."""
    query = sql.SQL(
        "SELECT count(*) || '-' || coalesce(sum(hashtextextended(source::text, 0)::numeric), 0) {}"
    ).format(_from(config))
    return str(_one(connection, query, {}))


def _copy(
    connection: psycopg.Connection[Any], query: sql.Composable, position: Position, output: Output
) -> str | None:
    """Writes the first column of the rows as lines; returns the second one of the last row, if there is one."""
    last = None
    with (
        output.body(Format.NDJSON, f"rows read at {time.strftime('%H:%M:%S', time.gmtime())}") as body,
        connection.cursor(name="source") as cursor,
    ):
        cursor.itersize = _STEP_ROWS
        cursor.execute(_literal(query, connection, position), _parameters(position))
        for row in cursor:
            body.write(row[0].encode() + b"\n")
            last = row[1] if len(row) > 1 else None
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
