"""Tenants and their API keys. A key is returned once, when it is created; the database stores only its digest."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable
from typing import Final

import msgspec
from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert

from app.db.session import Database
from app.format.errors import HeadwaterError, NotFound
from app.format.identifiers import is_uuid, new_id
from app.tenants.tables import api_keys, tenants
from app.tenants.values import Principal

API_KEY: Final = re.compile(r"hw_[A-Za-z0-9_-]{43}")


class TenantExists(HeadwaterError):
    """Another tenant has this name."""

    code = "tenant-exists"
    title = "A tenant of this name already exists"


class MadeKey(msgspec.Struct, frozen=True, kw_only=True):
    """A new API key. `api_key` is its text, which cannot be read again."""

    key_id: str
    api_key: str

    def __repr__(self) -> str:
        return f"MadeKey(key_id={self.key_id!r})"


def new_api_key() -> str:
    """256 random bits behind a prefix that scanners for leaked secrets can recognise."""
    return f"hw_{secrets.token_urlsafe(32)}"


def key_digest(api_key: str) -> bytes:
    """The stored form of a key. Its text is random and long, so a plain hash cannot be reversed."""
    return hashlib.sha256(api_key.encode()).digest()


class TenantStore:
    """Tenants and credentials."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def authenticate(self, api_key: str) -> Principal | None:
        """The principal of a live key; None for any other text."""
        if not API_KEY.fullmatch(api_key):
            return None
        digest = key_digest(api_key)
        query = select(api_keys.c.tenant_id, api_keys.c.id, api_keys.c.scopes).where(
            api_keys.c.digest == digest, api_keys.c.revoked_at.is_(None)
        )
        with self._database.credential(digest) as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            return None
        return Principal(tenant_id=row.tenant_id, key_id=row.id, scopes=frozenset(row.scopes))

    def add_tenant(self, name: str, *, tenant_id: str | None = None) -> str:
        """Creates a tenant and returns its id. Raises TenantExists."""
        tenant_id = tenant_id or new_id()
        with self._database.tenant(tenant_id) as connection:
            new = insert(tenants).values(name=name).on_conflict_do_nothing().returning(tenants.c.tenant_id)
            if connection.execute(new).one_or_none() is None:
                raise TenantExists(f"there is already a tenant named {name!r}", name=name)
        return tenant_id

    def add_key(
        self, tenant_id: str, scopes: Iterable[str], *, name: str = "", api_key: str | None = None
    ) -> MadeKey:
        """Creates a key with these scopes. `api_key`: its text, if the operator specifies it (`hw_` + 43 characters).

        Raises ValueError for a text of another form, NotFound if there is no such tenant.
        """
        api_key = api_key or new_api_key()
        if not API_KEY.fullmatch(api_key):
            raise ValueError("expected an API key of 'hw_' and 43 characters of A-Z, a-z, 0-9, '_', '-'")
        key_id = new_id()
        with self._database.tenant(tenant_id) as connection:
            if connection.execute(select(tenants.c.tenant_id)).one_or_none() is None:
                raise NotFound(f"there is no tenant {tenant_id}")
            values = {"id": key_id, "digest": key_digest(api_key), "scopes": sorted(scopes), "name": name}
            connection.execute(insert(api_keys).values(values))
        return MadeKey(key_id=key_id, api_key=api_key)

    def revoke_key(self, tenant_id: str, key_id: str) -> None:
        """Revokes a key immediately. Raises NotFound if the tenant has no such live key."""
        live = api_keys.c.id == key_id, api_keys.c.revoked_at.is_(None)
        with self._database.tenant(tenant_id) as connection:
            if (
                not is_uuid(key_id)
                or not connection.execute(
                    update(api_keys).where(*live).values(revoked_at=func.clock_timestamp())
                ).rowcount
            ):
                raise NotFound(f"there is no API key {key_id}")
