"""A visit of a page: who visits, what was requested, and the API as this person may use it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeAlias
from urllib.parse import quote, urlencode

import msgspec

from app.access.tenants.values import KeyScope, Principal
from app.features.console.inner_requests import (
    RESPONSE_BYTES_MAX,
    RESPONSE_SECONDS_MAX,
    EncodedPath,
    InnerResponse,
    ResponseTooLarge,
    ResponseTooSlow,
    encoded_path,
)
from app.features.console.navigation import NavigationPage, is_open, pages_of
from app.http.limits.threads import Threads

NoticeKind: TypeAlias = Literal["good", "warning", "bad"]
"""How an action has ended: as requested, in part, or not at all."""
_OK_MAX: Final = 399
# A longer body is a file in a command.
_BODY_MAX: Final = 2_000
JSON: Final = "application/json"
# Decoding more takes a millisecond and longer, for which other requests would wait.
_DECODED_BYTES_MAX: Final = 256 * 1024
# The page that needs most is the feed with a filter: its frame, 24 reads of changes and 20 writers of versions.
_CALLS_MAX: Final = 60
_OPTION_MAX: Final = 2_000
TOO_SLOW: Final[Mapping[str, Any]] = {
    "title": "too slow for a page",
    "status": 504,
    "detail": f"the API has not responded within {RESPONSE_SECONDS_MAX:.0f} s: load the page again. What a form has "
    "requested may have been done nevertheless",
}
"""The problem of a response that does not come in time."""
_RANGE: Final = re.compile(r"([1-9]\d{0,3})([mhd])", re.ASCII)
_HAS_RANGE: Final = re.compile(r"[?&]range=")
_RANGES: Final = ("1h", "24h", "7d", "30d")
_MINUTES: Final = {"m": 1, "h": 60, "d": 1_440}
TOO_LARGE: Final = 413
"""The status of the problem of a response that is too large for a page."""


class ApiProblem(Exception):
    """The API has refused a request of a page. `members`: those of the problem document."""

    def __init__(self, members: Mapping[str, Any]) -> None:
        super().__init__(str(members.get("detail", "")))
        self.members = members

    @property
    def status(self) -> int:
        """The HTTP status."""
        status: int = self.members.get("status", 500)
        return status

    @property
    def code(self) -> str:
        """The code of the type, such as `not-found`."""
        return str(self.members.get("type", "")).rsplit("/", 1)[-1]


class PagePart(NamedTuple):
    """A part of a page: its value, or the problem for which it cannot be shown."""

    value: Any = None
    problem: ApiProblem | None = None


class ApiCall(NamedTuple):
    """A request that a page has sent, which a reader can send as well."""

    method: str
    target: str
    """The path and the query, encoded."""
    headers: tuple[tuple[str, str], ...] = ()
    """Those beside the credential, by name."""
    body: str | None = ""
    """Its text; None for one that is too long for a command, or no text."""


class Sender(Protocol):
    """Sends requests to the API as the visitor. See `InnerRequests.send`."""

    async def send(
        self,
        method: str,
        path: str,
        *,
        query: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        bytes_max: int = RESPONSE_BYTES_MAX,
    ) -> InnerResponse:
        """The response. Raises ResponseTooLarge, ResponseTooSlow."""
        ...


@dataclass(frozen=True, slots=True)
class PageApi:
    """The API as the visitor may use it. Segments of paths that come from users are quoted by `path_of`."""

    sender: Sender
    threads: Threads
    calls: list[ApiCall] = field(default_factory=list)
    """What was sent, in this order. A page shows them as lines of curl."""

    async def get(self, path: str, /, **options: Any) -> Any:
        """The JSON of a resource. An option that is None or empty is left out; a list is repeated.

        Raises ApiProblem.
        """
        return await self.decoded(await self.response("GET", path, options=options))

    async def part(self, path: str, /, **options: Any) -> PagePart:
        """As `get`, for a part of a page that is shown without it if it cannot be read."""
        try:
            return PagePart(await self.get(path, **options))
        except ApiProblem as problem:
            return PagePart(problem=problem)

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        /,
        *,
        headers: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Any:
        """Sends a change. `body`: the value of its JSON. Returns the JSON of the response. Raises ApiProblem."""
        response = await self.response(method, path, body, headers=headers, options=options)
        return await self.decoded(response)

    async def decoded(self, response: InnerResponse) -> Any:
        """The JSON of a response: a large one is decoded in a thread."""
        if len(response.body) > _DECODED_BYTES_MAX:
            return await self.threads.run(response.value)
        return response.value()

    async def response(
        self,
        method: str,
        path: str,
        body: Any = None,
        /,
        *,
        headers: Mapping[str, str] | None = None,
        options: Mapping[str, Any] | None = None,
        bytes_max: int = RESPONSE_BYTES_MAX,
    ) -> InnerResponse:
        """The response to a request, with its headers. A body that is no text of bytes is sent as JSON.

        Raises ApiProblem for a status of 400 and above, with the status 413 for a body of more than `bytes_max`, with
        504 for a response that does not come in time, and for more requests than a page may send.
        """
        if len(self.calls) >= _CALLS_MAX:
            detail = f"a page or a form sends at most {_CALLS_MAX} requests to the API"
            raise ApiProblem({"title": "too many requests for a page", "status": 400, "detail": detail})
        query = _query(options or {})
        text = b"" if body is None else body if isinstance(body, bytes) else msgspec.json.encode(body)
        target = encoded_path(path) + (f"?{urlencode(query)}" if query else "")
        self.calls.append(ApiCall(method, target, _example_headers(headers or {}, text), _example(text)))
        try:
            response = await self.sender.send(
                method, path, query=query, headers=headers, body=text, bytes_max=bytes_max
            )
        except ResponseTooLarge:
            detail = (
                f"the response of the API has more than {bytes_max:,} bytes: choose fewer rows or columns, "
                "or use the command line"
            )
            members = {"title": "too large for a page", "status": TOO_LARGE, "detail": detail}
            raise ApiProblem(members) from None
        except ResponseTooSlow:
            raise ApiProblem(TOO_SLOW) from None
        if response.status > _OK_MAX:
            raise ApiProblem(problem_of(response))
        return response


@dataclass(frozen=True, kw_only=True, slots=True)
class Visit:
    """A request for a page, or of one of its forms."""

    api: PageApi
    principal: Principal
    url: str
    """The public address of the service, without a slash at its end."""
    path: str
    """The path of the page, as it was requested."""
    variables: Mapping[str, str]
    """What the path names, such as `dataset`."""
    query: Mapping[str, str]
    """The options of the address, the last of each name, without the range of time."""
    form_token: str
    """What each form has in its hidden field `token`."""
    range: str = ""
    """The range of time up to now, such as `24h`; empty without one. All links keep it, also those of pages that have
    no use for it.
    """
    notice: str = ""
    """What the action has done after which this page is shown."""
    notice_kind: NoticeKind = "good"
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def may(self, scope: str) -> bool:
        """Whether the credential has this scope on some dataset at least: `read`, `write`, `manage`, `operate`."""
        return KeyScope(scope) in self.principal.scopes

    @property
    def places(self) -> list[NavigationPage]:
        """The pages of the navigation that the credential may open."""
        return pages_of(self.principal)

    def opens(self, path: str) -> bool:
        """Whether the credential may open a page of the navigation, such as `/console/audit`."""
        return is_open(path, self.principal)

    @property
    def span(self) -> timedelta | None:
        """The length of the range of time; None without one. Raises ApiProblem for what is no range."""
        if not self.range:
            return None
        match = _RANGE.fullmatch(self.range)
        if match is None:
            detail = "range: expected minutes, hours or days up to now, such as 24h or 7d"
            raise ApiProblem(
                {
                    "type": "/problems/invalid-request",
                    "title": "The request is not valid",
                    "status": 400,
                    "detail": detail,
                    "errors": [{"pointer": "/range", "detail": detail}],
                }
            )
        return timedelta(minutes=int(match[1]) * _MINUTES[match[2]])

    @property
    def since(self) -> datetime | None:
        """Where the range of time begins; None without one. Raises ApiProblem for what is no range."""
        return None if self.span is None else self.now - self.span

    def keep(self, href: str) -> str:
        """An address of the console, with the range of time of this page. `href`: encoded."""
        address, mark, fragment = href.partition("#")
        if not _RANGE.fullmatch(self.range) or _HAS_RANGE.search(address):
            return href
        return f"{address}{'&' if '?' in address else '?'}range={self.range}{mark}{fragment}"

    @property
    def ranges(self) -> tuple[str, ...]:
        """The ranges of time that pages offer."""
        return _RANGES

    def with_range(self, time_range: str, replaced: Sequence[str] = ()) -> str:
        """This page with a range of time; empty for none. `replaced`: options that it replaces."""
        removed = dict.fromkeys(("page_token", *replaced))
        return self.link(range=time_range or None, **removed)

    def link(self, path: str = "", /, **changes: Any) -> str:
        """This page with other options: one that is None is left out. `path`: of another page.

        Long options are repeated only by a link to the next page of a list, whose token is of these options.
        """
        repeats_all = changes.get("page_token") is not None
        options = {
            name: value
            for name, value in ({} if path else self.query).items()
            if repeats_all or len(value) <= _OPTION_MAX
        }
        options.update({name: value for name, value in changes.items() if value is not None})
        for name, value in changes.items():
            if value is None:
                options.pop(name, None)
        target = quote(path or self.path)
        href = target + (f"?{urlencode(options)}" if options else "")
        return href if "range" in changes else self.keep(href)


async def together(*parts: Awaitable[Any]) -> list[Any]:
    """What the awaitables return, read at the same time. The first error ends the others."""
    tasks = [asyncio.ensure_future(each) for each in parts]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


def path_of(*segments: str) -> EncodedPath:
    """A path below the root, whose segments may have any characters."""
    return EncodedPath("/" + "/".join(quote(segment, safe="") for segment in segments))


def _example_headers(headers: Mapping[str, str], body: bytes) -> tuple[tuple[str, str], ...]:
    usual = {"Content-Type": JSON} if body else {}
    return tuple({**usual, **headers}.items())


def _example(body: bytes) -> str | None:
    try:
        return body.decode() if len(body) <= _BODY_MAX else None
    except UnicodeDecodeError:
        return None


def _query(options: Mapping[str, Any]) -> list[tuple[str, str]]:
    pairs = []
    for name, value in options.items():
        if value is None or value == "" or value == []:
            continue
        values = value if isinstance(value, list | tuple) else (value,)
        pairs += [(name, _text(each)) for each in values]
    return pairs


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def problem_of(response: InnerResponse) -> Mapping[str, Any]:
    """The members of the problem document of a response."""
    try:
        members = response.value()
    except msgspec.DecodeError:
        members = None
    if not isinstance(members, dict):
        return {"title": "the service failed", "status": response.status, "detail": ""}
    return members
