"""Page tokens: positions in a listing, opaque to clients, and bound to the request that listed them."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.identifiers import is_uuid

PAGE_ROWS_MAX: Final = 50_000
"""Rows or changes on a page, at most. What a page costs beside its rows is shared by more of them; its size in memory
has a bound of its own.
"""
_DIGITS_MAX: Final = 19
_TOKEN_CHARACTERS_MAX: Final = 1_024
_DIGEST_BYTES: Final = 8


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a listing. `next_token` is None on the last page."""

    items: list[Any]
    next_token: str | None

    def filtered(self, is_visible: Callable[[Any], bool]) -> Page:
        """The page with the items that may be shown; the next page is the same."""
        return Page(items=[item for item in self.items if is_visible(item)], next_token=self.next_token)

    def mapped(self, item_of: Callable[[Any], Any]) -> Page:
        """The page with each item as `item_of` returns it."""
        return Page(items=[item_of(item) for item in self.items], next_token=self.next_token)


class PageTokens:
    """The tokens of one listing: with another scope, a token would skip items, so it is refused.

    `scope`: the name of the list, what it is a list of (tenant, dataset), and the filters that select its items.
    """

    def __init__(self, *scope: Any) -> None:
        text = msgspec.json.encode(scope, order="sorted")
        self._digest = hashlib.sha256(text).digest()[:_DIGEST_BYTES]

    def encode(self, position: str) -> str:
        """The token of the page that starts behind `position`."""
        return urlsafe_b64encode(msgspec.msgpack.encode((position, self._digest))).decode().rstrip("=")

    def position(self, token: str) -> str:
        """The position in a token. Raises InvalidRequest for an invalid token, or one of another request."""
        if len(token) > _TOKEN_CHARACTERS_MAX:
            raise unknown_token()
        try:
            raw = urlsafe_b64decode(token + "=" * (-len(token) % 4))
            position, digest = msgspec.msgpack.decode(raw, type=tuple[str, bytes])
        except (ValueError, msgspec.DecodeError):
            raise unknown_token() from None
        if "\0" in position:
            raise unknown_token()
        if digest != self._digest:
            detail = "expected next_page_token of the page before, with the same path and filters"
            raise InvalidRequest(
                "page_token belongs to another request", [FieldError(pointer="/page_token", detail=detail)]
            )
        return position

    def number(self, token: str, maximum: int) -> int:
        """The number in a token. Raises InvalidRequest like `position`."""
        position = self.position(token)
        if (
            not (position.isascii() and position.isdigit())
            or len(position) > _DIGITS_MAX
            or int(position) > maximum
        ):
            raise unknown_token()
        return int(position)

    def id(self, token: str) -> str:
        """The id in a token. Raises InvalidRequest like `position`."""
        position = self.position(token)
        if not is_uuid(position):
            raise unknown_token()
        return position

    def page(
        self,
        rows: Sequence[Any],
        page_size: int,
        position: Callable[[Any], str],
        item: Callable[[Any], Any],
    ) -> Page:
        """A page of `rows`, which were read with a limit of `page_size` + 1 to detect a next page."""
        page_rows = rows[:page_size]
        more = len(rows) > page_size
        return Page(
            items=[item(row) for row in page_rows],
            next_token=self.encode(position(page_rows[-1])) if more else None,
        )


def unknown_token() -> InvalidRequest:
    """The error for a text that is not a page token."""
    error = FieldError(pointer="/page_token", detail="expected next_page_token of the page before")
    return InvalidRequest("page_token is not a token of this service", [error])
