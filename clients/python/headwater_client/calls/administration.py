"""Tenants and API keys: for operators, and for tenants that manage their own keys."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

import msgspec

from headwater_client.models import (
    AuditEntry,
    AuditPage,
    CreatedKey,
    CreatedTenant,
    Grant,
    Identity,
    Key,
    KeyPage,
    Tenant,
    TenantPage,
    TenantWithDeletion,
    TenantWithUse,
)
from headwater_client.transport.connection import Connection, decoded

_JSON: Final = {"Content-Type": "application/json"}
_TENANTS: Final = "/tenants"


class AdministrationCalls(Connection):
    """Makes, lists, suspends and resumes tenants; makes, lists and revokes keys.

    A key and the first key of a tenant are returned once. A request that makes one is not repeated by itself.
    """

    async def me(self) -> Identity:
        """The tenant and the key of this client, and what the key may do."""
        return decoded(Identity, await self._get("/me"))

    async def create_tenant(self, name: str) -> CreatedTenant:
        """Makes a tenant; `api_key` is its first key."""
        return decoded(CreatedTenant, await self._post(_TENANTS, {"name": name}))

    def tenants(self) -> AsyncGenerator[TenantWithUse, None]:
        """The tenants of the installation by name, each with what it stores and uses."""
        return self._items(_TENANTS, TenantPage)

    async def get_tenant(self, tenant: str) -> TenantWithDeletion:
        """A tenant by its id or its name; a deleted one by its id."""
        return decoded(TenantWithDeletion, await self._get(_tenant_path(tenant)))

    async def suspend_tenant(self, tenant: str, reason: str | None = None) -> Tenant:
        """Refuses the requests of a tenant that write, with this reason."""
        return await self._set_state(tenant, {"state": "suspended", "reason": reason})

    async def resume_tenant(self, tenant: str) -> Tenant:
        """Lets a tenant write again."""
        return await self._set_state(tenant, {"state": "active"})

    async def delete_tenant(self, tenant: str, *, confirm: str) -> TenantWithDeletion:
        """Deletes a tenant with all its data, which cannot be undone; `confirm` is its name.

        `get_tenant` reports the progress, by its id.
        """
        query = {"confirm": confirm}
        return decoded(
            TenantWithDeletion,
            await self._send("DELETE", _tenant_path(tenant), params=query, repeatable=True),
        )

    def audit(
        self,
        *,
        tenant: str | None = None,
        key: str | None = None,
        operation: str | None = None,
        outcome: str | None = None,
        via: str | None = None,
        since_time: datetime | None = None,
        until_time: datetime | None = None,
    ) -> AsyncGenerator[AuditEntry, None]:
        """Who requested what, the newest first: of the own tenant, or, for an operator, of all tenants.

        `tenant`: an id or a name, for operators. `key`: an id. `outcome`: `allowed`, `denied` or `failed`.
        `via`: `console` for requests of pages and forms of the console, `api` for all others.
        """
        query = {"tenant": tenant, "key": key, "operation": operation, "outcome": outcome, "via": via}
        times = {"since_time": since_time, "until_time": until_time}
        sent = query | {name: None if time is None else time.isoformat() for name, time in times.items()}
        return self._items("/audit", AuditPage, sent)

    async def create_key(
        self,
        name: str,
        scopes: Sequence[str],
        *,
        grants: Sequence[Grant] | None = None,
        expires_at: datetime | None = None,
        tenant: str | None = None,
    ) -> CreatedKey:
        """Makes a key of the own tenant, or of this one; `api_key` is its text."""
        new = {"name": name, "scopes": list(scopes), "grants": grants, "expires_at": expires_at}
        return decoded(CreatedKey, await self._post(_keys_path(tenant), new))

    def api_keys(self, *, tenant: str | None = None) -> AsyncGenerator[Key, None]:
        """The keys of the own tenant, or of this one, the newest first."""
        return self._items(_keys_path(tenant), KeyPage)

    async def get_key(self, key: str, *, tenant: str | None = None) -> Key:
        """A key of the own tenant, or of this one, by its id."""
        return decoded(Key, await self._get(f"{_keys_path(tenant)}/{quote(key, safe='')}"))

    async def revoke_key(self, key: str, *, tenant: str | None = None) -> None:
        """Revokes a key of the own tenant, or of this one, by its id."""
        await self._send("DELETE", f"{_keys_path(tenant)}/{quote(key, safe='')}")

    async def _post(self, path: str, value: dict[str, Any]) -> Any:
        return await self._send("POST", path, body=msgspec.json.encode(value), headers=_JSON)

    async def _set_state(self, tenant: str, change: dict[str, Any]) -> Tenant:
        body = msgspec.json.encode(change)
        answer = await self._send("PATCH", _tenant_path(tenant), body=body, headers=_JSON, repeatable=True)
        return decoded(Tenant, answer)


def _tenant_path(tenant: str) -> str:
    return f"{_TENANTS}/{quote(tenant, safe='')}"


def _keys_path(tenant: str | None) -> str:
    return "/keys" if tenant is None else f"{_tenant_path(tenant)}/keys"
