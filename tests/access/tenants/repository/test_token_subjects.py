"""Verified tokens: their tenant must exist, and their subject is recorded once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from msgspec import structs
from sqlalchemy import select, text

from app.access.tenants.tables import token_subjects
from app.access.tenants.values import (
    Actor,
    ActorKind,
    Grant,
    KeyScope,
    NewKey,
    Principal,
    TenantChange,
    TenantState,
    TokenClaims,
    TokenIdentity,
)
from app.features.retention.repository.expired_rows import (
    ExpiredSubjects,
    ExpiredSubjectStore,
    SubjectCursor,
)
from app.infra.db.times import seconds_ago
from app.infra.files.storage import LocalStorage
from app.infra.identifiers import new_id
from tests.support.expired_rows import expire_rows
from tests.support.lakehouse import definition, new_job
from tests.support.store_fixtures import Stores
from tests.support.waiting import until

DAY: Final = 86_400.0


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
        assert (principal.suspension, principal.valid_seconds) == (None, 60)
    stores.tenants.change(tenant_id, TenantChange(state=TenantState.SUSPENDED, reason="unpaid"))
    suspended = stores.keys.admit(claims(tenant_id))
    assert suspended is not None
    assert suspended.suspension == "unpaid"


@pytest.mark.parametrize("reference", [new_id(), "no-such-tenant", ""], ids=["id", "name", "nothing"])
def test_token_of_an_unknown_tenant_is_not_admitted(stores: Stores, reference: str) -> None:
    assert stores.keys.admit(claims(reference)) is None


def test_standing_is_that_of_the_kind_of_actor(stores: Stores, tenant_id: str) -> None:
    key = stores.tenants.add_key(tenant_id, NewKey(name="k", scopes=(KeyScope.READ,))).key_id
    subject = stores.keys.admit(claims(tenant_id))
    assert subject is not None
    assert subject.kind is ActorKind.TOKEN
    for kind in ActorKind:
        ends = int(datetime.now(UTC).timestamp()) + 60 if kind is ActorKind.TOKEN else None
        found = {
            actor_id: stores.keys.standing(
                Actor(tenant_id=tenant_id, id=actor_id, kind=kind, token_ends=ends)
            )
            for actor_id in (key, subject.actor)
        }
        # An id of one kind names nothing of another one.
        known = {ActorKind.KEY: key, ActorKind.TOKEN: subject.actor}.get(kind)
        assert {actor_id: each is not None and each.kind for actor_id, each in found.items()} == {
            actor_id: kind if actor_id == known else False for actor_id in found
        }


def test_token_of_a_deleted_tenant_is_not_admitted_and_records_nothing(
    stores: Stores, tenant_id: str
) -> None:
    name = stores.tenants.tenant(tenant_id).name
    operator = Principal(tenant_id=new_id(), actor=new_id(), scopes=frozenset())
    stores.tenants.begin_deletion(tenant_id, confirmation=name, actor=operator)
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


def test_subject_expires_once_it_was_not_seen_for_long_and_nothing_refers_to_it(
    stores: Stores, tenant_id: str
) -> None:
    other = stores.tenants.add_tenant(f"other-{tenant_id}")
    dataset = stores.catalog.create(tenant_id, new_id(), definition())
    subjects = {
        name: admitted(stores, tenant_id, name) for name in ("gone", "of a job", "of a key", "seen", "new")
    }
    admitted(stores, other, "gone")
    job = structs.replace(new_job(dataset.id), actor=subjects["of a job"])
    stores.jobs.accept(tenant_id, job)
    key = NewKey(name="k", scopes=(), created_by=subjects["of a key"])
    stores.tenants.add_key(tenant_id, key)
    for each in (tenant_id, other):
        age(stores, each, [name for name in subjects if name != "new"])
    # Its next token shows that it is still there.
    assert admitted(stores, tenant_id, "seen") == subjects["seen"]
    expired = ExpiredSubjectStore(stores.database)

    def expire(after: SubjectCursor | None) -> ExpiredSubjects:
        return expired.expire(tenant_id, after, keep_seconds=20 * DAY, limit=2)

    first = expire(None)
    second = expire(first.last)
    assert (first.subject_count + second.subject_count, second.last) == (1, None)
    assert names(stores, tenant_id) == subjects.keys() - {"gone"}
    assert "gone" in names(stores, other)
    assert admitted(stores, tenant_id, "gone") == subjects["gone"]
    assert names(stores, tenant_id) == subjects.keys()


def test_each_round_of_retention_checks_the_next_subjects(
    stores: Stores, tenant_id: str, tmp_path: Path
) -> None:
    for number in range(3):
        admitted(stores, tenant_id, f"subject {number}")
    age(stores, tenant_id, [f"subject {number}" for number in range(3)])
    keep = expire_rows(stores.database, LocalStorage(tmp_path), job_keep_seconds=60 * DAY)
    assert keep.run(tenant_id) == 0
    expire = expire_rows(stores.database, LocalStorage(tmp_path), job_keep_seconds=20 * DAY)
    assert [expire.run(tenant_id) for _ in range(2)] == [3, 0]


def test_subject_that_is_seen_while_it_expires_is_kept(stores: Stores, tenant_id: str) -> None:
    admitted(stores, tenant_id, "ada")
    age(stores, tenant_id, ["ada"])
    with ThreadPoolExecutor(1) as pool:
        with stores.database.tenant(tenant_id) as connection:
            connection.execute(token_subjects.delete())
            coming = pool.submit(admitted, stores, tenant_id, "ada")
            until(lambda: waits_for_a_lock(stores, tenant_id) or None, "the token to wait for the deletion")
        coming.result(20)
    assert names(stores, tenant_id) == {"ada"}


def admitted(stores: Stores, tenant_id: str, subject: str) -> str:
    """The id of the subject of a token that was sent now."""
    principal = stores.keys.admit(claims(tenant_id, subject))
    assert principal is not None
    return principal.actor


def age(stores: Stores, tenant_id: str, subjects: list[str]) -> None:
    """These subjects were last seen 30 days ago."""
    with stores.database.tenant(tenant_id) as connection:
        old = token_subjects.update().where(token_subjects.c.subject.in_(subjects))
        connection.execute(old.values(last_seen_at=seconds_ago(30 * DAY)))


def names(stores: Stores, tenant_id: str) -> set[str]:
    with stores.database.tenant(tenant_id) as connection:
        return set(connection.execute(select(token_subjects.c.subject)).scalars())


def waits_for_a_lock(stores: Stores, tenant_id: str) -> bool:
    waiting = text(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%token_subj%'"
    )
    with stores.database.tenant(tenant_id) as connection:
        return bool(connection.execute(waiting).scalar_one())
