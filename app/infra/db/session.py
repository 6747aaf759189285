"""The only access to Postgres. Every connection acts as one tenant, as one credential, as the relay, as the monitor,
or as the administrator of tenants and keys, which needs a login of its own.

A connection takes the application's role when it is opened, and a transaction takes its tenant when it starts; row
level security does the rest. Nothing else in this package opens a connection (a test checks this).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

from psycopg import Error as DriverError
from psycopg.errors import ConnectionTimeout
from psycopg.sql import Literal
from sqlalchemy import Connection, create_engine, event, make_url, text
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from app.infra.db.acts import current_act
from app.infra.db.answers import (
    CONNECT_SECONDS,
    Answers,
    PatientConnection,
    SilentError,
    after_silence,
)
from app.infra.db.errors import CommitInDoubt, TooSlow
from app.infra.db.stored_json import dumped, undecoded
from app.infra.errors import DatabaseFull, NotStorable, Unavailable

APPLICATION_ROLE: Final = "headwater_app"
RELAY_ROLE: Final = "headwater_relay"
ADMINISTRATOR_ROLE: Final = "headwater_admin"
MONITOR_ROLE: Final = "headwater_monitor"

# Program limit exceeded: the same statement fails again, however often it is repeated.
_LIMIT_CLASS: Final = "54"
# A statement was cancelled after its time, a lock was not granted in time, or transactions waited for each other.
_TOO_SLOW: Final = ("57014", "55P03", "40P01")
_DISK_FULL: Final = "53100"
# A server that cannot write its log ends, and its last message has the text of the system.
_DISK_FULL_TEXTS: Final = ("No space left on device", "Disk quota exceeded")

# What a transaction begins with. One message to the server, so that no transaction waits for an answer to BEGIN alone.
_AS_TENANT: Final = "BEGIN; SELECT set_config('headwater.tenant_id', {value}, true)"
# What is done in a shared transaction may wait for a server of a user.
_SHARED_IDLE_SECONDS: Final = 60
_AS_TENANT_SHARED: Final = (
    f"{_AS_TENANT}, set_config('idle_in_transaction_session_timeout', '{_SHARED_IDLE_SECONDS}s', true)"
)
_AS_CREDENTIAL: Final = "BEGIN; SELECT set_config('headwater.key_digest', {value}, true)"
_AS_NAMED: Final = "BEGIN; SELECT set_config('headwater.tenant_name', {value}, true)"
_AS_RELAY: Final = f"BEGIN; SET LOCAL ROLE {RELAY_ROLE}"
# One statement of those that sum up all tenants: what takes longer is left out of the round.
_MONITOR_SECONDS: Final = 5
_AS_MONITOR: Final = (
    f"BEGIN READ ONLY; SET LOCAL ROLE {MONITOR_ROLE}; SET LOCAL statement_timeout = '{_MONITOR_SECONDS}s'"
)
_AS_ADMINISTRATOR: Final = f"BEGIN; SET LOCAL ROLE {ADMINISTRATOR_ROLE}"
# Of one connection. With fewer, the statements of a worker would push each other out, and be prepared again.
_PREPARED_STATEMENTS_MAX: Final = 250
_WITHOUT_PARAMETERS: Final = {"no_parameters": True}


class _Shared(NamedTuple):
    """A transaction that others of its tenant join."""

    database: Database
    tenant_id: str
    connection: Connection


_SHARED: ContextVar[_Shared | None] = ContextVar("shared_transaction", default=None)


class Listener:
    """Receives notifications, in the order of the commits that sent them."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._driver: Any = connection.connection.dbapi_connection

    def received(self, seconds: float) -> list[str]:
        """Waits at most this time for a notification, then checks that the server still answers.

        Returns the payloads of all notifications that were sent before its answer. Raises if the connection is lost.
        """
        payloads = [each.payload for each in self._driver.notifies(timeout=seconds, stop_after=1)]
        self._connection.execute(text("SELECT 1"))
        return payloads + [each.payload for each in self._driver.notifies(timeout=0)]


