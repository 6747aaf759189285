"""What a kind of database is to a source of kind `sql`: how it is connected to, and how its rows are read.

A dialect opens a `Session`: one transaction that only reads, and sees one snapshot. Its methods write SQL, and return
rows as lines of NDJSON. `SqlRows` has the bounds of a round, and all else that databases have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from app.infra.outbound.bounds import Bounds


class StatementRefused(Exception):
    """The database refuses a statement, or its reply is not what was requested: a repetition would fail, too."""


class DatabaseOutOfReach(Exception):
    """The database cannot be reached, or not now."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DatabaseAccess:
    """Where and as whom to connect. `address`: one of the host, which was checked. `seconds`: the time for all use.

    `plain`: whether the connection may be unencrypted, and the certificate unverified.
    """

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

    All methods raise StatementRefused, DatabaseOutOfReach, TimeoutError, ReplyTooLarge, and what `Bounds.check` raises.
    """

    def columns(self) -> Mapping[str, str | None]:
        """The types of the columns by name, as they fit the lines; None for one that only values determine."""
        ...

    def count_after(self, since: str | None, limit: int | None) -> int:
        """The number of rows after the watermark, up to the limit; None: from the first one, without a limit."""
        ...

    def rows_after(self, since: str | None, count: int) -> Generator[Line]:
        """The rows after the watermark in its order: `count` of them, and further ones with the watermark of
        the last one.

        Equal watermarks have equal texts. A generator that is not read to its end ends the connection.
        """
        ...

    def rows(self) -> Generator[Line]:
        """All rows. A generator that is not read to its end ends the connection."""
        ...

    def digest(self) -> str:
        """The number of rows, and the sum of their hashes."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Dialect:
    """A kind of database. `scheme`, `port`: of its URLs. `buffered_bytes`: how much of later rows its client may have
    in memory while it waits for a row of the given size.
    """

    scheme: str
    port: int
    session: Callable[[DatabaseAccess, RowsOrigin, Bounds], AbstractContextManager[Session]]
    buffered_bytes: Callable[[int], int]


def number(text: str) -> int:
    """The count that a statement has returned as text. Raises StatementRefused."""
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS_MAX):
        raise StatementRefused("the database does not return a number where one is expected")
    return int(text)


_DIGITS_MAX = 18
