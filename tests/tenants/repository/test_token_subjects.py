"""Verified tokens: their tenant must exist, and their subject is recorded once."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from app.format.identifiers import new_id
from app.tenants.tables import token_subjects
from app.tenants.values import (
    Grant,
    KeyScope,
    Principal,
    TenantChange,
    TenantState,
    TokenClaims,
    TokenIdentity,
)
from tests.support.store_fixtures import Stores


def claims(tenant: str, subject: str = "ada", issuer: str = "https://issuer.example") -> TokenClaims:
    return TokenClaims(
        tenant=tenant,
        identity=TokenIdentity(issuer=issuer, subject=subject, expires_at=datetime.now(UTC)),
        scopes=frozenset({KeyScope.READ}),
        grants=(Grant(datasets="orders_*"),),
        valid_seconds=60,
    )


def test_token_is_admitted_by_the_id_or_name_of_its_tenant(stores: Stores, tenant_id: str) -> None:
    for reference in (tenant_id, stores.tenants.tenant(tenant_id).name):
        stated = claims(reference)
        principal = stores.keys.admit(stated)
        assert principal is not None
        assert (principal.tenant_id, principal.token) == (tenant_id, stated.identity)
        assert (principal.scopes, principal.grants) == (stated.scopes, stated.grants)
        assert (principal.suspended, principal.valid_seconds) == (None, 60)
    stores.tenants.change(tenant_id, TenantChange(state=TenantState.SUSPENDED, reason="unpaid"))
    suspended = stores.keys.admit(claims(tenant_id))
    assert suspended is not None
    assert suspended.suspended == "unpaid"


@pytest.mark.parametrize("reference", [new_id(), "no-such-tenant", ""], ids=["id", "name", "nothing"])
def test_token_of_an_unknown_tenant_is_not_admitted(stores: Stores, reference: str) -> None:
    assert stores.keys.admit(claims(reference)) is None


def test_token_of_a_deleted_tenant_is_not_admitted_and_records_nothing(
    stores: Stores, tenant_id: str
) -> None:
    name = stores.tenants.tenant(tenant_id).name
    operator = Principal(tenant_id=new_id(), actor=new_id(), scopes=frozenset())
    stores.tenants.begin_deletion(tenant_id, confirmed=name, actor=operator)
    assert [stores.keys.admit(claims(reference)) for reference in (tenant_id, name)] == [None, None]
    with stores.database.tenant(tenant_id) as connection:
        assert not connection.execute(token_subjects.select()).all()


def test_each_subject_of_each_issuer_is_recorded_once(stores: Stores, tenant_id: str) -> None:
    who = [("ada", "https://a.example"), ("ada", "https://b.example"), ("bob", "https://a.example")]
    admitted = [stores.keys.admit(claims(tenant_id, *each)) for each in who * 2]
    actors = {each.actor for each in admitted if each is not None}
    with stores.database.tenant(tenant_id) as connection:
        rows = connection.execute(token_subjects.select()).all()
    assert {row.id for row in rows} == actors
    assert sorted((row.subject, row.issuer) for row in rows) == sorted(who)
