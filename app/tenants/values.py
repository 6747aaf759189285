"""Values that the use cases and their ports exchange."""

from __future__ import annotations

import msgspec


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Who asks: the tenant and the scopes of the credential. Nothing else ever names the tenant."""

    tenant_id: str
    key_id: str
    scopes: frozenset[str]
