"""Connections to users' MySQL and MariaDB servers, which may be silent, endless or hostile.

All use of a connection ends at one deadline, and the bytes of a reply are counted as they are read from the socket.
Nothing of this process goes to the server: no file, no option file, no name of this user, machine or process.
"""

from __future__ import annotations

import io
import socket
import ssl
import struct
import time
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Final

from pymysql import err
from pymysql.connections import Connection, MySQLResult
from pymysql.constants import COMMAND
from pymysql.protocol import FieldDescriptorPacket

from app.infra.outbound.bounds import CHECK_SECONDS, Bounds, ReplyTooLarge

_LOGINS: Final = frozenset({b"mysql_native_password", b"caching_sha2_password", b"sha256_password"})
_SENT_BYTES: Final = 64 * 1024


class MysqlRefused(Exception):
    """The server has answered with an error. `code`: its number; the message is the server's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class MysqlLost(Exception):
    """The connection has ended, or the server does not follow the protocol."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MysqlLogin:
    """Where and as whom to connect. `address`: one of the host, which was checked. `verify`: encrypted, with a
    certificate of the host; otherwise encrypted where the server offers it.
    """

    host: str
    address: str
    port: int
    user: str
    password: str
    database: str
    verify: bool


Row = tuple[bytes | None, ...]
"""The values of a row as the server has sent them: text, or the bytes of binary columns."""


class BoundedMysql:
    """A connection that is closed once it exceeds its bounds, or once a result is not read to its end."""

    def __init__(self, connection: _Connection) -> None:
        self._connection = connection

    @property
    def server_version(self) -> str:
        """As the server states it, such as `10.11.5-MariaDB`."""
        return str(self._connection.server_version)

    def run(self, statement: str) -> None:
        """Runs a statement that returns no rows. Raises what `rows` raises."""
        with closing(self.rows(statement)) as rows:
            for _ in rows:
                raise MysqlLost("the server returns rows where none are expected")

    def columns(self, statement: str) -> list[FieldDescriptorPacket]:
        """The columns of the result of a statement that returns no row. Raises what `rows` raises."""
        with self._faults():
            result = self._sent(statement)
            fields: list[FieldDescriptorPacket] = list(getattr(result, "fields", ()))
            while self._next(result) is not None:
                pass
            return fields

    def rows(self, statement: str) -> Generator[Row]:
        """The rows of a single statement as they arrive.

        Raises TimeoutError, ReplyTooLarge, MysqlRefused, MysqlLost, and what `Bounds.check` raises.
        """
        try:
            with self._faults():
                result = self._sent(statement)
            while True:
                with self._faults():
                    row = self._next(result)
                if row is None:
                    return
                yield row
        except GeneratorExit:
            self.close()
            raise

    def close(self) -> None:
        """Closes the connection. What the server still sends is not read."""
        self._connection.abandon()

    def _sent(self, statement: str) -> MySQLResult:
        self._connection.meter.begin()
        self._connection._execute_command(COMMAND.COM_QUERY, statement)
        result = self._connection._result = _Result(self._connection)
        try:
            result.init_unbuffered_query()
        except BaseException:
            # As PyMySQL does: the result must not read on when it is collected.
            result.unbuffered_active = False
            result.connection = None
            raise
        return result

    def _next(self, result: MySQLResult) -> Row | None:
        self._connection.meter.begin()
        row: Row | None = result._read_rowdata_packet_unbuffered()
        return row

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            with _mysql_faults():
                yield
        except MysqlRefused:
            raise
        except BaseException:
            self.close()
            raise


@contextmanager
def connected_mysql(login: MysqlLogin, bounds: Bounds, connect_seconds: float) -> Iterator[BoundedMysql]:
    """A connection. Raises what `BoundedMysql.rows` raises, and OSError."""
    connecting = min(bounds.deadline, time.monotonic() + connect_seconds)
    meter = _Meter(bounds, connecting)
    with socket.create_connection((login.address, login.port), meter.seconds_left()) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = _Connection(login, meter)
        try:
            with _mysql_faults():
                connection.connect(_Stream(plain, meter))
            meter.deadline = bounds.deadline
            yield BoundedMysql(connection)
        finally:
            connection.abandon()


@contextmanager
def _mysql_faults() -> Iterator[None]:
    """Raises MysqlRefused for an error that the server has sent, and MysqlLost for all else that PyMySQL raises."""
    try:
        yield
    except (TimeoutError, ReplyTooLarge, MysqlRefused, MysqlLost):
        raise
    except ssl.SSLError as error:
        raise MysqlLost(f"no encrypted connection: {error}") from error
    except err.MySQLError as error:
        # PyMySQL replaces errors of the stream while it connects.
        original = getattr(error, "original_exception", None)
        if isinstance(original, TimeoutError):
            raise original from None
        code = error.args[0] if error.args else 0
        text = str(error.args[-1]) if error.args else type(error).__name__
        if isinstance(code, int) and _is_server_error(code):
            raise MysqlRefused(code, text) from error
        raise MysqlLost(text) from error
    except OSError as error:
        raise MysqlLost(str(error)) from error
    except _MALFORMED as error:
        # What the parser of packets raises for bytes that are no packets, and for a request to send a file.
        raise MysqlLost(f"the server does not follow the protocol: {error!r}") from error


