"""Kind `http`: the records of a JSON API that returns pages by cursor, in its order, each once.

The position is the cursor of a page, and how many of its records were read. A page without a next cursor is requested
again later, and continues after those: it may have grown, or have got a next cursor.
"""

from __future__ import annotations

import http.client
import re
import time
import zlib
from contextlib import suppress
from functools import lru_cache
from typing import Annotated, Any, Final
from urllib.parse import quote

import msgspec

from app.features.sources.kinds.configs import checked_config, refused_config
from app.features.sources.kinds.page_texts import elements, member
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
from app.infra.outbound.addresses import AddressRefused, Rules
from app.infra.outbound.connector import CONNECT_SECONDS_MAX, Connector
from app.infra.outbound.foreign import foreign_text
from app.kernel.codecs.not_json import reason_of
from app.kernel.format.errors import FieldError
from app.kernel.format.rows.formats import Format

_PAGE_BYTES_MAX: Final = 32 * 1024 * 1024
_PAGE_RECORDS_MAX: Final = 200_000
_PAGE_SECONDS_MAX: Final = 30.0
_REASON_BYTES_MAX: Final = 64 * 1024
_STEP_BYTES: Final = 1024 * 1024
_GZIP: Final = 16 + zlib.MAX_WBITS
# What the decoder says of a text that ends too early.
_TRUNCATED: Final = "Input data was truncated"
_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
_NAMES: Final = re.compile(r'[^"\\\x00-\x1f]*')
_OWN_HEADERS: Final = {
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "authorization",
    "accept-encoding",
}
_TRANSIENT: Final = {408, 425, 429}
_CURSOR: Final = msgspec.json.Decoder(str | int | None)

_Path = Annotated[str, msgspec.Meta(max_length=1_000)]


class HttpConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The config of a source that reads an API. `records`, `next_cursor`: the members of a page, with a dot between the
    names on the way; without `records` the page is the list. `token`: sent as a bearer token, never shown.
    """

    url: str
    cursor_parameter: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
    next_cursor: _Path = ""
    records: _Path = ""
    start_cursor: str | int | None = None
    headers: dict[str, str] = {}
    token: Annotated[str, msgspec.Meta(max_length=10_000)] | None = None


class _Page(msgspec.Struct, frozen=True, kw_only=True):
    """A page: the texts of its records, and the cursor of the page after it."""

    records: list[bytes]
    next_cursor: str | int | None


class _Content(msgspec.Struct, frozen=True, kw_only=True):
    """The body of a page. `delimited`: whether the server has stated where it ends."""

    body: bytes
    delimited: bool


class _Walk(msgspec.Struct, kw_only=True):
    """The way through pages of which each leads to the next, across rounds.

    `pages`: their number. `mark`: the cursor of one of them. It moves to the last page whenever the number has doubled,
    so that a circle of any length comes back to it, after three times its length at most.
    """

    mark: str | int | None = None
    pages: int = 0

    def returns_to(self, cursor: str | int) -> bool:
        """Goes to the page at the cursor: whether the way has been there."""
        if self.pages and _sent(cursor) == _sent(self.mark):
            return True
        self.pages += 1
        if self.pages & (self.pages - 1) == 0:
            self.mark = cursor
        return False


_WALK: Final = _Walk.__struct_fields__


class _BrokenOff(Exception):
    """The body of a page that is not there as a whole."""

    def __init__(self, received: int, reason: object = None) -> None:
        super().__init__(f"it broke off after {received} bytes" + (f" ({reason})" if reason else ""))


class HttpPages:
    """See the module. It waits for others, so its parts are fetched by threads of workers."""

    needs = "a record"
    secrets: frozenset[str] = frozenset({"token"})
    in_task = False

    def checked(self, config: dict[str, Any], environment: SourceEnvironment) -> dict[str, Any]:
        """See `SourceKind.checked`."""
        del environment
        http_config = checked_config(config, HttpConfig)
        for name in ("records", "next_cursor"):
            if not _NAMES.fullmatch(getattr(http_config, name)):
                detail = 'expected names without `"`, `\\` and control characters'
                raise refused_config(FieldError(pointer=f"/config/{name}", detail=detail))
        for name, value in http_config.headers.items():
            if not _HEADER.fullmatch(name) or name.lower() in _OWN_HEADERS or not _is_plain(value):
                raise refused_config(
                    FieldError(pointer="/config/headers", detail=f"the header {name!r} cannot be sent")
                )
        if http_config.token is not None and not _is_plain(http_config.token):
            raise refused_config(FieldError(pointer="/config/token", detail="expected printable ASCII"))
        return {name: value for name, value in msgspec.to_builtins(http_config).items() if value is not None}

    def check_addresses(self, config: dict[str, Any], environment: SourceEnvironment) -> None:
        """See `Connects.check_addresses`."""
        connector = _connector(environment.allow, environment.plain_http)
        try:
            connector.addresses(connector.rules.target(config["url"]), CONNECT_SECONDS_MAX)
        except (AddressRefused, TimeoutError) as reason:
            raise refused_source("/config/url", str(reason)) from None

    def plan(self, place: Place, position: Position, limits: RoundLimits, ledger: Ledger) -> RoundPlan | None:
        """See `SourceKind.plan`."""
        del ledger
        config = msgspec.convert(place.config, HttpConfig)
        cursor, read = _place(config, position)
        page = _page(config, place.environment, cursor, limits.seconds)
        if len(page.records) <= read and page.next_cursor in (None, cursor):
            return None
        content = {
            "cursor": cursor,
            "read": read,
            **{name: position[name] for name in _WALK if name in position},
        }
        return RoundPlan(parts=(Part(content=content),), position=dict(position))

    def fetch(self, place: Place, part: Part, limits: RoundLimits, output: Output) -> PartRead:
        """See `SourceKind.fetch`."""
        config = msgspec.convert(place.config, HttpConfig)
        cursor, read = part.content["cursor"], part.content["read"]
        deadline = time.monotonic() + limits.seconds
        rows = size_bytes = pages = 0
        seen = {_sent(cursor)}
        walk = _Walk(**{name: part.content[name] for name in _WALK if name in part.content})
        while rows < limits.rows and size_bytes < limits.bytes and pages < limits.items:
            output.check()
            page = _page(config, place.environment, cursor, max(1.0, deadline - time.monotonic()))
            fresh = page.records[read:]
            if fresh:
                # The line ends of JSON are between its values: within a text they are escaped.
                text = b"".join(record.replace(b"\n", b" ") + b"\n" for record in fresh)
                with output.body(Format.NDJSON, _named(cursor)) as body:
                    body.write(text)
                rows, size_bytes = rows + len(fresh), size_bytes + len(text)
            pages += 1
            if page.next_cursor in (None, cursor):
                read = max(read, len(page.records))
                return PartRead(position={"cursor": cursor, "read": read})
            if walk.returns_to(page.next_cursor) or _sent(page.next_cursor) in seen:
                raise SourceFailed(
                    f"{config.url} leads in a circle: {_named(cursor)} is followed by the one at cursor "
                    f"{page.next_cursor!r}, which was read already"
                )
            seen.add(_sent(page.next_cursor))
            cursor, read = page.next_cursor, 0
            if time.monotonic() >= deadline:
                break
        return PartRead(position={"cursor": cursor, "read": read, **msgspec.to_builtins(walk)})

    def lag(self, place: Place, position: Position, ledger: Ledger) -> SourceLag:
        """An API does not say how much it has."""
        del place, position, ledger
        return SourceLag()

    def committed(self, place: Place, position: Position) -> None:
        """Nothing is sent to the API."""


def _place(config: HttpConfig, position: Position) -> tuple[str | int | None, int]:
    """The cursor of the next page, and how many of its records were read. Raises SourceFailed."""
    cursor, read = position.get("cursor", config.start_cursor), position.get("read", 0)
    if not isinstance(cursor, str | int | None) or not isinstance(read, int) or read < 0:
        raise SourceFailed(f'the position {position} is not valid; expected {{"cursor": "…", "read": 0}}')
    return cursor, read


def _page(
    config: HttpConfig, environment: SourceEnvironment, cursor: str | int | None, seconds: float
) -> _Page:
    """Raises SourceUnavailable, SourceFailed."""
    where = _named(cursor)
    try:
        content = _requested(config, environment, cursor, min(seconds, _PAGE_SECONDS_MAX))
    except _BrokenOff as error:
        raise SourceUnavailable(f"{config.url} does not send all of {where}: {error}") from None
    try:
        return _decoded(config, content.body)
    except (ValueError, RecursionError) as error:
        if not content.delimited and str(error) == _TRUNCATED:
            raise SourceUnavailable(
                f"{config.url} does not send all of {where}: {_BrokenOff(len(content.body))}"
            ) from None
        raise SourceFailed(
            f"{config.url} returns no page as configured: {foreign_text(error)}; {where} has {len(content.body)} bytes"
        ) from None


def _decoded(config: HttpConfig, content: bytes) -> _Page:
    """Raises ValueError, RecursionError for a text that is no page, SourceFailed."""
    record_list = member(content, config.records, required=True)
    records = elements(record_list or b"[]", _PAGE_RECORDS_MAX)
    if records is None:
        raise SourceFailed(
            f"{config.url} returns pages of more than {_PAGE_RECORDS_MAX} records: request smaller ones"
        )
    following = member(content, config.next_cursor) if config.next_cursor else None
    try:
        next_cursor = None if following is None else _CURSOR.decode(following)
    except msgspec.DecodeError as error:
        raise ValueError(f"the member {config.next_cursor}: {reason_of(following or b'', error)}") from None
    return _Page(records=records, next_cursor=None if next_cursor == "" else next_cursor)


def _named(cursor: str | int | None) -> str:
    """The name of a page in messages."""
    return "the first page" if cursor is None else f"the page at cursor {cursor!r}"


def _requested(
    config: HttpConfig, environment: SourceEnvironment, cursor: str | int | None, seconds: float
) -> _Content:
    """The body of a page. Raises SourceUnavailable, SourceFailed, _BrokenOff."""
    url, value = config.url, _sent(cursor)
    if value is not None:
        separator = "&" if "?" in url else "?"
        url += f"{separator}{quote(config.cursor_parameter, safe='')}={quote(value, safe='')}"
    headers = {"Accept": "application/json", "User-Agent": "Headwater-Sources/1", **config.headers}
    if config.token is not None:
        headers["Authorization"] = f"Bearer {config.token}"
    connector = _connector(environment.allow, environment.plain_http)
    try:
        target = connector.rules.target(url)
        with connector.connected(target, time.monotonic() + seconds) as connection:
            connection.request("GET", target.path, headers=headers)
            response = connection.getresponse()
            _check_status(config.url, response)
            delimited = bool(response.chunked) or response.length is not None
            content = _received(response)
    except AddressRefused as reason:
        raise SourceFailed(f"{config.url} cannot be read: {reason}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        detail = foreign_text(f"{type(error).__name__}: {error}")
        raise SourceUnavailable(f"{config.url} does not answer: {detail}") from error
    if len(content) <= _PAGE_BYTES_MAX:
        content = _expanded(config.url, response.headers.get("Content-Encoding", ""), content)
    if len(content) > _PAGE_BYTES_MAX:
        raise SourceFailed(
            f"{config.url} returns pages of more than {_PAGE_BYTES_MAX} bytes: request smaller ones"
        )
    return _Content(body=content, delimited=delimited)


def _sent(cursor: str | int | None) -> str | None:
    """The text that a cursor is sent as; None for none."""
    return None if cursor is None else str(cursor)


def _check_status(url: str, response: http.client.HTTPResponse) -> None:
    """Raises SourceUnavailable, SourceFailed for a response that is no page."""
    status = response.status
    if status in _TRANSIENT or status >= 500:
        raise SourceUnavailable(f"{url} answers with status {status}", status=status)
    if not 200 <= status < 300:
        with suppress(OSError, http.client.HTTPException, ValueError):
            reason = foreign_text(response.read(_REASON_BYTES_MAX))
            raise SourceFailed(f"{url} answers with status {status}: {reason}", status=status)
        raise SourceFailed(f"{url} answers with status {status}", status=status)


def _received(response: http.client.HTTPResponse) -> bytes:
    """The body as it was sent, or more of it than a page may have. Raises _BrokenOff."""
    content = bytearray()
    try:
        while len(content) <= _PAGE_BYTES_MAX and (piece := response.read(_STEP_BYTES)):
            content += piece
    except http.client.IncompleteRead as error:
        # Of a chunk that breaks off, the bytes are those of the cause.
        parts = [
            each.partial for each in (error, error.__cause__) if isinstance(each, http.client.IncompleteRead)
        ]
        raise _BrokenOff(len(content) + sum(map(len, parts))) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise _BrokenOff(len(content), foreign_text(f"{type(error).__name__}: {error}")) from error
    # The client of Python says nothing of a body that is shorter than its Content-Length.
    if response.length and len(content) <= _PAGE_BYTES_MAX:
        raise _BrokenOff(len(content), f"{len(content) + response.length} were announced")
    return bytes(content)


def _expanded(url: str, encoding: str, content: bytes) -> bytes:
    """The body without its encoding, or more of it than a page may have: some servers compress what was requested
    as it is. Raises _BrokenOff, SourceFailed.
    """
    match encoding.strip().lower():
        case "" | "identity":
            return content
        case "gzip" | "x-gzip":
            member = zlib.decompressobj(_GZIP)
            try:
                expanded = member.decompress(content, _PAGE_BYTES_MAX + 1)
            except zlib.error as error:
                raise SourceFailed(f"{url} returns a page that is not gzip, as it says: {error}") from None
            if not member.eof and len(expanded) <= _PAGE_BYTES_MAX:
                raise _BrokenOff(len(content), "the end of gzip is missing")
            return expanded
    raise SourceFailed(
        f"{url} returns a page with the Content-Encoding {foreign_text(encoding)!r}; expected none, or gzip"
    )


def _is_plain(value: str) -> bool:
    return value.isascii() and value.isprintable()


@lru_cache(maxsize=4)
def _connector(allow: tuple[str, ...], plain_http: bool) -> Connector:
    return Connector(rules=Rules.of(allow, http=plain_http, setting="HEADWATER_SOURCE"))
