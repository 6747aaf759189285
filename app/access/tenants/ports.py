"""What resolves the credentials of one kind of actor. A feature whose actors have credentials of its own states one."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from app.access.tenants.values import Actor, Principal


class ActorStore(Protocol):
    """The actors of a kind, as they are stored."""

    def authenticate(self, secret: str, /) -> Principal | None:
        """The principal of a live credential; None for any other text. Raises Unavailable."""
        ...

    def standing(self, actor: Actor, /) -> Principal | None:
        """The principal of an actor whose credential was verified; None if it may do nothing any more."""
        ...

    def note_use(self, tenant_id: str, ids: Collection[str], /) -> None:
        """Records that actors of a tenant were active now. Exact to a minute."""
        ...
