"""What a process knows of credentials: current at once, or not used."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest

from app.access.tenants.errors import RateLimited
from app.access.tenants.repository.credential_changes import CREDENTIALS_CHANNEL
from app.access.tenants.service import FollowCredentials, RecordUses
from app.access.tenants.values import (
    KEYS_MAX,
    ActorKind,
    KeyScope,
    NewKey,
    Principal,
    TenantChange,
    TenantState,
    new_api_key,
)
from app.features.administration.service import Administration
from app.http import credential_cache
from app.http.credential_cache import ADDRESS_LOOKUPS_MAX, LOOKUPS_MAX, OUTAGE_SECONDS, Credentials
from app.infra.errors import Unavailable
from app.infra.identifiers import new_id
from app.infra.runtime.loops import Loop
from tests.support.postgres import TestServer
from tests.support.store_fixtures import Stores
from tests.support.streams import no_name


class Process:
    """The credentials of a process that listens, with the number of keys that it has read."""

    def __init__(self, stores: Stores) -> None:
        self.reads = 0
        self._stores = stores
        self.credentials = Credentials(self._authenticate, no_name)

    async def _authenticate(self, api_key: str) -> Principal | None:
        self.reads += 1
        return self._stores.keys.authenticate(api_key)

    def principal(self, api_key: str) -> Principal | None:
        return asyncio.run(self.credentials.principal(api_key))

    @contextmanager
    def listening(self) -> Iterator[None]:
        stop = threading.Event()
        follow = FollowCredentials(
            cache=self.credentials,
            listening=lambda: self._stores.database.listening(CREDENTIALS_CHANNEL),
            stop=stop,
            on_answer=lambda: None,
        )
        loop = Loop("credentials", follow.run, every_seconds=0.1)
        thread = threading.Thread(target=loop.run, args=(stop,))
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def cached(self, api_key: str) -> bool:
        """Whether the key is served without reading it."""
        before = self.reads
        return self.principal(api_key) is not None and self.reads == before


@pytest.fixture
def process(stores: Stores) -> Process:
    return Process(stores)


def until(done: Callable[[], bool], seconds_max: float = 10) -> None:
    deadline = time.monotonic() + seconds_max
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_changes_take_effect_in_a_process_that_serves_from_its_cache(
    stores: Stores, tenant_id: str, process: Process
) -> None:
    other = stores.tenants.make_key(stores.tenants.add_tenant(f"other-{tenant_id}"), {"read"})
    made = stores.tenants.make_key(tenant_id, {"read"})
    with process.listening():
        for key in (made, other):
            until(lambda key=key: process.cached(key.api_key))
        stores.tenants.change(tenant_id, TenantChange(state=TenantState.SUSPENDED, reason="unpaid"))
        until(lambda: getattr(process.principal(made.api_key), "suspension", None) == "unpaid")
        stores.tenants.change(tenant_id, TenantChange(state=TenantState.ACTIVE))
        until(lambda: getattr(process.principal(made.api_key), "suspension", "") is None)
        stores.tenants.revoke_key(tenant_id, made.key_id)
        until(lambda: process.principal(made.api_key) is None)
        # The keys of other tenants are still served without a query.
        assert process.cached(other.api_key)


def test_changes_that_a_process_makes_itself_take_effect_before_it_hears_of_them(
    stores: Stores, tenant_id: str, process: Process
) -> None:
    administration = Administration(store=stores.tenants, on_change=process.credentials.drop)
    operator = Principal(tenant_id=new_id(), actor=new_id(), scopes=frozenset(KeyScope))
    made, other = (stores.tenants.make_key(tenant_id, {"read"}) for _ in range(2))

    def cached() -> bool:
        process.credentials.confirm(time.monotonic())
        process.principal(made.api_key)
        return process.cached(made.api_key)

    def found() -> Principal | None:
        process.credentials.confirm(time.monotonic())
        return process.principal(made.api_key)

    assert cached()
    suspend = TenantChange(state=TenantState.SUSPENDED, reason="unpaid")
    administration.change_tenant(tenant_id, suspend)
    assert getattr(found(), "suspension", None) == "unpaid"
    assert cached()
    administration.revoke_key(operator, tenant_id, made.key_id)
    assert found() is None
    made = other
    assert cached()
    name = administration.tenant(tenant_id).name
    administration.delete_tenant(operator, tenant_id, name)
    assert found() is None


def test_nothing_is_served_from_the_cache_while_nothing_is_heard(
    stores: Stores, tenant_id: str, process: Process, postgres: TestServer, database_url: str
) -> None:
    made = stores.tenants.make_key(tenant_id, {"read"})
    assert not process.cached(made.api_key)
    assert not process.cached(made.api_key)
    with process.listening():
        until(lambda: process.cached(made.api_key))
        with postgres.administration() as connection:
            name = database_url.rsplit("/", 1)[1]
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND query = 'SELECT 1'",
                (name,),
            )
        until(lambda: not process.cached(made.api_key))
        # It listens again by itself.
        until(lambda: process.cached(made.api_key))
    assert not process.cached(made.api_key)


def test_connection_that_is_silent_is_not_trusted(
    stores: Stores, tenant_id: str, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = stores.tenants.make_key(tenant_id, {"read"})
    process.credentials.confirm(time.monotonic())
    assert not process.cached(made.api_key)
    assert process.cached(made.api_key)
    process.credentials.confirm(time.monotonic() - 10)
    assert not process.cached(made.api_key)


def test_only_operators_whose_key_was_valid_are_served_in_an_outage_and_for_an_hour(
    stores: Stores, tenant_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    away = False

    async def authenticate(api_key: str) -> Principal | None:
        if away:
            raise Unavailable("the database does not answer")
        return stores.keys.authenticate(api_key)

    credentials = Credentials(authenticate, no_name)

    def serves(api_key: str, *, in_outages: bool = True) -> bool:
        try:
            return asyncio.run(credentials.principal(api_key, in_outages=in_outages)) is not None
        except Unavailable:
            return False

    operator, other, unused = (stores.tenants.make_key(tenant_id, {"operate"}).api_key for _ in range(3))
    reader = stores.tenants.make_key(tenant_id, {"read", "manage"}).api_key
    credentials.confirm(time.monotonic())
    assert serves(other)
    credentials.drop(tenant_id)
    assert serves(operator)
    assert serves(reader)
    away = True
    # As a round that loses its connection does, and those after it.
    credentials.drop_all()
    credentials.drop_all()
    assert serves(operator)
    assert not serves(operator, in_outages=False)
    assert [serves(each) for each in (other, unused, reader)] == [False, False, False]
    now = time.monotonic()
    monkeypatch.setattr(credential_cache.time, "monotonic", lambda: now + OUTAGE_SECONDS)
    assert not serves(operator)
    monkeypatch.undo()
    # It is heard of changes again: what was valid before counts no more.
    credentials.confirm(time.monotonic())
    assert not serves(operator)


def test_key_expires_also_in_the_cache(stores: Stores, tenant_id: str, process: Process) -> None:
    soon = datetime.now(UTC) + timedelta(seconds=0.5)
    made = stores.tenants.add_key(tenant_id, NewKey(name="", scopes=(KeyScope.READ,), expires_at=soon))
    with process.listening():
        assert process.principal(made.api_key) is not None
        until(lambda: process.principal(made.api_key) is None)
    assert datetime.now(UTC) >= soon


def test_key_that_is_revoked_while_it_is_read_is_not_cached(stores: Stores, tenant_id: str) -> None:
    made = stores.tenants.make_key(tenant_id, {"read"})

    async def revoked_after(api_key: str) -> Principal | None:
        principal = stores.keys.authenticate(api_key)
        stores.tenants.revoke_key(tenant_id, made.key_id)
        credentials.drop(tenant_id)
        return principal

    credentials = Credentials(revoked_after, no_name)
    credentials.confirm(time.monotonic())
    assert asyncio.run(credentials.principal(made.api_key)) is not None
    assert asyncio.run(credentials.principal(made.api_key)) is None


def test_unknown_key_is_read_once_in_a_while(process: Process) -> None:
    unknown = new_api_key()
    assert [process.principal(unknown) for _ in range(5)] == [None] * 5
    assert process.reads == 1


def test_unseen_keys_are_read_in_few_turns_of_each_address() -> None:
    known, reads = new_api_key(), []
    principal = Principal(tenant_id=new_id(), actor=new_id(), scopes=frozenset())

    async def run() -> None:
        answering = asyncio.Event()

        async def authenticate(api_key: str) -> Principal | None:
            if api_key == known:
                return principal
            reads.append(api_key)
            await answering.wait()
            return None

        credentials = Credentials(authenticate, no_name)

        def send(address: str, api_key: str) -> asyncio.Task[Principal | None]:
            return asyncio.create_task(credentials.principal(api_key, address))

        assert await send("flood", known) == principal
        flood = [send("flood", new_api_key()) for _ in range(2 * ADDRESS_LOOKUPS_MAX)]
        same = new_api_key()
        others = [send("other", same) for _ in range(9)]
        await asyncio.sleep(0)
        # Whatever has changed, the process has seen the key.
        for change in (lambda: credentials.drop(principal.tenant_id), credentials.drop_all):
            change()
            assert await send("flood", known) == principal
        assert len(reads) == LOOKUPS_MAX
        refused = [each for each in flood if each.done()]
        assert len(refused) == ADDRESS_LOOKUPS_MAX
        for each in refused:
            with pytest.raises(RateLimited):
                await each
        answering.set()
        assert await asyncio.gather(*others) == [None] * 9
        assert reads.count(same) == 1
        assert await asyncio.gather(*(each for each in flood if each not in refused)) == (
            [None] * ADDRESS_LOOKUPS_MAX
        )
        # Each turn was given back.
        assert await send("flood", new_api_key()) is None

    asyncio.run(run())


def test_used_keys_are_recorded_without_a_query_of_the_request(
    stores: Stores, tenant_id: str, process: Process
) -> None:
    made = stores.tenants.make_key(tenant_id, {"read"})
    uses = RecordUses(cache=process.credentials, actors={ActorKind.KEY: stores.keys})
    process.principal(made.api_key)
    assert stores.tenants.key(tenant_id, made.key_id).last_used_at is None
    uses.record()
    assert stores.tenants.key(tenant_id, made.key_id).last_used_at is not None
    assert not process.credentials.take_used()


def test_credentials_of_a_tenant_displace_only_one_another() -> None:
    reads: list[str] = []

    async def authenticate(credential: str) -> Principal:
        reads.append(credential)
        return Principal(tenant_id=credential.split("-")[0], actor=new_id(), scopes=frozenset())

    credentials = Credentials(authenticate, no_name)

    async def send(*sent: str) -> None:
        for credential in sent:
            credentials.confirm(time.monotonic())
            await credentials.principal(credential)

    many = [f"many-{number}" for number in range(KEYS_MAX + 1)]
    asyncio.run(send("few-0", *many))
    reads.clear()
    asyncio.run(send("few-0", many[-1], many[0]))
    assert reads == [many[0]]
    credentials.drop("many")
    reads.clear()
    asyncio.run(send("few-0", many[-1]))
    assert reads == [many[-1]]
