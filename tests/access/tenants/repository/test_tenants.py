"""Credentials: a key is known by its digest alone, and names its tenant and scopes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from app.access.errors import NotFound
from app.access.tenants.errors import TenantExists, TooManyKeys
from app.access.tenants.tables import api_keys
from app.access.tenants.values import KeyScope, NewKey, key_digest, new_api_key
from app.infra.identifiers import new_id
from tests.support.store_fixtures import Stores

READ = NewKey(name="", scopes=(KeyScope.READ,))


def test_key_authenticates_as_its_tenant_with_its_scopes(stores: Stores, tenant_id: str) -> None:
    made = stores.tenants.make_key(tenant_id, {"read", "write"}, name="ingest")
    principal = stores.keys.authenticate(made.api_key)
    assert principal is not None
    assert (principal.tenant_id, principal.actor) == (tenant_id, made.key_id)
    assert principal.scopes == {"read", "write"}


def test_two_keys_of_a_tenant_are_valid_until_one_is_revoked(stores: Stores, tenant_id: str) -> None:
    first, second = (stores.tenants.make_key(tenant_id, {"read"}) for _ in range(2))
    stores.tenants.revoke_key(tenant_id, first.key_id)
    assert stores.keys.authenticate(first.api_key) is None
    assert stores.keys.authenticate(second.api_key) is not None


def test_expired_key_does_not_authenticate(stores: Stores, tenant_id: str) -> None:
    now = datetime.now(UTC)
    made = [
        stores.tenants.make_key(tenant_id, {"read"}, expires_at=now + timedelta(seconds=seconds))
        for seconds in (-1, 3600)
    ]
    expired, live = (stores.keys.authenticate(each.api_key) for each in made)
    assert expired is None
    assert live is not None
    assert 3500 < (live.valid_seconds or 0) <= 3600


def test_use_of_a_key_is_recorded_once_a_minute(stores: Stores, tenant_id: str) -> None:
    made, unused = (stores.tenants.make_key(tenant_id, {"read"}) for _ in range(2))
    stores.keys.note_use(tenant_id, [made.key_id])
    first = stores.tenants.key(tenant_id, made.key_id).last_used_at
    stores.keys.note_use(tenant_id, [made.key_id])
    assert first is not None
    assert stores.tenants.key(tenant_id, made.key_id).last_used_at == first
    assert stores.tenants.key(tenant_id, unused.key_id).last_used_at is None


def test_live_keys_of_a_tenant_are_limited(
    stores: Stores, tenant_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.access.tenants.repository.administration.KEYS_MAX", 2)
    ended = datetime.now(UTC) - timedelta(seconds=1)
    stores.tenants.make_key(tenant_id, {"read"}, expires_at=ended)
    first, _ = (stores.tenants.make_key(tenant_id, {"read"}) for _ in range(2))
    with pytest.raises(TooManyKeys):
        stores.tenants.make_key(tenant_id, {"read"})
    stores.tenants.revoke_key(tenant_id, first.key_id)
    stores.tenants.make_key(tenant_id, {"read"})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hw_",
        "hw_short",
        pytest.param(new_api_key(), id="unknown"),
        pytest.param(new_api_key() + "x", id="too long"),
        "hw_" + "\0" * 43,
        "é",
    ],
)
def test_unknown_key_does_not_authenticate(stores: Stores, text: str) -> None:
    assert stores.keys.authenticate(text) is None


def test_only_the_digest_of_a_key_is_stored(stores: Stores, tenant_id: str) -> None:
    made = stores.tenants.make_key(tenant_id, {"read"})
    with stores.database.tenant(tenant_id) as connection:
        [row] = connection.execute(api_keys.select()).all()
    assert row.digest == key_digest(made.api_key)
    assert made.api_key not in repr(row)
    assert made.api_key not in repr(made)


def test_tenant_revokes_only_its_own_keys(stores: Stores, tenant_id: str) -> None:
    made = stores.tenants.make_key(tenant_id, {"read"})
    other = stores.tenants.add_tenant(f"other-{tenant_id}")
    for key_id in (made.key_id, "no uuid"):
        with pytest.raises(NotFound):
            stores.tenants.revoke_key(other, key_id)
    assert stores.keys.authenticate(made.api_key) is not None


def test_tenant_names_are_unique(stores: Stores) -> None:
    stores.tenants.add_tenant("acme")
    with pytest.raises(TenantExists):
        stores.tenants.add_tenant("acme")


def test_provided_key_must_be_well_formed(stores: Stores, tenant_id: str) -> None:
    with pytest.raises(ValueError, match="hw_"):
        stores.tenants.add_key(tenant_id, READ, api_key="secret")
    provided_key = new_api_key()
    assert stores.tenants.add_key(tenant_id, READ, api_key=provided_key).api_key == provided_key


def test_unknown_tenant_gets_no_key(stores: Stores) -> None:
    with pytest.raises(NotFound):
        stores.tenants.make_key(new_id(), {"read"})
