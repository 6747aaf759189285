"""Values of tenants that the services and their ports use."""

from __future__ import annotations

import msgspec


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """The principal of a request: the tenant and the scopes of the credential. No other value determines the tenant."""

    tenant_id: str
    key_id: str
    scopes: frozenset[str]
