"""Sessions of the console: how they begin and end."""

from __future__ import annotations

from dataclasses import dataclass

from app.access.errors import Forbidden
from app.access.tenants.values import ActorKind, Principal
from app.features.console.repository import SessionStore
from app.features.console.values import NewLink, NewSession
from app.infra.errors import DatabaseFull


@dataclass(frozen=True, kw_only=True, slots=True)
class Sessions:
    """Begins and ends sessions, and makes links that begin one."""

    store: SessionStore

    def begin(self, principal: Principal) -> NewSession:
        """A session of a verified credential. Raises Unavailable."""
        return self.store.begin(principal)

    def begin_with_key(self, principal: Principal, api_key: str) -> tuple[NewSession, bool]:
        """A session of a verified API key, and whether it is stored: it is not while the disk of the database is full.

        Raises Unavailable.
        """
        try:
            return self.store.begin(principal), True
        except DatabaseFull:
            return self.store.begin_without_row(principal, api_key), False

    def follow(self, secret: str) -> Principal | None:
        """Whose link this is, which is used up; None for one that was used or has ended. Raises Unavailable."""
        return self.store.follow_link(secret)

    def link(self, principal: Principal) -> NewLink:
        """A link that signs in once, as the key of the principal. Raises Forbidden, Unavailable."""
        if principal.kind is not ActorKind.KEY:
            raise Forbidden("a link signs in as an API key: request it with one")
        return self.store.link(principal)

    def end(self, principal: Principal, secret: str) -> None:
        """Ends a session. Raises Unavailable."""
        self.store.end(principal.tenant_id, secret)
