"""From the text of a token to its claims, with the keys of its issuer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from app.access.oidc.download import download
from app.access.oidc.errors import TokenRefused
from app.access.oidc.issuers import Issuer
from app.access.oidc.key_cache import KeyCache
from app.access.oidc.key_set import read_key_set
from app.access.oidc.token import unverified, verified
from app.access.tenants.values import TokenClaims


class TokenVerifier:
    """Verifies tokens of these issuers, by the claim `iss`. Each has keys and a thread of its own."""

    def __init__(self, issuers: Mapping[str, Issuer], read: Callable[[str], Any] = download) -> None:
        self._issuers = {
            name: (issuer, KeyCache(name, partial(read_key_set, issuer, read)))
            for name, issuer in issuers.items()
        }

    async def claims(self, text: str) -> TokenClaims:
        """The claims of a valid token. Raises TokenRefused, Unavailable."""
        token = unverified(text)
        if token.issuer not in self._issuers:
            raise TokenRefused("issuer", "the issuer of the token is not accepted")
        issuer, keys = self._issuers[token.issuer]
        # What the token states only selects one of the operator's algorithms.
        for algorithm in issuer.algorithms:
            if algorithm == token.algorithm:
                return verified(token, issuer, algorithm, await keys.key(token.key_id, algorithm))
        raise TokenRefused("algorithm", "the issuer of the token may not sign with this algorithm")
