"""Tenants and keys as tests make them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from app.access.tenants.repository.administration import AdministrationStore
from app.access.tenants.values import KeyScope, MadeKey, NewKey


class Administration(AdministrationStore):
    """Makes keys of what a test names."""

    def make_key(self, tenant_id: str, scopes: Iterable[str], *, name: str = "", **more: Any) -> MadeKey:
        return self.add_key(tenant_id, NewKey(name=name, scopes=tuple(map(KeyScope, scopes)), **more))
