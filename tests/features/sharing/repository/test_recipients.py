"""Recipients as principals: what their tokens give, and the tables that they see."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from sqlalchemy import text

from app.access.errors import NotFound
from app.access.tenants.values import Actor, ActorKind, KeyScope, Principal, TenantChange, TenantState
from app.core.catalog.values import Dataset
from app.features.sharing.errors import RecipientExists, ShareExists
from app.features.sharing.repository.credentials import RecipientStore
from app.features.sharing.repository.recipients import ShareRecipientStore
from app.features.sharing.repository.shared_tables import SharedTableStore
from app.features.sharing.repository.shares import ShareStore
from app.features.sharing.service.shared_tables import SharedTables
from app.features.sharing.values import (
    DeletedRows,
    NewRecipient,
    NewShare,
    RecipientGrant,
    Share,
    new_share_token,
)
from app.infra.identifiers import new_id, new_instant_id
from app.kernel.sql.conditions.row_access import EVERYTHING, RowAccess
from tests.support.lakehouse import definition
from tests.support.store_fixtures import Stores

ALL = NewRecipient(name="acme", grants=None, expires_at=None, requests_per_second=None)


def share_of(name: str, tables: dict[str, str]) -> NewShare:
    return NewShare(name=name, deleted_rows=DeletedRows.RENDERED, tables=tables)


@pytest.fixture
def share(stores: Stores, tenant_id: str, dataset: Dataset) -> Share:
    return ShareStore(stores.database).add(tenant_id, new_id(), share_of("Sales", {dataset.id: "Orders"}))


@pytest.fixture
def tables(stores: Stores) -> SharedTables:
    return SharedTables(store=SharedTableStore(stores.database, stores.catalog.live))


@pytest.fixture
def issue(stores: Stores, tenant_id: str, share: Share) -> Callable[[NewRecipient], tuple[str, str]]:
    """Makes a recipient; returns its id and its token."""

    def run(new: NewRecipient = ALL) -> tuple[str, str]:
        recipient_id, token = new_id(), new_share_token()
        store = ShareRecipientStore(stores.database)
        store.add(tenant_id, share.id, recipient_id, new, token, created_by=new_id())
        return recipient_id, token

    return run


def authenticated(stores: Stores, token: str) -> Principal:
    principal = RecipientStore(stores.database).authenticate(token)
    assert principal is not None
    return principal


def test_token_gives_a_principal_that_reads_the_datasets_of_its_share(
    stores: Stores,
    tenant_id: str,
    dataset: Dataset,
    issue: Callable[..., tuple[str, str]],
    tables: SharedTables,
) -> None:
    recipient_id, token = issue()
    principal = authenticated(stores, token)
    assert (principal.tenant_id, principal.actor, principal.kind) == (
        tenant_id,
        recipient_id,
        ActorKind.RECIPIENT,
    )
    assert principal.scopes_on(dataset.definition.name) == {KeyScope.READ}
    assert principal.access(dataset.definition.name) == EVERYTHING
    assert not principal.reaches("other")
    assert RecipientStore(stores.database).authenticate(new_share_token()) is None
    assert stores.keys.authenticate(token) is None
    found = tables.find(principal, "sALES", "ORDERS")
    assert (found.share, found.schema, found.name) == ("Sales", "default", "Orders")
    assert (found.dataset.id, found.access) == (dataset.id, EVERYTHING)
    assert [each.name for each in tables.list(principal, page_size=9, page_token=None).items] == ["Orders"]
    for missing in (("sales", "other"), ("other", "orders"), ("sales", "orders\0"), ("sales", "a.b")):
        with pytest.raises(NotFound):
            tables.find(principal, *missing)


def test_grants_leave_out_other_datasets_and_follow_a_rename(
    stores: Stores,
    tenant_id: str,
    dataset: Dataset,
    share: Share,
    issue: Callable[..., tuple[str, str]],
    tables: SharedTables,
) -> None:
    other = stores.catalog.create(tenant_id, new_id(), definition(name="other"))
    grant = RecipientGrant(dataset_id=dataset.id, where="id > 1", mask=("note",))
    _, token = issue(NewRecipient(name="acme", grants=(grant,), expires_at=None, requests_per_second=None))
    ShareStore(stores.database).change(
        tenant_id,
        share.id,
        share_of("Sales", {dataset.id: "Orders", other.id: "Other"}),
        revision=share.revision,
    )
    before = dataset.definition

    renamed = msgspec.structs.replace(before, name="renamed")
    stores.catalog.evolve(tenant_id, dataset.id, renamed, version=0, instant_id=new_instant_id())
    again = stores.catalog.create(tenant_id, new_id(), definition(name=before.name))
    principal = authenticated(stores, token)
    narrow = RowAccess(where=("id > 1",), masked=("note",))
    assert principal.access("renamed") == narrow
    assert not principal.reaches("other")
    assert not principal.reaches(again.definition.name)
    found = tables.find(principal, "sales", "orders")
    assert (found.dataset.id, found.access) == (dataset.id, narrow)
    with pytest.raises(NotFound):
        tables.find(principal, "sales", "other")


def test_a_dataset_that_is_deleted_leaves_its_shares(
    stores: Stores,
    tenant_id: str,
    dataset: Dataset,
    share: Share,
    issue: Callable[..., tuple[str, str]],
    tables: SharedTables,
) -> None:
    _, token = issue()
    stores.catalog.delete(tenant_id, dataset.id, version=None)
    stores.catalog.create(tenant_id, new_id(), definition(name=dataset.definition.name))
    principal = authenticated(stores, token)
    assert principal.grants == ()
    with pytest.raises(NotFound):
        tables.find(principal, "sales", "orders")
    after = ShareStore(stores.database).get(tenant_id, share.id)
    assert (after.datasets, after.revision) == ((), share.revision + 1)


def test_recipients_end_with_their_share_and_their_tenant(
    stores: Stores, tenant_id: str, share: Share, issue: Callable[..., tuple[str, str]]
) -> None:
    recipient_id, token = issue()
    actor = Actor(tenant_id=tenant_id, id=recipient_id, kind=ActorKind.RECIPIENT)
    store = RecipientStore(stores.database)
    stores.tenants.change(tenant_id, TenantChange(state=TenantState.SUSPENDED, reason="unpaid"))
    assert authenticated(stores, token).suspension == "unpaid"
    stores.tenants.change(tenant_id, TenantChange(state=TenantState.ACTIVE))
    assert store.standing(actor) is not None
    assert store.standing(Actor(tenant_id=new_id(), id=recipient_id, kind=ActorKind.RECIPIENT)) is None
    ShareStore(stores.database).delete(tenant_id, share.id, revision=None)
    assert store.authenticate(token) is None
    assert store.standing(actor) is None


def test_rotation_keeps_one_token_before_for_the_overlap(
    stores: Stores, tenant_id: str, share: Share, issue: Callable[..., tuple[str, str]]
) -> None:
    recipient_id, first = issue()
    store, credentials = ShareRecipientStore(stores.database), RecipientStore(stores.database)
    second, third, fourth = new_share_token(), new_share_token(), new_share_token()
    rotated = store.rotate(tenant_id, share.id, recipient_id, second, overlap_seconds=60)
    assert rotated.previous_token_until is not None
    assert 0 < (authenticated(stores, first).valid_seconds or 0) <= 60
    assert authenticated(stores, second).valid_seconds is None
    store.rotate(tenant_id, share.id, recipient_id, third, overlap_seconds=60)
    assert credentials.authenticate(first) is None
    assert authenticated(stores, second).valid_seconds is not None
    assert (
        store.rotate(tenant_id, share.id, recipient_id, fourth, overlap_seconds=0).previous_token_until
        is None
    )
    assert [credentials.authenticate(each) is not None for each in (first, second, third, fourth)] == [
        False,
        False,
        False,
        True,
    ]


def test_names_are_taken_in_any_capitals(
    stores: Stores, tenant_id: str, share: Share, issue: Callable[..., tuple[str, str]]
) -> None:
    issue()
    with pytest.raises(RecipientExists):
        issue()
    with pytest.raises(ShareExists):
        ShareStore(stores.database).add(tenant_id, new_id(), share_of("SALES", {}))
    assert ShareStore(stores.database).get(tenant_id, "sAlEs").id == share.id


def test_thousands_of_recipients_are_listed_in_pages_and_found_by_token(
    stores: Stores, tenant_id: str, dataset: Dataset, share: Share, issue: Callable[..., tuple[str, str]]
) -> None:
    recipient_id, token = issue()
    with stores.database.tenant(tenant_id) as connection:
        connection.execute(
            text(
                "INSERT INTO recipients (id, share_id, name, grants) SELECT gen_random_uuid(), :share, 'r' || n, "
                "json_build_array(json_build_object('dataset_id', CAST(:dataset AS text), "
                "'mask', json_build_array('note'))) "
                "FROM generate_series(1, 10000) AS n"
            ),
            {"share": share.id, "dataset": dataset.id},
        )
    assert authenticated(stores, token).actor == recipient_id
    store, names, page_token = ShareRecipientStore(stores.database), list[str](), None
    assert store.count(tenant_id) == 10_001
    while True:
        page = store.list(tenant_id, share.id, page_size=1_000, page_token=page_token)
        names += [each.name for each in page.items]
        page_token = page.next_token
        if page_token is None:
            break
    assert names == sorted({*names})
    assert len(names) == 10_001
    assert len([each for each in stores.catalog.readers(tenant_id, dataset) if each.breaks == ()]) == 10_000
