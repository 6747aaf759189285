"""Values of keys. Generated from openapi/openapi.json by `make openapi`."""

from __future__ import annotations

from datetime import datetime

import msgspec


class CreatedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A new API key with its text."""

    id: str
    """Its id, which jobs and timelines name as the actor."""
    name: str
    """What it is for."""
    scopes: tuple[str, ...]
    """What it may do."""
    grants: tuple[Grant, ...] | None
    """The datasets that it reaches; null for all of the tenant."""
    created_at: datetime
    """When it was made."""
    created_by: str | None
    """The id of the key, or of the subject of the token, that made it; null for the first of an installation."""
    expires_at: datetime | None
    """When it expires; null for never."""
    requests_per_second: int | None
    """How many requests per second it may send; null for no limit of its own."""
    revoked_at: datetime | None
    """When it was revoked; null if it was not."""
    last_used_at: datetime | None
    """About when it was last used, to a minute; null if it was not."""
    api_key: str
    """The key. It is only in this response."""


class Grant(msgspec.Struct, frozen=True, kw_only=True):
    """Datasets that a key reaches, and what it may do with them."""

    datasets: str
    """A pattern of names: `*` stands for any characters, every other character for itself."""
    scopes: tuple[str, ...] = ()
    """The scopes of the key that apply to these datasets; all of them by default. With `where` or `mask`, only `read`
    is possible.
    """
    where: str | None = None
    """A condition, as in `where` of reads: only the rows for which it is true exist for the key."""
    mask: tuple[str, ...] | None = None
    """The columns whose values the key does not see: they read as null."""


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """The credential of a request: an API key, or a token of an OpenID Connect issuer."""

    tenant: NamedResource
    """Its tenant."""
    key: NamedResource | None
    """The key; null for a token."""
    subject: str | None
    """The subject of the token, which timelines show as the name of the actor; null for a key."""
    issuer: str | None
    """The issuer of the token; null for a key."""
    scopes: tuple[str, ...]
    """What it may do."""
    grants: tuple[Grant, ...] | None
    """The datasets that it reaches; null for all of the tenant."""
    expires_at: datetime | None
    """When it expires; null for never."""


class Key(msgspec.Struct, frozen=True, kw_only=True):
    """An API key, without its text."""

    id: str
    """Its id, which jobs and timelines name as the actor."""
    name: str
    """What it is for."""
    scopes: tuple[str, ...]
    """What it may do."""
    grants: tuple[Grant, ...] | None
    """The datasets that it reaches; null for all of the tenant."""
    created_at: datetime
    """When it was made."""
    created_by: str | None
    """The id of the key, or of the subject of the token, that made it; null for the first of an installation."""
    expires_at: datetime | None
    """When it expires; null for never."""
    requests_per_second: int | None
    """How many requests per second it may send; null for no limit of its own."""
    revoked_at: datetime | None
    """When it was revoked; null if it was not."""
    last_used_at: datetime | None
    """About when it was last used, to a minute; null if it was not."""


class KeyPage(msgspec.Struct, frozen=True, kw_only=True):
    """API keys, the newest first."""

    items: tuple[Key, ...]
    """The keys of this page, those that are revoked or expired included."""
    next_page_token: str | None
    """The token of the next page; null on the last one."""


class NamedResource(msgspec.Struct, frozen=True, kw_only=True):
    """Something by its id and its name."""

    id: str
    """The id."""
    name: str
    """The name."""
