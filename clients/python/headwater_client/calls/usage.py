"""Usage by day, and the quotas of tenants."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from datetime import date
from urllib.parse import quote

import msgspec

from headwater_client.models import QuotaUse, QuotaUses, Tenant, Usage, UsagePage
from headwater_client.transport.connection import Connection, decoded
from headwater_client.transport.pages import JSON


class UsageCalls(Connection):
    """Reads usage and quotas, and changes quotas."""

    def usage(
        self,
        *,
        tenant: str | None = None,
        first_day: date | None = None,
        last_day: date | None = None,
        by: str = "tenant",
    ) -> AsyncGenerator[Usage, None]:
        """The usage of the own tenant day by day, or by day and `dataset` or `key`.

        `tenant`: the id or the name of another, for operators.
        """
        path = "/usage" if tenant is None else f"{_tenant_path(tenant)}/usage"
        wanted = {
            "from": None if first_day is None else first_day.isoformat(),
            "to": None if last_day is None else last_day.isoformat(),
            "by": by,
        }
        return self._items(path, UsagePage, wanted)

    async def tenant_quotas(self, tenant: str) -> tuple[QuotaUse, ...]:
        """The quotas of a tenant, by its id or its name, with what it uses now. For operators."""
        answer = await self._get(f"{_tenant_path(tenant)}/quotas")
        return decoded(QuotaUses, answer).items

    async def change_quotas(self, tenant: str, quotas: Mapping[str, float | None]) -> Tenant:
        """Changes quotas of a tenant by their names; None removes one. Others keep their value. For operators."""
        answer = await self._send(
            "PATCH",
            _tenant_path(tenant),
            headers={"Content-Type": JSON},
            body=msgspec.json.encode({"quotas": dict(quotas)}),
            repeatable=True,
        )
        return decoded(Tenant, answer)


def _tenant_path(tenant: str) -> str:
    return f"/tenants/{quote(tenant, safe='')}"
