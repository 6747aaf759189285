"""From the text of a token to its claims, with the keys of its issuer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import jwt

from app.access.oidc.download import download
from app.access.oidc.errors import TokenRefused
from app.access.oidc.issuers import Algorithm, Issuer
from app.access.oidc.key_cache import KeyCache
from app.access.oidc.key_set import read_key_set
from app.access.oidc.token import Unverified, unverified, verified, verified_subject
from app.access.tenants.values import TokenClaims


class TokenVerifier:
    """Verifies tokens of these issuers, by the claim `iss`. Each has keys and a thread of its own."""

    def __init__(self, issuers: Mapping[str, Issuer], read: Callable[[str], Any] = download) -> None:
        self._issuers = {
            name: (issuer, KeyCache(name, partial(read_key_set, issuer, read)))
            for name, issuer in issuers.items()
        }

    @property
    def issuers(self) -> Sequence[Issuer]:
        """The issuers."""
        return [issuer for issuer, _ in self._issuers.values()]

    async def claims(self, text: str) -> TokenClaims:
        """The claims of a valid token. Raises TokenRefused, Unavailable."""
        token = unverified(text)
        issuer, algorithm, key = await self._signer(token)
        return verified(token, issuer, algorithm, key)

    async def subject(self, id_token: str, nonce: str) -> tuple[str, str]:
        """The issuer and the subject of an ID token for the client of its issuer. Raises TokenRefused, Unavailable."""
        token = unverified(id_token)
        issuer, algorithm, key = await self._signer(token)
        if issuer.client_id is None:
            raise TokenRefused("issuer", "the console does not sign in at the issuer of the token")
        return issuer.issuer, verified_subject(token, issuer, algorithm, key, nonce)

    async def _signer(self, token: Unverified) -> tuple[Issuer, Algorithm, jwt.PyJWK]:
        """The issuer of a token, and its key with the algorithm. Raises TokenRefused, Unavailable."""
        if token.issuer not in self._issuers:
            raise TokenRefused("issuer", "the issuer of the token is not accepted")
        issuer, keys = self._issuers[token.issuer]
        # What the token states only selects one of the operator's algorithms.
        for algorithm in issuer.algorithms:
            if algorithm == token.algorithm:
                return issuer, algorithm, await keys.key(token.key_id, algorithm)
        raise TokenRefused("algorithm", "the issuer of the token may not sign with this algorithm")
