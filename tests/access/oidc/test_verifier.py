"""Tokens of a real issuer: what is accepted, each check that refuses one, and how often keys are read."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from app.access.oidc.errors import TokenRefused
from app.access.oidc.verifier import TokenVerifier
from app.access.tenants.values import Grant, KeyScope, TokenClaims
from app.infra.errors import Unavailable
from tests.support.issuer import ALGORITHMS, LocalIssuer, jwk, private_key, public_pem, running_issuer, signed


def verifier(*issuers: tuple[LocalIssuer, dict[str, Any]]) -> TokenVerifier:
    return TokenVerifier({issuer.url: issuer.issuer(**entry) for issuer, entry in issuers})


def verify(issuer: LocalIssuer, token: str, **entry: Any) -> TokenClaims:
    return asyncio.run(verifier((issuer, entry)).claims(token))


def refused(issuer: LocalIssuer, token: str, **entry: Any) -> str:
    with pytest.raises(TokenRefused) as caught:
        verify(issuer, token, **entry)
    assert issuer.url not in caught.value.detail
    return str(caught.value.facts["reason"])


def part(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_token_gives_its_tenant_and_scopes(issuer: LocalIssuer, algorithm: str) -> None:
    expires = int(time.time()) + 40
    claims = verify(issuer, issuer.token(algorithm, exp=expires), leeway_seconds=0)
    assert (claims.tenant, claims.scopes) == ("acme", {KeyScope.READ, KeyScope.WRITE})
    assert (claims.identity.issuer, claims.identity.subject) == (issuer.url, "ada")
    assert claims.identity.expires_at == datetime.fromtimestamp(expires, UTC)
    assert claims.grants is None
    assert 30 < claims.valid_seconds <= 40
    assert verify(issuer, issuer.token(algorithm)).valid_seconds == 60


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"exp": 1_000}, "expired"),
        ({"exp": None}, "claims"),
        ({"exp": "4102444800"}, "claims"),
        ({"exp": True}, "claims"),
        ({"exp": 1e300}, "claims"),
        ({"exp": 2**39}, "lifetime"),
        ({"nbf": 2**39}, "not-yet-valid"),
        ({"nbf": []}, "claims"),
        ({"iat": 2**39}, "not-yet-valid"),
        ({"iat": -1}, "claims"),
        ({"aud": "another"}, "audience"),
        ({"aud": ["another", 1]}, "audience"),
        ({"aud": None}, "claims"),
        ({"iss": "https://issuer.example"}, "issuer"),
        ({"iss": None}, "claims"),
        ({"sub": None}, "claims"),
        ({"sub": ""}, "claims"),
        ({"sub": "a\0b"}, "claims"),
        ({"sub": "x" * 256}, "claims"),
        ({"tenant": None}, "claims"),
        ({"tenant": ["acme"]}, "claims"),
        ({"tenant": "a\0"}, "claims"),
        ({"scope": {"read": True}}, "claims"),
        ({"scope": ["read", 1]}, "claims"),
        ({"padding": "x" * 8_192}, "size"),
    ],
    ids=str,
)
def test_claims_are_checked(issuer: LocalIssuer, claims: dict[str, Any], reason: str) -> None:
    assert refused(issuer, issuer.token(**claims)) == reason


def _none(issuer: LocalIssuer) -> str:
    return f"{part({'alg': 'none', 'kid': 'RS256'})}.{part(issuer.claims())}."


def _hmac_of_public_key(issuer: LocalIssuer) -> str:
    content = f"{part({'alg': 'HS256', 'kid': 'RS256'})}.{part(issuer.claims())}"
    digest = hmac.new(public_pem(private_key("RS256")), content.encode(), hashlib.sha256).digest()
    return f"{content}.{base64.urlsafe_b64encode(digest).decode().rstrip('=')}"


def _changed(issuer: LocalIssuer) -> str:
    header, _, signature = issuer.token().split(".")
    return f"{header}.{part(issuer.claims(tenant='other'))}.{signature}"


def _own_key_in_header(issuer: LocalIssuer) -> str:
    """A token that brings its key: the key of the issuer counts."""
    own = private_key("RS256", 1)
    places = {"jku": f"{issuer.url}/own", "x5u": f"{issuer.url}/own", "jwk": jwk("RS256", "RS256", own)}
    return signed(issuer.claims(), own, **places)


def _twice(issuer: LocalIssuer) -> str:
    claims = json.dumps(issuer.claims(tenant="other"))[:-1] + ', "tenant": "acme"}'
    return _unsigned(json.dumps({"alg": "RS256", "kid": "RS256"}), claims)


def _unsigned(header: str, claims: str = "{}") -> str:
    return f"{part(header)}.{part(claims)}.AAAA"


FORGED: dict[str, tuple[Callable[[LocalIssuer], str], str]] = {
    "no signature": (_none, "algorithm"),
    "HMAC with the public key": (_hmac_of_public_key, "algorithm"),
    "changed claims": (_changed, "signature"),
    "key in the header": (_own_key_in_header, "signature"),
    "key of another": (lambda issuer: signed(issuer.claims(), private_key("RS256", 1)), "signature"),
    "unknown key": (lambda issuer: signed(issuer.claims(), private_key("RS256"), kid="other"), "key"),
    "key of another algorithm": (
        lambda issuer: signed(issuer.claims(), private_key("RS256"), kid="ES256"),
        "key",
    ),
    "no key": (lambda issuer: signed(issuer.claims(), private_key("RS256"), kid=""), "key"),
    "claim twice": (_twice, "malformed"),
    "critical extension": (
        lambda issuer: signed(issuer.claims(), private_key("RS256"), crit=["b64"], b64=True),
        "type",
    ),
    "logout token": (
        lambda issuer: signed(issuer.claims(), private_key("RS256"), typ="logout+jwt"),
        "type",
    ),
    "not JSON": (lambda _: _unsigned("{"), "malformed"),
    "not finite": (lambda _: _unsigned('{"alg": NaN}'), "malformed"),
    "deep": (lambda _: _unsigned("[" * 3_000), "malformed"),
    "long number": (lambda _: _unsigned('{"alg": ' + "9" * 5_000 + "}"), "malformed"),
    "no object": (lambda _: _unsigned("[]"), "malformed"),
    "not UTF-8": (lambda _: "_____w.e30.AAAA", "malformed"),
    "not base64": (lambda _: "a.b!.c", "malformed"),
    "empty": (lambda _: "..", "malformed"),
}


@pytest.mark.parametrize("name", FORGED)
def test_forged_tokens_are_refused(issuer: LocalIssuer, name: str) -> None:
    forge, reason = FORGED[name]
    assert refused(issuer, forge(issuer)) == reason
    assert set(issuer.gets) <= {"/.well-known/openid-configuration", "/keys"}


def test_algorithms_are_those_of_the_issuer(issuer: LocalIssuer) -> None:
    assert refused(issuer, issuer.token("RS256"), algorithms=("ES256",)) == "algorithm"
    assert verify(issuer, issuer.token("ES256"), algorithms=("ES256",)).tenant == "acme"


def test_leeway_applies_to_all_times(issuer: LocalIssuer) -> None:
    now = int(time.time())
    late, early = issuer.token(exp=now - 5), issuer.token(nbf=now + 5, iat=now + 5)
    for token in (late, early):
        assert verify(issuer, token, leeway_seconds=20).tenant == "acme"
    assert refused(issuer, late, leeway_seconds=0) == "expired"
    assert refused(issuer, early, leeway_seconds=0) == "not-yet-valid"


def test_tenant_is_the_operators_or_one_of_those_permitted(issuer: LocalIssuer) -> None:
    fixed = verify(issuer, issuer.token(tenant="other"), tenant="acme", tenant_claim=None)
    assert fixed.tenant == "acme"
    assert verify(issuer, issuer.token(), tenants=("acme", "globex")).tenant == "acme"
    assert refused(issuer, issuer.token(tenant="other"), tenants=("acme", "globex")) == "tenant"


def test_scopes_are_mapped_and_operate_is_not_given_unasked(issuer: LocalIssuer) -> None:
    names = ["hw:read", "read", "manage", "operate", "profile"]
    token = issuer.token(scope=None, scp=names)
    assert verify(issuer, token, scope_claim="scp").scopes == {KeyScope.READ, KeyScope.MANAGE}
    mapped = verify(issuer, token, scope_claim="scp", scopes={"hw:read": KeyScope.READ})
    assert mapped.scopes == {KeyScope.READ}
    assert verify(issuer, token).scopes == frozenset()
    everything = {KeyScope.READ, KeyScope.MANAGE, KeyScope.OPERATE}
    assert verify(issuer, token, scope_claim="scp", operate=True).scopes == everything


def test_grants_are_required_where_the_issuer_states_them(issuer: LocalIssuer) -> None:
    stated = ["orders_*", {"datasets": "raw", "scopes": ["read"]}]
    token = issuer.token(datasets=stated, scope="read operate")
    claims = verify(issuer, token, grants_claim="datasets", operate=True)
    assert claims.grants == (Grant(datasets="orders_*"), Grant(datasets="raw", scopes=(KeyScope.READ,)))
    assert claims.scopes == {KeyScope.READ}
    for wrong in (None, [], "orders_*", ["%"], [{"datasets": "a", "more": 1}], ["x"] * 101):
        assert refused(issuer, issuer.token(datasets=wrong), grants_claim="datasets") == "claims"


def test_keys_of_issuers_are_kept_apart(issuer: LocalIssuer) -> None:
    with running_issuer() as other:
        own = private_key("RS256", 2)
        other.publish(RS256=own)
        both = verifier((issuer, {}), (other, {}))

        async def run() -> None:
            assert (await both.claims(issuer.token())).identity.issuer == issuer.url
            assert (await both.claims(signed(other.claims(), own))).identity.issuer == other.url
            for crossed in (signed(issuer.claims(), own), other.token()):
                with pytest.raises(TokenRefused, match="signature"):
                    await both.claims(crossed)

        asyncio.run(run())


def test_thousand_tokens_read_the_keys_once(issuer: LocalIssuer) -> None:
    tokens = [issuer.token("EdDSA", sub=f"subject {number}") for number in range(1_000)]
    checked = verifier((issuer, {"jwks_url": f"{issuer.url}/keys"}))

    async def run() -> set[str]:
        return {each.identity.actor for each in await asyncio.gather(*map(checked.claims, tokens))}

    assert len(asyncio.run(run())) == 1_000
    assert issuer.gets == ["/keys"]


def test_slow_issuer_delays_only_its_own_tokens(issuer: LocalIssuer) -> None:
    with running_issuer() as slow:
        slow.answering.clear()
        both = verifier((issuer, {}), (slow, {}))

        async def run() -> None:
            waiting = [asyncio.create_task(both.claims(slow.token())) for _ in range(100)]
            await asyncio.sleep(0.05)
            assert (await both.claims(issuer.token())).tenant == "acme"
            assert not any(each.done() for each in waiting)
            slow.answering.set()
            assert {each.tenant for each in await asyncio.gather(*waiting)} == {"acme"}

        asyncio.run(run())
        assert slow.gets == ["/.well-known/openid-configuration", "/keys"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda issuer: setattr(issuer, "status", 503),
        lambda issuer: setattr(issuer, "status", 302),
        lambda issuer: issuer.discovery.update(issuer=f"{issuer.url}/"),
        lambda issuer: issuer.discovery.update(jwks_uri="http://keys.example/keys"),
        lambda issuer: issuer.discovery.update(jwks_uri="file:///etc/passwd"),
        lambda issuer: issuer.keys.update(keys={}),
        lambda issuer: issuer.keys.update(more="x" * 300_000),
    ],
    ids=["down", "redirect", "another issuer", "plain HTTP", "file", "no key set", "too large"],
)
def test_without_keys_tokens_cannot_be_checked(
    issuer: LocalIssuer, spoil: Callable[[LocalIssuer], None]
) -> None:
    spoil(issuer)
    with pytest.raises(Unavailable, match="cannot be read"):
        verify(issuer, issuer.token())


def test_keys_that_sign_no_tokens_are_left_out(issuer: LocalIssuer) -> None:
    good = issuer.keys["keys"][0]
    secret = {"kty": "oct", "kid": "HS256", "alg": "HS256", "k": part("secret")}
    others = [{**good, "use": "enc"}, {**good, "alg": "RS512"}, {**good, "d": "AQAB"}, {**good, "n": "AQAB"}]
    issuer.keys["keys"] = [secret, 1, {}, {**good, "kid": 1}, *others]
    assert refused(issuer, issuer.token()) == "key"
    issuer.keys["keys"].append(good)
    assert verify(issuer, issuer.token()).tenant == "acme"
