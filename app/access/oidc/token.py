"""A token: its parts before anything is verified, its verification, and what its claims give."""

from __future__ import annotations

import base64
import hmac
import json
import re
import time
from datetime import UTC, datetime
from typing import Any, Final, NoReturn

import jwt
import msgspec

from app.access.oidc.errors import TokenRefused
from app.access.oidc.issuers import Algorithm, Issuer
from app.access.tenants.values import GRANTS_MAX, Grant, KeyScope, TokenClaims, TokenIdentity

TOKEN_CHARACTERS_MAX: Final = 8 * 1024
SUBJECT_CHARACTERS_MAX: Final = 255
RECHECK_SECONDS: Final = 60.0
"""After this time a token is verified again, as its issuer may have withdrawn the key."""

_FORM: Final = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]*")
_TENANT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
# Access tokens and ID tokens. Others, such as those that report a logout, are no credentials.
_TYPES: Final = frozenset({"jwt", "at+jwt", "application/jwt", "application/at+jwt"})
_TIMES: Final = ("exp", "nbf", "iat")
_TIME_MAX: Final = 2**40
_REQUIRED: Final = ["iss", "sub", "aud", "exp"]


class Unverified(msgspec.Struct, frozen=True, kw_only=True):
    """What a token says of its own verification."""

    text: str
    issuer: str
    algorithm: str
    key_id: str


def has_form_of_token(text: str) -> bool:
    """Whether a credential is meant to be a token: three parts between dots. No API key has a dot."""
    return text.count(".") == 2


