"""What a kind of database is to a source of kind `sql`: how it is connected to, and how its rows are read.

A dialect opens a `Session`: one transaction that only reads, and sees one snapshot. Its methods write SQL, and return
rows as lines of NDJSON. It is used by processes of its own (`sql_serve`), and does not bound what a server sends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from app.infra.outbound.bounds import ReplyTooLarge

PORTS: Final = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306}
"""The ports of the kinds of databases, by the schemes of their URLs."""


class StatementRefused(Exception):
    """The database refuses a statement, or its reply is not what was requested: a repetition would fail, too."""


class DatabaseOutOfReach(Exception):
    """The database cannot be reached, or not now."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DatabaseAccess:
    """Where and as whom to connect. `address`: one of the host, which was checked. `seconds`: the time for all use.

    `scheme`: that of the URL. `plain`: whether the connection may be unencrypted, and the certificate unverified.
    """

    scheme: str
    host: str
    address: str
    port: int
    user: str
    password: str
    database: str
    seconds: float
    plain: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class RowsOrigin:
    """What is read: either `table`, with its schema before a dot, or `query`; and the column that grows, if any."""

    table: str | None
    query: str | None
    watermark: str | None

    def subquery(self) -> str:
        """The query, without the semicolon at its end. A comment in its last line ends with that line."""
        return (self.query or "").rstrip().rstrip(";") + "\n"


Line = tuple[bytes, str | None]
"""A row as a line of NDJSON with its end, and its watermark if it is read by one."""


class Session(Protocol):
    """A transaction that only reads, and sees one snapshot.

    All methods raise StatementRefused, DatabaseOutOfReach, TimeoutError and ReplyTooLarge.
    """

    def columns(self) -> Mapping[str, str | None]:
        """The types of the columns by name, as they fit the lines; None for one that only values determine."""
        ...

    def count_after(self, since: str | None, limit: int | None) -> int:
        """The number of rows after the watermark, up to the limit; None: from the first one, without a limit."""
        ...

    def count_without_watermark(self, limit: int) -> int:
        """The number of rows whose watermark is null, up to the limit."""
        ...

    def rows_after(self, since: str | None, count: int) -> Iterator[Line]:
        """The rows after the watermark in its order: `count` of them, and further ones with the watermark of
        the last one. Equal watermarks have equal texts.
        """
        ...

    def rows(self) -> Iterator[Line]:
        """All rows."""
        ...

    def digest(self) -> str:
        """The number of rows, and the sum of their hashes."""
        ...


OpenSession = Callable[[DatabaseAccess, RowsOrigin], AbstractContextManager[Session]]
"""What a dialect is to others."""


def number(text: str) -> int:
    """The count that a statement has returned as text. Raises StatementRefused."""
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX):
        raise StatementRefused("the database does not return a number where one is expected")
    return int(text)


_DIGITS_MAX: Final = 18


def decimal_type(precision: int, scale: int) -> str:
    """The type of columns of decimals."""
    return f"decimal({precision}, {scale})"


PRECISION_MAX: Final = 38
"""Of a type of decimals."""


Call = tuple[str, tuple[str | int | None, ...]]
"""The name of a method of a session, and its arguments."""


class Request(msgspec.Struct, frozen=True):
    """What a process reads for a source. A call that returns rows is the last one."""

    access: DatabaseAccess
    origin: RowsOrigin
    calls: tuple[Call, ...]


ERRORS: Final[Mapping[str, type[Exception]]] = {
    error.__name__: error for error in (StatementRefused, DatabaseOutOfReach, ReplyTooLarge, TimeoutError)
}
"""The errors of a session by name."""
