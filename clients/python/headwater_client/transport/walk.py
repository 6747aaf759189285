"""Iterators over pages of the feed, of a table, or of a list."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any, Final, Literal, Protocol, TypeVar

import httpx2

Since = int | Literal["earliest", "now"]
FeedSince = int | str
"""A position that a page has, or `earliest`, `now` or `snapshot`."""
_STARTS: Final = ("since", "since_version", "since_time")


class FeedPage(Protocol):
    """A page with the position of the next one."""

    @property
    def next_since(self) -> int | str: ...

    @property
    def pending(self) -> int: ...


class ListPage(Protocol):
    """A page with the token of the next one."""

    @property
    def next_page_token(self) -> str | None: ...


Item = TypeVar("Item", covariant=True)


class ItemPage(ListPage, Protocol[Item]):
    """A page of a list."""

    @property
    def items(self) -> tuple[Item, ...]: ...


Positioned = TypeVar("Positioned", bound=FeedPage)
Listed = TypeVar("Listed", bound=ListPage)


async def walk_feed(
    fetch: Callable[[dict[str, Any]], Awaitable[httpx2.Response]],
    decode: Callable[[httpx2.Response], Positioned],
    params: dict[str, Any],
    *,
    follow: bool,
    poll_seconds: int,
) -> AsyncGenerator[Positioned, None]:
    """Pages from the requested position to the head, or to the position `until`, if `params` have it.

    With `follow` the iteration does not end, and a poll without changes gives an empty page.
    """
    if follow:
        params = {**params, "feed": "longpoll", "timeout": poll_seconds}
    while True:
        page = decode(await fetch(params))
        # Between a -C and its +C the service stops before both, so the last page may leave the position as it is.
        stopped = "until" in params and page.next_since in (params["until"], params.get("since"))
        params = {name: value for name, value in params.items() if name not in _STARTS}
        params["since"] = page.next_since
        yield page
        if not follow and (page.pending == 0 or stopped):
            return


async def walk_list(
    fetch: Callable[[dict[str, Any]], Awaitable[httpx2.Response]],
    decode: Callable[[httpx2.Response], Listed],
    params: dict[str, Any],
) -> AsyncGenerator[Listed, None]:
    """Every page of a list, or of one version of a table."""
    while True:
        page = decode(await fetch(params))
        yield page
        if page.next_page_token is None:
            return
        params = {**params, "page_token": page.next_page_token}
