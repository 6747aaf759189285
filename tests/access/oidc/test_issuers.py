"""The issuers of a deployment, as its operator writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.access.oidc.issuers import Issuer, issuers_of

ENTRY: dict[str, Any] = {"issuer": "https://login.example/acme", "audience": "headwater", "tenant": "acme"}


def test_issuers_are_a_list_or_a_file_with_one(tmp_path: Path) -> None:
    file = tmp_path / "issuers.json"
    file.write_text(json.dumps([ENTRY]))
    assert issuers_of(str(file)) == issuers_of(json.dumps([ENTRY]))
    [issuer] = issuers_of(str(file)).values()
    assert issuer.discovery_url == "https://login.example/acme/.well-known/openid-configuration"
    assert (issuer.algorithms, issuer.leeway_seconds) == (("RS256", "ES256", "EdDSA"), 30)
    assert not issuer.operate
    assert issuers_of("") == {}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"algorithms": ["HS256"]}, "HS256"),
        ({"algorithms": ["none"]}, "none"),
        ({"algorithms": []}, "length"),
        ({"issuer": "http://login.example"}, "https"),
        ({"issuer": "https://user@login.example"}, "https"),
        ({"jwks_url": "http://169.254.169.254/keys"}, "https"),
        ({"jwks_url": "file:///etc/keys"}, "https"),
        ({"leeway_seconds": 61}, "60"),
        ({"lifetime_seconds_max": 10**6}, "604800"),
        ({"tenant_claim": "tenant"}, "either"),
        ({"tenant": None}, "either"),
        ({"tenants": ["acme"]}, "tenant_claim"),
        ({"tenant": None, "tenant_claim": "tenant"}, r"must have `tenants` .*\[\"\*\"\] for all"),
        ({"tenant": None, "tenant_claim": "tenant", "tenants": []}, "must have `tenants`"),
        ({"tenant": None, "tenant_claim": "tenant", "tenants": ["*", "acme"]}, "alone"),
        ({"scopes": {"admin": "operate"}}, "operate: true"),
        ({"scopes": {"admin": "everything"}}, "everything"),
        ({"secret": "x"}, "secret"),
        ({"audience": None}, "audience"),
        ({"client_secret": "x"}, "`client_secret` without `client_id`"),
        ({"sign_in_scopes": ["openid"]}, "`sign_in_scopes` without `client_id`"),
        ({"label": "Acme"}, "`label` without `client_id`"),
        ({"client_id": ""}, "client_id"),
        ({"client_id": "x", "sign_in_scopes": ["profile"]}, "`openid` among its `sign_in_scopes`"),
        ({"client_id": "x", "sign_in_scopes": ["openid a"]}, "sign_in_scopes"),
        ({"client_id": "x", "label": "a\nb"}, "`label` with characters"),
        ({"client_id": "x", "client_secret": 3}, "client_secret"),
    ],
    ids=str,
)
def test_entries_that_are_not_valid_stop_the_start(change: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        issuers_of(json.dumps([ENTRY | change]))


def test_issuer_of_all_tenants_says_so() -> None:
    def issuer(*tenants: str) -> Issuer:
        entry = ENTRY | {"tenant": None, "tenant_claim": "tenant", "tenants": tenants}
        [found] = issuers_of(json.dumps([entry])).values()
        return found

    assert issuer("*").may_name("globex")
    assert issuer("acme").may_name("acme")
    assert not issuer("acme").may_name("globex")


def test_each_issuer_has_one_entry() -> None:
    with pytest.raises(ValueError, match="once"):
        issuers_of(json.dumps([ENTRY, ENTRY | {"audience": "other"}]))
    with pytest.raises(ValueError, match="cannot be read"):
        issuers_of("/nowhere/issuers.json")


def test_secret_of_a_client_is_in_no_text_of_its_issuer() -> None:
    [issuer] = issuers_of(json.dumps([ENTRY | {"client_id": "console", "client_secret": "s3cret"}])).values()
    assert issuer.client_secret == "s3cret"
    assert "s3cret" not in f"{issuer!r} {issuer}"
    assert issuer.title == "login.example"
