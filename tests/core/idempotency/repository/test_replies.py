"""Idempotency keys in Postgres: one run for each, and its reply for all that come later."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from app.access.errors import IdempotencyInFlight, NotFound
from app.core.catalog.errors import DatasetExists
from app.core.idempotency.errors import IdempotencyMismatch
from app.core.idempotency.repository import ReplyStore
from app.core.idempotency.values import KeyedRequest, Outcome, RefusedRequest, StoredReply
from app.infra.db.session import Database
from app.infra.errors import Unavailable
from app.infra.identifiers import new_id
from tests.support.lakehouse import definition
from tests.support.store_fixtures import Stores

REPLY = StoredReply(status=201, headers={"Location": "/datasets/1"}, body=b'{"id": 1}\n')
REQUEST = KeyedRequest(scope="/datasets", key="k", request_hash="h")


@pytest.fixture
def replies(database: Database) -> ReplyStore:
    return ReplyStore(database)


def replied() -> StoredReply:
    return REPLY


def once(
    replies: ReplyStore,
    tenant_id: str,
    act: Callable[[], StoredReply] = replied,
    *,
    request: KeyedRequest = REQUEST,
    keep_seconds: float = 60,
) -> Outcome:
    return replies.once(tenant_id, request, act, keep_seconds=keep_seconds)


def test_a_request_runs_once_and_its_reply_is_replayed(replies: ReplyStore, tenant_id: str) -> None:
    assert once(replies, tenant_id) == Outcome(reply=REPLY, is_replay=False)
    assert once(replies, tenant_id, pytest.fail) == Outcome(reply=REPLY, is_replay=True)


def test_a_key_belongs_to_its_tenant_and_path(stores: Stores, replies: ReplyStore, tenant_id: str) -> None:
    once(replies, tenant_id)
    other = stores.tenants.add_tenant(f"tenant-{new_id()}")
    assert not once(replies, other).is_replay
    elsewhere = KeyedRequest(scope="/webhooks", key="k", request_hash="h")
    assert not once(replies, tenant_id, request=elsewhere).is_replay


def test_another_request_with_the_key_is_refused(replies: ReplyStore, tenant_id: str) -> None:
    once(replies, tenant_id)
    other = KeyedRequest(scope="/datasets", key="k", request_hash="other")
    with pytest.raises(IdempotencyMismatch):
        once(replies, tenant_id, pytest.fail, request=other)
    assert once(replies, tenant_id, pytest.fail).is_replay


def test_a_request_that_still_runs_is_in_flight(replies: ReplyStore, tenant_id: str) -> None:
    started, finish = threading.Event(), threading.Event()
    outcomes: list[Outcome] = []

    def slow() -> StoredReply:
        started.set()
        assert finish.wait(30)
        return REPLY

    thread = threading.Thread(target=lambda: outcomes.append(once(replies, tenant_id, slow)))
    thread.start()
    try:
        assert started.wait(30)
        with pytest.raises(IdempotencyInFlight):
            once(replies, tenant_id, pytest.fail)
        other = KeyedRequest(scope="/datasets", key="k2", request_hash="h")
        assert not once(replies, tenant_id, request=other).is_replay
    finally:
        finish.set()
        thread.join()
    assert [outcome.is_replay for outcome in outcomes] == [False]
    assert once(replies, tenant_id, pytest.fail).is_replay


def test_what_a_request_creates_is_committed_with_its_reply_or_not_at_all(
    stores: Stores, replies: ReplyStore, tenant_id: str
) -> None:
    def create() -> StoredReply:
        stores.catalog.create(tenant_id, new_id(), definition())
        return REPLY

    def create_and_die() -> StoredReply:
        create()
        raise Unavailable("the storage is away")

    name = definition().name
    with pytest.raises(Unavailable):
        once(replies, tenant_id, create_and_die)
    with pytest.raises(NotFound):
        stores.catalog.get(tenant_id, name)
    # The key is free: the retry runs.
    assert not once(replies, tenant_id, create).is_replay
    assert stores.catalog.get(tenant_id, name).definition.name == name
    assert once(replies, tenant_id, create).is_replay


def test_a_refusal_is_stored_and_what_led_to_it_is_rolled_back(
    stores: Stores, replies: ReplyStore, tenant_id: str
) -> None:
    refusal = StoredReply(status=409, headers={}, body=b"{}")

    def refuse() -> StoredReply:
        stores.catalog.create(tenant_id, new_id(), definition())
        with pytest.raises(DatasetExists):
            stores.catalog.create(tenant_id, new_id(), definition())
        raise RefusedRequest(refusal)

    assert once(replies, tenant_id, refuse) == Outcome(reply=refusal, is_replay=False)
    with pytest.raises(NotFound):
        stores.catalog.get(tenant_id, definition().name)
    assert once(replies, tenant_id, pytest.fail) == Outcome(reply=refusal, is_replay=True)


def test_an_expired_key_is_free(replies: ReplyStore, tenant_id: str) -> None:
    once(replies, tenant_id, keep_seconds=-1)
    other = KeyedRequest(scope="/datasets", key="k", request_hash="other")
    assert not once(replies, tenant_id, request=other).is_replay
    assert once(replies, tenant_id, pytest.fail, request=other).is_replay


def test_expired_keys_are_removed_up_to_a_limit_and_no_others(
    stores: Stores, replies: ReplyStore, tenant_id: str
) -> None:
    for number in range(3):
        request = KeyedRequest(scope="/datasets", key=f"old-{number}", request_hash="h")
        once(replies, tenant_id, request=request, keep_seconds=-1)
    once(replies, tenant_id)
    other = stores.tenants.add_tenant(f"tenant-{new_id()}")
    assert [replies.expire(other, 9), replies.expire(tenant_id, 2), replies.expire(tenant_id, 2)] == [0, 2, 1]
    assert replies.expire(tenant_id, 2) == 0
    assert once(replies, tenant_id, pytest.fail).is_replay


def test_the_shared_transaction_is_of_one_tenant(stores: Stores, replies: ReplyStore, tenant_id: str) -> None:
    other = stores.tenants.add_tenant(f"tenant-{new_id()}")

    def of_another_tenant() -> StoredReply:
        stores.catalog.create(other, new_id(), definition())
        return REPLY

    with pytest.raises(AssertionError, match="one tenant"):
        once(replies, tenant_id, of_another_tenant)
    with pytest.raises(NotFound):
        stores.catalog.get(other, definition().name)
