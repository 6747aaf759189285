"""The two kinds of bearer credentials, API keys and tokens of OpenID Connect issuers, and who has derived ones."""

from __future__ import annotations

from collections.abc import Callable

from app.access.oidc.errors import TokenRefused
from app.access.oidc.token import has_form_of_token
from app.access.oidc.verifier import TokenVerifier
from app.access.tenants.values import API_KEY, Actor, Principal, TokenClaims
from app.http.limits.threads import Threads


class BearerAuthentication:
    """Authenticates credentials. `key` reads the principal of an API key, `claims` that of a verified token, `standing`
    that of an actor; all return None if there is none. `tokens`: None if no issuers are configured.
    """

    def __init__(
        self,
        key: Callable[[str], Principal | None],
        claims: Callable[[TokenClaims], Principal | None],
        standing: Callable[[Actor], Principal | None],
        tokens: TokenVerifier | None,
        threads: Threads,
    ) -> None:
        self._key = key
        self._claims = claims
        self._standing = standing
        self._tokens = tokens
        self._threads = threads

    async def authenticate(self, credential: str | Actor) -> Principal | None:
        """The principal; None if this is not a valid API key, or if the actor has ended.

        Raises TokenRefused, Unavailable.
        """
        if isinstance(credential, Actor):
            return await self._threads.run(self._standing, credential)
        if API_KEY.fullmatch(credential):
            return await self._threads.run(self._key, credential)
        if self._tokens is None or not has_form_of_token(credential):
            return None
        # The keys of an issuer may take seconds: nothing waits for them in a thread of the requests.
        claims = await self._tokens.claims(credential)
        principal = await self._threads.run(self._claims, claims)
        if principal is None:
            raise TokenRefused("tenant", "the tenant of the token does not exist")
        return principal
