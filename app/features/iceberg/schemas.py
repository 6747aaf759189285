"""Responses of the Iceberg catalogue, as its protocol names them."""

from __future__ import annotations

import msgspec


class _Document(msgspec.Struct, frozen=True, kw_only=True, rename="kebab", omit_defaults=True):
    """A JSON document of the protocol: names with hyphens, absent members instead of null."""


class CatalogConfig(_Document, frozen=True, kw_only=True):
    """What a client sets before its first request."""

    defaults: dict[str, str]
    overrides: dict[str, str]
    endpoints: tuple[str, ...]


class NamespaceList(_Document, frozen=True, kw_only=True):
    """All namespaces."""

    namespaces: tuple[tuple[str, ...], ...]


class Namespace(_Document, frozen=True, kw_only=True):
    """A namespace and its properties."""

    namespace: tuple[str, ...]
    properties: dict[str, str]


class Identifier(_Document, frozen=True, kw_only=True):
    """The name of a table."""

    namespace: tuple[str, ...]
    name: str


class IdentifierPage(_Document, frozen=True, kw_only=True):
    """A page of names."""

    identifiers: tuple[Identifier, ...]
    next_page_token: str | None = None


class StorageCredential(_Document, frozen=True, kw_only=True):
    """A key for all objects whose addresses begin with the prefix."""

    prefix: str
    config: dict[str, str]


class LoadedCredentials(_Document, frozen=True, kw_only=True):
    """Fresh keys of a table."""

    storage_credentials: tuple[StorageCredential, ...]


class AccessToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token, as OAuth answers it. `expires_in`: seconds."""

    access_token: str
    token_type: str
    expires_in: int
    issued_token_type: str