class Database:
    """A pool of connections to one database. Transactions are READ COMMITTED and short: see the timeouts."""

    def __init__(
        self,
        url: str,
        *,
        role: str = APPLICATION_ROLE,
        application_name: str = "headwater",
        connections_max: int = 20,
        statement_timeout_seconds: float = 60.0,
        lock_timeout_seconds: float = 15.0,
        idle_timeout_seconds: float = 10.0,
        answers: Answers | None = None,
    ) -> None:
        """`url`: postgresql://… of a login that may take the role, and those of the sessions that it opens.

        `answers`: no statement waits while the server is silent; None: statements wait for their timeouts,
        which a server that stands still does not keep.
        `idle_timeout_seconds`: less than the time that others wait for locks. So no statement fails because a process
        stands still within a transaction. Connects lazily.
        """
        self._answers = answers
        self._beats: Any = None
        self._engine = create_engine(
            make_url(url).set(drivername="postgresql+psycopg"),
            # A transaction sends BEGIN itself: the driver would send it as a message of its own.
            isolation_level="AUTOCOMMIT",
            # No overflow: a connection beyond the size of the pool would be opened and closed for each transaction.
            pool_size=connections_max,
            max_overflow=0,
            pool_timeout=lock_timeout_seconds,
            connect_args={"connect_timeout": CONNECT_SECONDS},
            # There is none, and looking for its type would take another transaction.
            use_native_hstore=False,
            json_serializer=dumped,
            json_deserializer=undecoded,
        )
        settings = {
            "role": role,
            "timezone": "UTC",
            "default_transaction_isolation": "read committed",
            "application_name": application_name,
            "statement_timeout": _milliseconds(statement_timeout_seconds),
            "lock_timeout": _milliseconds(lock_timeout_seconds),
            "idle_in_transaction_session_timeout": _milliseconds(idle_timeout_seconds),
        }

        if answers is not None:

            @event.listens_for(self._engine, "do_connect")
            def connect(_dialect: Any, _record: Any, arguments: Any, names: Any) -> PatientConnection:
                connection = PatientConnection.connect(*arguments, **names)
                connection.impatient = after_silence()
                return connection

        @event.listens_for(self._engine, "connect")
        def settle(connection: Any, _record: Any) -> None:
            # Outside of a transaction, so that no rollback reverts the settings.
            connection.autocommit = True
            calls = ", ".join("set_config(%s, %s, false)" for _ in settings)
            connection.execute(f"SELECT {calls}", [word for pair in settings.items() for word in pair])
            connection.prepared_max = _PREPARED_STATEMENTS_MAX
            if answers is not None:
                connection.impatient = lambda: answers.silent

    @contextmanager
    def tenant(self, tenant_id: str, *, shared: bool = False) -> Iterator[Connection]:
        """A transaction that sees and makes rows of this tenant only; committed at the end, unless it raises.

        Until a `shared` one ends, transactions that its thread begins for the tenant are savepoints of it: they are
        committed with it, or not at all. Raises Unavailable if the database cannot be reached, TooSlow if it does not
        answer in time, DatabaseFull if its disk is full, CommitInDoubt if the connection breaks at the commit,
        NotStorable if a limit of Postgres is exceeded.
        """
        outer = _SHARED.get()
        if outer is not None and outer.database is self:
            if outer.tenant_id != tenant_id:
                raise AssertionError("a shared transaction is of one tenant")
            with outer.connection.begin_nested():
                yield outer.connection
            return
        with self._transaction(_AS_TENANT_SHARED if shared else _AS_TENANT, tenant_id) as connection:
            token = _SHARED.set(_Shared(self, tenant_id, connection)) if shared else None
            try:
                yield connection
            finally:
                if token is not None:
                    _SHARED.reset(token)

    @contextmanager
    def credential(self, digest: bytes) -> Iterator[Connection]:
        """A transaction that sees the API key with this digest and its tenant, and no other row."""
        with self._transaction(_AS_CREDENTIAL, digest.hex()) as connection:
            yield connection

    @contextmanager
    def named(self, name: str) -> Iterator[Connection]:
        """A transaction that sees the tenant of this name, and no other row."""
        with self._transaction(_AS_NAMED, name) as connection:
            yield connection

    @contextmanager
    def relay(self) -> Iterator[Connection]:
        """A transaction that sees which tenants and datasets have work, but none of the tenants' data."""
        with self._transaction(_AS_RELAY) as connection:
            yield connection

    @contextmanager
    def monitor(self) -> Iterator[Connection]:
        """A transaction that reads numbers and names of all tenants, and none of their data. It changes nothing.

        A statement ends after five seconds, with TooSlow.
        """
        with self._transaction(_AS_MONITOR) as connection:
            yield connection

    @contextmanager
    def administration(self) -> Iterator[Connection]:
        """A transaction that sees and changes the tenants and API keys of all tenants, and none of their data.

        Only the administration's login may begin it.
        """
        with self._transaction(_AS_ADMINISTRATOR) as connection:
            yield connection

    @contextmanager
    def listening(self, channel: str) -> Iterator[Listener]:
        """A connection beside the pool that receives the notifications of a channel.

        Raises Unavailable if the connection cannot be opened or is lost.
        """
        try:
            with self._engine.connect() as connection:
                # A connection of the pool would be missing there for good.
                connection.detach()
                connection.execute(text(f"LISTEN {channel}"))
                yield Listener(connection)
        except (DBAPIError, DriverError, PoolTimeout) as error:
            raise _unavailable(error) from error

    def beat(self) -> None:
        """Sends the server the smallest statement, on a connection of its own, and sets `answers` accordingly.

        Called by one thread, again and again. Raises Unavailable if there is no answer.
        """
        if self._answers is None:
            raise AssertionError("nothing reads whether this server answers")
        try:
            if self._beats is None:
                # A connection of the pool would be missing there for good.
                connection = self._engine.raw_connection()
                self._beats = connection.driver_connection
                connection.detach()
            self._beats.impatient = after_silence()
            self._beats.execute("SELECT 1")
        except (DBAPIError, DriverError, PoolTimeout) as error:
            self._stop_beats()
            # A server that refuses connections is no silent one: its statements end by themselves.
            cause = getattr(error, "orig", error)
            self._answers.silent = isinstance(cause, SilentError | ConnectionTimeout)
            raise _unavailable(error) from error
        self._answers.silent = False

    def close(self) -> None:
        """Closes the connections."""
        self._stop_beats()
        self._engine.dispose()

    def _stop_beats(self) -> None:
        if self._beats is not None:
            self._beats.close()
            self._beats = None

    @contextmanager
    def _transaction(self, opening: str, value: str = "") -> Iterator[Connection]:
        try:
            connection = self._begin(opening.format(value=Literal(value).as_string()))
            try:
                yield connection
                if connection.in_transaction():
                    _commit_with_act(connection, opening)
            finally:
                connection.close()
        except PoolTimeout as error:
            raise _unavailable(error) from error
        except DBAPIError as error:
            # The end of a session that stood still in its transaction is an InternalError.
            if not (isinstance(error, OperationalError) or error.connection_invalidated):
                raise
            sqlstate = _sqlstate(error)
            if sqlstate.startswith(_LIMIT_CLASS):
                raise NotStorable(
                    "A value is too long for the catalogue. Nothing was changed. Send shorter values",
                    sqlstate=sqlstate,
                ) from error
            raise _unavailable(error) from error

    def _begin(self, statements: str) -> Connection:
        try:
            return self._open(statements)
        except DBAPIError as error:
            if not error.connection_invalidated:
                raise
        # The pooled connection was dead, for example after a restart of the server. This has emptied the pool: the next
        # connection is new.
        return self._open(statements)

    def _open(self, statements: str) -> Connection:
        if self._answers is not None and self._answers.silent:
            raise _unavailable()
        connection = self._engine.connect()
        try:
            connection.exec_driver_sql(statements, execution_options=_WITHOUT_PARAMETERS)
        except BaseException:
            connection.close()
            raise
        return connection


