"""What credentials give: API keys, tokens of OpenID Connect issuers, those of other kinds, and derived ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from app.access.oidc.errors import TokenRefused
from app.access.oidc.token import has_form_of_token
from app.access.oidc.verifier import TokenVerifier
from app.access.tenants.ports import ActorStore
from app.access.tenants.values import (
    API_KEY,
    Actor,
    ActorKind,
    ActorSecret,
    Credential,
    Principal,
    TokenClaims,
)
from app.http.limits.threads import Threads


class BearerAuthentication:
    """Authenticates credentials. `actors`: all kinds. `claims` reads the principal of a verified token, and returns
    None if there is none. `tokens`: None if no issuers are configured.
    """

    def __init__(
        self,
        actors: Mapping[ActorKind, ActorStore],
        claims: Callable[[TokenClaims], Principal | None],
        tokens: TokenVerifier | None,
        threads: Threads,
    ) -> None:
        self._actors = actors
        self._claims = claims
        self._tokens = tokens
        self._threads = threads

    async def authenticate(self, credential: Credential) -> Principal | None:
        """The principal; None if this is not a valid credential, or if the actor has ended.

        Raises TokenRefused, Unavailable.
        """
        if isinstance(credential, Actor):
            return await self._threads.run(self._actors[credential.kind].standing, credential)
        if isinstance(credential, ActorSecret):
            return await self._threads.run(self._actors[credential.kind].authenticate, credential.text)
        if API_KEY.fullmatch(credential):
            return await self._threads.run(self._actors[ActorKind.KEY].authenticate, credential)
        if self._tokens is None or not has_form_of_token(credential):
            return None
        # The keys of an issuer may take seconds: nothing waits for them in a thread of the requests.
        claims = await self._tokens.claims(credential)
        principal = await self._threads.run(self._claims, claims)
        if principal is None:
            raise TokenRefused("tenant", "the tenant of the token does not exist")
        return principal