# Of a table of MySQL and of MariaDB.
_COLUMNS_MAX: Final = 4_096
_MALFORMED: Final = (
    ValueError,
    LookupError,
    AssertionError,
    RuntimeError,
    TypeError,
    AttributeError,
    NameError,
    ArithmeticError,
    struct.error,
)
# From 2000 on, numbers are those of the client's own errors.
_CLIENT_ERRORS: Final = range(2000, 3000)


def _is_server_error(code: int) -> bool:
    return code >= 1000 and code not in _CLIENT_ERRORS


class _Result(MySQLResult):
    """A result of PyMySQL with a bounded number of columns, each of which is an object."""

    def _get_descriptions(self) -> None:
        if self.field_count > _COLUMNS_MAX:
            raise MysqlLost(f"the server announces {self.field_count} columns, more than {_COLUMNS_MAX}")
        super()._get_descriptions()


class _Connection(Connection):
    """A connection of PyMySQL over a stream with bounds, which sends nothing that was not stated."""

    def __init__(self, login: MysqlLogin, meter: _Meter) -> None:
        super().__init__(
            host=login.host,
            port=login.port,
            user=login.user,
            # PyMySQL would encode a text as Latin 1.
            password=login.password.encode(),
            database=login.database,
            charset="utf8mb4",
            autocommit=None,
            use_unicode=False,
            conv={},
            local_infile=False,
            ssl=ssl.create_default_context() if login.verify else None,
            defer_connect=True,
        )
        context: ssl.SSLContext = vars(self)["ctx"]
        self.ctx = _BoundedTls(context, meter)
        self.meter = meter
        self._connect_attrs = {"program_name": "headwater source"}

    def _read_bytes(self, num_bytes: int) -> bytes:
        # The errors of the stream are not those of PyMySQL.
        content: bytes = self._rfile.read(num_bytes)
        if len(content) < num_bytes:
            raise MysqlLost("the server has closed the connection")
        return content

    def _write_bytes(self, data: bytes) -> None:
        self._sock.sendall(data)

    def _process_auth(self, plugin_name: bytes, auth_packet: Any, handler: Any = None) -> Any:
        # Others would send the password as it is.
        if plugin_name not in _LOGINS:
            raise MysqlLost(
                f"the server requires the method of login {plugin_name!r}, which is not supported"
            )
        return super()._process_auth(plugin_name, auth_packet, handler)

    def abandon(self) -> None:
        """Closes the connection; a result that was not read to its end is not read on."""
        if self._result is not None:
            self._result.unbuffered_active = False
        self._force_close()


class _Meter:
    """The time that is left, and the bytes that were read of the reply that is being read."""

    def __init__(self, bounds: Bounds, deadline: float) -> None:
        """`deadline`: the one until the connection is made."""
        self._bounds = bounds
        self._read = 0
        self._checked = time.monotonic()
        self.deadline = deadline

    def begin(self) -> None:
        """A new reply begins, such as a row."""
        self._read = 0

    def seconds_left(self) -> float:
        """The seconds until the deadline. Raises TimeoutError, and what `Bounds.check` raises."""
        now = time.monotonic()
        if now - self._checked >= CHECK_SECONDS:
            self._checked = now
            self._bounds.check()
        seconds = self.deadline - now
        if seconds <= 0:
            raise TimeoutError("the server did not answer in time")
        return seconds

    def count(self, size: int) -> None:
        """These bytes have arrived. Raises ReplyTooLarge."""
        self._read += size
        if self._read > self._bounds.reply_bytes_max:
            raise ReplyTooLarge(f"one reply has more than {self._bounds.reply_bytes_max} bytes")


class _Stream:
    """What PyMySQL uses of a socket."""

    def __init__(self, stream: socket.socket, meter: _Meter) -> None:
        self.stream = stream
        self._meter = meter

    def settimeout(self, _seconds: float | None) -> None:
        """The meter states the time."""

    def sendall(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            self.stream.settimeout(min(self._meter.seconds_left(), CHECK_SECONDS))
            try:
                rest = rest[self.stream.send(rest[:_SENT_BYTES]) :]
            except TimeoutError:
                continue

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Reader(self.stream, self._meter))

    def close(self) -> None:
        self.stream.close()


class _Reader(io.RawIOBase):
    def __init__(self, stream: socket.socket, meter: _Meter) -> None:
        self._stream = stream
        self._meter = meter

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            self._stream.settimeout(min(self._meter.seconds_left(), CHECK_SECONDS))
            try:
                size = self._stream.recv_into(buffer)
            except TimeoutError:
                continue
            self._meter.count(size)
            return size


class _BoundedTls:
    """What PyMySQL uses of a TLS context."""

    def __init__(self, context: ssl.SSLContext, meter: _Meter) -> None:
        self._context = context
        self._meter = meter

    def wrap_socket(self, stream: _Stream, *, server_hostname: str) -> _Stream:
        stream.stream.settimeout(self._meter.seconds_left())
        return _Stream(self._context.wrap_socket(stream.stream, server_hostname=server_hostname), self._meter)
