"""The public keys of an issuer (RFC 7517), as far as a token may be signed with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from app.access.oidc.issuers import Algorithm, Issuer, check_url, is_encrypted

KEYS_MAX: Final = 100
_RSA_BITS: Final = range(2048, 8192 + 1)
# Verification takes longer with the size of the exponent.
_RSA_EXPONENT_MAX: Final = 2**32
_KEY_ID_CHARACTERS_MAX: Final = 255
_TYPES: Final[Mapping[tuple[str, str | None], Algorithm]] = {
    ("RSA", None): "RS256",
    ("EC", "P-256"): "ES256",
    ("OKP", "Ed25519"): "EdDSA",
}

KeySet: TypeAlias = Mapping[tuple[str, Algorithm], jwt.PyJWK]
"""Keys by their id (`kid`) and the algorithm that they are for."""


def read_key_set(issuer: Issuer, download: Callable[[str], Any]) -> KeySet:
    """The keys that the issuer publishes. `download` returns the JSON of a URL.

    Raises ValueError if what is found is not a key set, and what `download` raises.
    """
    return key_set_of(download(issuer.jwks_url or _discovered(issuer, download)))


def key_set_of(document: Any) -> KeySet:
    """The keys of a JSON Web Key Set. Those for other purposes or of other types are left out.

    Raises ValueError if it is not a key set.
    """
    keys = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(keys, list) or len(keys) > KEYS_MAX:
        raise ValueError(f"it has no list `keys` of at most {KEYS_MAX} keys")
    key_set: dict[tuple[str, Algorithm], jwt.PyJWK] = {}
    for each in keys:
        if isinstance(each, dict) and (algorithm := _algorithm(each)) is not None:
            try:
                key = jwt.PyJWK(each, algorithm)
            except jwt.PyJWTError:
                continue
            if _is_strong(key.key):
                key_set.setdefault((each["kid"], algorithm), key)
    return key_set


def discovery_document(issuer: Issuer, download: Callable[[str], Any]) -> Mapping[str, Any]:
    """What the issuer publishes of itself. Raises ValueError, and what `download` raises."""
    document = download(issuer.discovery_url)
    if not isinstance(document, dict) or document.get("issuer") != issuer.issuer:
        raise ValueError("its discovery document is of another issuer")
    return document


def endpoint(issuer: Issuer, document: Mapping[str, Any], member: str) -> str:
    """A URL of a discovery document, which is as safe as that of the issuer. Raises ValueError."""
    url = document.get(member)
    if not isinstance(url, str):
        raise ValueError(f"its discovery document names no `{member}`")
    check_url(url)
    if is_encrypted(issuer.issuer) and not is_encrypted(url):
        raise ValueError(f"its discovery document names an unencrypted `{member}`")
    return url


def _discovered(issuer: Issuer, download: Callable[[str], Any]) -> str:
    return endpoint(issuer, discovery_document(issuer, download), "jwks_uri")


def _algorithm(key: dict[str, Any]) -> Algorithm | None:
    """What the key verifies; None if no token is verified with it."""
    key_id, kind, curve = key.get("kid"), key.get("kty"), key.get("crv")
    if not isinstance(key_id, str) or not 0 < len(key_id) <= _KEY_ID_CHARACTERS_MAX or "d" in key:
        return None
    if key.get("use", "sig") != "sig" or not isinstance(kind, str) or not isinstance(curve, str | None):
        return None
    algorithm = _TYPES.get((kind, curve))
    return algorithm if key.get("alg", algorithm) in (algorithm, _fully_specified(algorithm)) else None


def _fully_specified(algorithm: Algorithm | None) -> str | None:
    """The name of RFC 9864 for a key of this algorithm."""
    return "Ed25519" if algorithm == "EdDSA" else algorithm


def _is_strong(key: object) -> bool:
    if not isinstance(key, RSAPublicKey):
        return True
    return key.key_size in _RSA_BITS and key.public_numbers().e < _RSA_EXPONENT_MAX