def _unavailable(error: Exception | None = None) -> Unavailable:
    """What an error of the driver means. None: the server is silent, so nothing was sent."""
    sqlstate = _sqlstate(error)
    if sqlstate == _DISK_FULL or (not sqlstate and _names_full_disk(error)):
        return DatabaseFull(
            "The disk of the database is full: nothing can be written until space is freed. Reading works. "
            "No data was changed"
        )
    kind = TooSlow if sqlstate in _TOO_SLOW else Unavailable
    return kind("The database does not answer; no data was changed. Try again")


def _sqlstate(error: Exception | None) -> str:
    return getattr(getattr(error, "orig", error), "sqlstate", None) or ""


def _names_full_disk(error: Exception | None) -> bool:
    # The text of SQLAlchemy has the parameters, which are of users.
    message = str(getattr(error, "orig", error))
    return any(each in message for each in _DISK_FULL_TEXTS)


def _commit_with_act(connection: Connection, opening: str) -> None:
    act = current_act()
    if act is None or opening not in (_AS_TENANT, _AS_TENANT_SHARED, _AS_ADMINISTRATOR):
        _commit(connection)
        return
    act.committing(connection, administration=opening is _AS_ADMINISTRATOR)
    _commit(connection)
    act.committed()


def _commit(connection: Connection) -> None:
    try:
        connection.commit()
    except DBAPIError as error:
        if error.connection_invalidated:
            raise CommitInDoubt("The connection broke at the commit; the change may be committed") from error
        raise


def _milliseconds(seconds: float) -> str:
    return str(round(seconds * 1000))
