"""Pages of lists."""

from __future__ import annotations

from typing import Annotated

import msgspec

from app.http.parameters.query_parameters import PAGE_SIZE_MAX


class PageOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which page of a list; the options of an operation extend it with its filters."""

    page_size: Annotated[int, msgspec.Meta(ge=1, le=PAGE_SIZE_MAX)] = 100
    """Items on a page."""
    page_token: str | None = None
    """`next_page_token` of the page before; absent for the first page."""
