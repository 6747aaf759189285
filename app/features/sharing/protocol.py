"""Requests and responses of Delta Sharing, as its protocol names them."""

from __future__ import annotations

import msgspec


class TableQuery(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The body of a query for the files of a table. Members of later releases are ignored."""

    predicate_hints: tuple[str, ...] | None = None
    json_predicate_hints: str | None = None
    limit_hint: int | None = None
    version: int | None = None
    timestamp: str | None = None
    starting_version: int | None = None


class ShareItem(msgspec.Struct, frozen=True, kw_only=True):
    """A share."""

    name: str
    id: str


class ShareDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The one share of a request for it."""

    share: ShareItem


class SchemaItem(msgspec.Struct, frozen=True, kw_only=True):
    """A schema of a share."""

    name: str
    share: str


class TableItem(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A table of a schema. `id`: the same as long as the table exists."""

    name: str
    schema: str
    share: str
    share_id: str
    id: str


class ItemPage(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A page of a list. `next_page_token`: absent on the last page."""

    items: tuple[ShareItem, ...] | tuple[SchemaItem, ...] | tuple[TableItem, ...]
    next_page_token: str | None = None
