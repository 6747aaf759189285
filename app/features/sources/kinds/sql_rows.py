"""Kind `sql`: rows of a table or a query of a database, by a growing column or as whole snapshots.

By watermark, the position is the greatest value that was read; rows with equal values are read together. Without one,
the position is a digest of all rows: a round reads all of them if it has changed.

Rows are read one at a time as they arrive, within the limits of the round: a server may send more than it was asked
for. The database is read by a process of its own (`sql_serve`), since a client keeps what a server sends in memory, and
may wait for it without end. How a kind of database is connected to and read is the matter of its `Session`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Annotated, Any, BinaryIO, Final
from urllib.parse import SplitResult, unquote, urlsplit

import msgspec

from app.features.sources.kinds.configs import checked_config, refused_config
from app.features.sources.kinds.sql_dialect import (
    PORTS,
    Call,
    DatabaseAccess,
    DatabaseOutOfReach,
    Line,
    Request,
    RowsOrigin,
    StatementRefused,
)
from app.features.sources.kinds.sql_frames import FrameReader
from app.features.sources.ports import (
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
from app.features.sources.values import refused_source
from app.infra.kafka.errors import SourceFailed, SourceUnavailable
from app.infra.outbound.addresses import AddressRefused, Rules, Target
from app.infra.outbound.bounds import Bounds, ReplyTooLarge
from app.infra.outbound.connector import CONNECT_SECONDS_MAX, Connector
from app.infra.outbound.limited_process import LimitedProcesses
from app.kernel.format.errors import FieldError
from app.kernel.format.operation import Operation
from app.kernel.format.rows.formats import Format
from app.kernel.format.schema.shapes import NULLS, Shape, common_shape
from app.kernel.format.schema.value_shapes import Fraction, shape_of_all

PROCESSES: Final = LimitedProcesses("app.features.sources.kinds.sql_serve")
"""The processes that read databases."""
# A row as a line, and the description of the columns.
_FRAME_FACTOR: Final = 2
_FRAME_BYTES: Final = 4 * 1024 * 1024
# A client has a row several times: as it has arrived, in the buffers of its growth, as texts, and as a line.
_MEMORY_FACTOR: Final = 6
_MEMORY_BYTES: Final = 64 * 1024 * 1024
# Rows with the value of the last one are read beyond the limits of a round, up to these.
_EQUAL_ROWS_MAX: Final = 100_000
_EQUAL_BYTES_MAX: Final = 64 * 1024 * 1024
_ROW: Final = msgspec.json.Decoder(dict[str, Any], float_hook=Fraction)
# Of rows whose values are seen together.
_SEEN_BYTES: Final = 1024 * 1024
_NULLS_COUNTED_MAX: Final = 1_000
# The share of its time after which a round by watermark takes no further value.
_READING_SHARE: Final = 0.75
_TYPES: Final = dict[str, str | None]
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
    needs: str = "a row"
    secrets: frozenset[str] = frozenset({"password"})
    in_task: bool = False

    def checked(self, config: dict[str, Any], environment: SourceEnvironment) -> dict[str, Any]:
        """See `SourceKind.checked`."""
        del environment
        sql_config = checked_config(config, SqlConfig)
        try:
            _target(sql_config.url)
        except ValueError as reason:
            raise refused_source("/config/url", str(reason)) from None
        if "\0" in (sql_config.password or ""):
            raise refused_config(
                FieldError(pointer="/config/password", detail="a password cannot have the character U+0000")
            )
        if (sql_config.table is None) == (sql_config.query is None):
            raise refused_config(
                FieldError(pointer="/config/table", detail="specify either the table or a query")
            )
        return {name: value for name, value in msgspec.to_builtins(sql_config).items() if value is not None}

    def check_addresses(self, config: dict[str, Any], environment: SourceEnvironment) -> None:
        """See `Connects.check_addresses`."""
        _, target = _target(msgspec.convert(config, SqlConfig).url)
        try:
            _connector(environment.allow).addresses(target, CONNECT_SECONDS_MAX)
        except (AddressRefused, TimeoutError) as reason:
            raise refused_source("/config/url", str(reason)) from None

    def plan(self, place: Place, position: Position, limits: RoundLimits, ledger: Ledger) -> RoundPlan | None:
        """See `SourceKind.plan`."""
        del ledger
        config = msgspec.convert(place.config, SqlConfig)
        calls: list[Call] = [("digest", ())]
        if config.watermark is None:
            with self._answer(config, place.environment, calls, limits.seconds) as answer:
                if position.get("digest") == answer.value(str):
                    return None
            return RoundPlan(parts=(Part(content={}),), position={}, operation=Operation.SNAPSHOT)
        calls = [
            ("count_without_watermark", (_NULLS_COUNTED_MAX,)),
            ("count_after", (_since(position), limits.rows + 1)),
        ]
        with self._answer(config, place.environment, calls, limits.seconds) as answer:
            _refuse_nulls(config.watermark, answer.value(int))
            count = answer.value(int)
        if not count:
            return None
        return RoundPlan(
            parts=(Part(content={"since": position.get("watermark")}),),
            position=dict(position),
            more=count > limits.rows,
        )

    def fetch(self, place: Place, part: Part, limits: RoundLimits, output: Output) -> PartRead:
        """See `SourceKind.fetch`."""
        config = msgspec.convert(place.config, SqlConfig)
        calls: list[Call]
        if config.watermark is None:
            calls = [("columns", ()), ("digest", ()), ("rows", ())]
            # They see the same rows: the transaction has one snapshot.
            with self._answer(config, place.environment, calls, limits.seconds, output.check) as answer:
                columns, digest = _Columns(database_types=answer.value(_TYPES)), answer.value(str)
                with _body(output, columns) as body:
                    _copy_all(columns.noted(answer.rows()), body, limits)
            return PartRead(position={"digest": digest})
        since = part.content["since"]
        calls = [("columns", ()), ("rows_after", (since, limits.rows))]
        with self._answer(config, place.environment, calls, limits.seconds, output.check) as answer:
            columns = _Columns(database_types=answer.value(_TYPES))
            with _body(output, columns) as body:
                last = _copy_values(columns.noted(answer.rows()), body, limits)
        watermark = since if last is None else last
        return PartRead(position={} if watermark is None else {"watermark": watermark})

    def lag(self, place: Place, position: Position, ledger: Ledger) -> SourceLag:
        """See `SourceKind.lag`. Of snapshots, it is not known."""
        del ledger
        config = msgspec.convert(place.config, SqlConfig)
        if config.watermark is None:
            return SourceLag()
        calls: list[Call] = [("count_after", (_since(position), None))]
        with self._answer(config, place.environment, calls, RoundLimits().seconds) as answer:
            return SourceLag(rows=answer.value(int))

    def committed(self, place: Place, position: Position) -> None:
        """A database does not need to know how far it was read."""

    @contextmanager
    def _answer(
        self,
        config: SqlConfig,
        environment: SourceEnvironment,
        calls: Sequence[Call],
        seconds: float,
        check: Callable[[], None] | None = None,
    ) -> Iterator[FrameReader]:
        """The answer of a process that reads in one transaction, which sees one snapshot. All of it takes these seconds
        at most; the process is killed once the context ends.

        Raises SourceUnavailable, SourceFailed, and what `check` raises.
        """
        try:
            parts, target = _target(config.url)
        except ValueError as reason:
            # It was registered with an earlier release.
            raise SourceFailed(f"the URL of the source is not valid: {reason}") from None
        frame_bytes_max = _FRAME_FACTOR * self.row_bytes_max + _FRAME_BYTES
        memory_bytes = _MEMORY_FACTOR * frame_bytes_max + _MEMORY_BYTES
        bounds = Bounds(deadline=time.monotonic() + seconds)
        if check is not None:
            bounds = replace(bounds, check=check)
        origin = RowsOrigin(table=config.table, query=config.query, watermark=config.watermark)
        public_url = f"{target.scheme}://{target.host}:{target.port}{target.path}"
        try:
            [address, *_] = _connector(environment.allow).addresses(target, CONNECT_SECONDS_MAX)
            access = DatabaseAccess(
                scheme=target.scheme,
                host=target.host,
                address=address,
                port=target.port,
                user=unquote(parts.username or ""),
                password=config.password or "",
                database=unquote(target.path.strip("/")),
                seconds=seconds,
                plain=environment.plain_http,
            )
            request = msgspec.json.encode(Request(access, origin, tuple(calls)))
            with PROCESSES.answer(request, bounds, memory_bytes) as stream:
                yield FrameReader(stream, frame_bytes_max)
        except AddressRefused as reason:
            raise SourceFailed(f"{public_url} cannot be read: {reason}") from None
        except ReplyTooLarge as error:
            raise SourceFailed(
                f"{public_url} sends a row of more than {self.row_bytes_max} bytes, the limit of a row: {error}"
            ) from None
        except TimeoutError as error:
            raise SourceUnavailable(f"{public_url} takes more than {seconds:.0f} s: {error}") from error
        except StatementRefused as error:
            raise SourceFailed(f"{public_url} refuses the query: {error}") from error
        except DatabaseOutOfReach as error:
            raise SourceUnavailable(f"{public_url} is out of reach: {error}") from error


@dataclass(kw_only=True, slots=True)
class _Columns:
    """The types of the columns of rows.

    `database_types`: as the database describes them, None for one whose values are seen. `types`: the columns, once
    `settle` was called; none without a row, unless the database describes all of them.
    """

    database_types: Mapping[str, str | None]
    types: dict[str, str | Shape] = field(default_factory=dict)
    _lines: list[bytes] = field(default_factory=list)
    _waiting_bytes: int = 0

    def noted(self, rows: Iterator[Line]) -> Iterator[Line]:
        """The rows."""
        sees = None in self.database_types.values()
        for row in rows:
            if not self.types:
                self.types.update({name: type_ or NULLS for name, type_ in self.database_types.items()})
            if sees:
                self._lines.append(row[0])
                self._waiting_bytes += len(row[0])
                if self._waiting_bytes > _SEEN_BYTES:
                    self._see()
            yield row

    def settle(self) -> None:
        """Called once the rows were read."""
        if self._lines:
            self._see()
        if not self.types and None not in self.database_types.values():
            self.types.update({name: type_ for name, type_ in self.database_types.items() if type_})

    def _see(self) -> None:
        lines, self._lines, self._waiting_bytes = self._lines, [], 0
        rows = []
        for line in lines:
            # A row that cannot be decoded is reported where it is.
            with suppress(msgspec.DecodeError):
                rows.append(_ROW.decode(line))
        for name, type_ in self.database_types.items():
            if type_ is None:
                before = self.types.get(name, NULLS)
                assert not isinstance(before, str)
                self.types[name] = common_shape(before, shape_of_all([row.get(name) for row in rows]))


def _target(url: str) -> tuple[SplitResult, Target]:
    """Raises ValueError with the reason why it is no URL of a database."""
    parts = urlsplit(url)
    if parts.scheme not in PORTS or not parts.hostname or not parts.path.strip("/") or not parts.username:
        raise ValueError(
            "expected postgresql://user@host:5432/database, or mysql:// or mariadb:// with port 3306"
        )
    if "\0" in unquote(parts.username + parts.path):
        raise ValueError("neither the user nor the database can have the character U+0000")
    if parts.password is not None:
        raise ValueError("the password is a member of its own, which is never shown")
    if parts.query or parts.fragment:
        raise ValueError("a URL of a database has no query here")
    port = parts.port or PORTS[parts.scheme]
    return parts, Target(scheme=parts.scheme, host=parts.hostname, port=port, path=parts.path)


def _since(position: Position) -> str | None:
    """The watermark of the position. Raises SourceFailed."""
    watermark = position.get("watermark")
    if watermark is not None and not isinstance(watermark, str):
        raise SourceFailed(f'the position {position} is not valid; expected {{"watermark": "…"}}')
    return watermark


def _refuse_nulls(watermark: str, count: int) -> None:
    """Raises SourceFailed for rows that the order of the watermark does not have."""
    if count:
        rows = f"{count} rows" if count < _NULLS_COUNTED_MAX else f"{count} rows or more"
        raise SourceFailed(
            f"{rows} have no value in the column {watermark!r}, the watermark, so they would never be read: give them "
            f"one, or leave them out by a query that ends with WHERE {watermark} IS NOT NULL"
        )


@contextmanager
def _body(output: Output, columns: _Columns) -> Iterator[BinaryIO]:
    origin = f"rows read at {time.strftime('%H:%M:%S', time.gmtime())}"
    with output.body(Format.NDJSON, origin, columns=columns.types) as body:
        yield body
        columns.settle()


def _copy_all(rows: Iterator[Line], body: BinaryIO, limits: RoundLimits) -> None:
    """Writes the rows of a snapshot as lines. Raises SourceFailed if these are more than the limits."""
    size_bytes = 0
    for count, (line, _) in enumerate(rows, 1):
        size_bytes += len(line)
        if count > limits.rows or size_bytes > limits.bytes:
            raise SourceFailed(
                f"the snapshot has more than {limits.rows} rows or {limits.bytes} bytes, and is read in one round: "
                "raise max_rows and max_bytes, or read by a watermark; for the columns of a new dataset, register the "
                "dataset first"
            )
        body.write(line)


def _copy_values(rows: Iterator[Line], body: BinaryIO, limits: RoundLimits) -> str | None:
    """Writes rows as lines up to the limits, those with equal watermarks together; returns the last watermark.

    Raises SourceFailed if too many rows beyond the limits have the same one.
    """
    last: str | None = None
    count = size_bytes = 0
    stop_at = time.monotonic() + limits.seconds * _READING_SHARE
    for line, value in rows:
        assert value is not None
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


@lru_cache(maxsize=4)
def _connector(allow: tuple[str, ...]) -> Connector:
    return Connector(rules=Rules.of(allow, http=True, setting="HEADWATER_SOURCE"))