def unverified(text: str) -> Unverified:
    """The parts of a token that choose its issuer and its key. Raises TokenRefused."""
    if len(text) > TOKEN_CHARACTERS_MAX:
        raise TokenRefused("size", f"the token has more than {TOKEN_CHARACTERS_MAX} characters")
    form = _FORM.fullmatch(text)
    if form is None:
        raise _malformed()
    header, claims = _object(form[1]), _object(form[2])
    algorithm, key_id, kind = header.get("alg"), header.get("kid"), header.get("typ", "JWT")
    if not isinstance(kind, str) or kind.lower() not in _TYPES or "crit" in header or "b64" in header:
        raise TokenRefused("type", "the token is of a type that is not accepted")
    if not isinstance(algorithm, str):
        raise _malformed()
    if not isinstance(key_id, str) or not key_id:
        raise TokenRefused("key", "the token does not name its key (`kid`)")
    if not isinstance(issuer := claims.get("iss"), str):
        raise _missing("iss")
    for name in _TIMES:
        value = claims.get(name, 0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _TIME_MAX:
            raise TokenRefused("claims", f"the claim `{name}` of the token is not a time")
    return Unverified(text=text, issuer=issuer, algorithm=algorithm, key_id=key_id)


def verified(token: Unverified, issuer: Issuer, algorithm: Algorithm, key: jwt.PyJWK) -> TokenClaims:
    """The claims of a token that the key has signed. Raises TokenRefused."""
    try:
        claims = jwt.decode(
            token.text,
            key,
            algorithms=[algorithm],
            audience=issuer.audience,
            issuer=issuer.issuer,
            leeway=issuer.leeway_seconds,
            options={"require": _REQUIRED},
        )
    except jwt.ExpiredSignatureError:
        raise TokenRefused("expired", "the token has expired") from None
    except jwt.ImmatureSignatureError:
        raise TokenRefused("not-yet-valid", "the token is not valid yet") from None
    except jwt.InvalidAudienceError:
        raise TokenRefused("audience", "the token is meant for another audience") from None
    except jwt.InvalidIssuerError:
        raise TokenRefused("issuer", "the issuer of the token is not accepted") from None
    except jwt.MissingRequiredClaimError as error:
        raise _missing(error.claim) from None
    except jwt.InvalidSignatureError:
        raise TokenRefused("signature", "the signature of the token does not match") from None
    except jwt.PyJWTError:
        raise _malformed() from None
    return _meaning(claims, issuer)


def verified_subject(
    token: Unverified, issuer: Issuer, algorithm: Algorithm, key: jwt.PyJWK, nonce: str
) -> str:
    """The subject of an ID token that the key has signed for the client of the issuer, with this nonce.

    Raises TokenRefused.
    """
    try:
        claims = jwt.decode(
            token.text,
            key,
            algorithms=[algorithm],
            audience=issuer.client_id,
            issuer=issuer.issuer,
            leeway=issuer.leeway_seconds,
            options={"require": [*_REQUIRED, "nonce"]},
        )
    except jwt.PyJWTError as error:
        raise TokenRefused("identity", f"the ID token of the issuer is not valid: {error}") from None
    party = claims.get("azp", issuer.client_id)
    if party != issuer.client_id or (
        isinstance(claims["aud"], list) and len(claims["aud"]) > 1 and "azp" not in claims
    ):
        raise TokenRefused("identity", "the ID token of the issuer is meant for another client")
    if not isinstance(claims["nonce"], str) or not hmac.compare_digest(
        claims["nonce"].encode(), nonce.encode()
    ):
        raise TokenRefused("identity", "the ID token of the issuer belongs to another sign-in")
    return str(claims["sub"])


def _meaning(claims: dict[str, Any], issuer: Issuer) -> TokenClaims:
    remaining_seconds = claims["exp"] + issuer.leeway_seconds - time.time()
    if remaining_seconds > issuer.lifetime_seconds_max + issuer.leeway_seconds:
        raise TokenRefused("lifetime", f"the token is valid for more than {issuer.lifetime_seconds_max} s")
    subject = claims["sub"]
    # It is stored, and shown in timelines.
    if (
        not isinstance(subject, str)
        or not 0 < len(subject) <= SUBJECT_CHARACTERS_MAX
        or not subject.isprintable()
    ):
        raise TokenRefused("claims", "the claim `sub` of the token is not a name")
    grants = _grants(claims, issuer)
    scopes = _scopes(claims, issuer)
    if grants is not None or not issuer.operate:
        # As for keys: what administers is not about datasets.
        scopes -= {KeyScope.OPERATE}
    expires_at = datetime.fromtimestamp(claims["exp"], UTC)
    return TokenClaims(
        tenant=_tenant(claims, issuer),
        identity=TokenIdentity(issuer=issuer.issuer, subject=subject, expires_at=expires_at),
        scopes=scopes,
        grants=grants,
        valid_seconds=min(remaining_seconds, RECHECK_SECONDS),
    )


def _tenant(claims: dict[str, Any], issuer: Issuer) -> str:
    if issuer.tenant_claim is None:
        assert issuer.tenant is not None
        return issuer.tenant
    tenant = claims.get(issuer.tenant_claim)
    if not isinstance(tenant, str) or not _TENANT.fullmatch(tenant):
        raise TokenRefused("claims", f"the claim `{issuer.tenant_claim}` of the token is not a tenant")
    if not issuer.may_name(tenant):
        raise TokenRefused("tenant", "the issuer of the token may not name this tenant")
    return tenant


def _scopes(claims: dict[str, Any], issuer: Issuer) -> frozenset[KeyScope]:
    """Those that the claim gives. A member that is no scope here is meant for another service."""
    claim = claims.get(issuer.scope_claim, "")
    names = claim.split(" ") if isinstance(claim, str) else claim
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise TokenRefused("claims", f"the claim `{issuer.scope_claim}` of the token has no scopes")
    scopes_by_name = {scope.value: scope for scope in KeyScope} if issuer.scopes is None else issuer.scopes
    return frozenset(scopes_by_name[name] for name in names if name in scopes_by_name)


def _grants(claims: dict[str, Any], issuer: Issuer) -> tuple[Grant, ...] | None:
    """None if tokens of the issuer reach all datasets of their tenant."""
    if issuer.grants_claim is None:
        return None
    try:
        grants = msgspec.convert(claims.get(issuer.grants_claim), list[Grant | str])
        if 0 < len(grants) <= GRANTS_MAX:
            return tuple(
                msgspec.convert({"datasets": each}, Grant) if isinstance(each, str) else each
                for each in grants
            )
    except msgspec.ValidationError:
        pass
    raise TokenRefused(
        "claims", f"the claim `{issuer.grants_claim}` of the token is not a list of 1 to {GRANTS_MAX} grants"
    )


def _object(part: str) -> dict[str, Any]:
    try:
        text = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)).decode()
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise _malformed() from None
    if not isinstance(value, dict):
        raise _malformed()
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Raises ValueError for a member that occurs twice: readers differ in which one counts."""
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a member occurs twice")
    return members


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _malformed() -> TokenRefused:
    return TokenRefused("malformed", "the credential is neither an API key nor a well-formed token")


def _missing(claim: str) -> TokenRefused:
    return TokenRefused("claims", f"the token has no claim `{claim}`")
