"""What open requests ask of their credential: nothing until it may have changed, and then once for all of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
from litestar.connection import ASGIConnection

from app.access.oidc.errors import TokenRefused
from app.access.tenants.values import Grant, KeyScope, Principal
from app.http.credential_cache import Credentials
from app.http.event_stream import HEARTBEAT, while_valid
from app.http.waiting import credential_checks, request_credential, shared_polls
from app.http.waiting.request_credential import CredentialEnded, RequestCredential
from app.http.waiting.shared_polls import SharedPolls
from app.http.waiting.subscriptions import Subscriptions
from app.infra.errors import Unavailable
from tests.support.streams import waiting, when

READERS = 200
_T = TypeVar("_T")


@dataclass
class World:
    """Credentials of two tenants, `a` and `b`, with the number of reads and the fault of the next ones."""

    reads: int = 0
    refused: set[str] = field(default_factory=set)
    scopes: frozenset[KeyScope] = frozenset({KeyScope.READ})
    valid_seconds: float | None = None
    fault: Exception | None = None
    read_seconds: float = 0.001
    grants: tuple[Grant, ...] | None = None
    name: str = "orders"
    name_reads: int = 0

    def __post_init__(self) -> None:
        self.credentials = Credentials(self._authenticate, self._name_of)
        self.credentials.confirm(float("inf"))

    async def _authenticate(self, credential: str) -> Principal | None:
        self.reads += 1
        found = credential not in self.refused
        await asyncio.sleep(self.read_seconds)
        if self.fault is not None:
            raise self.fault
        if not found:
            return None
        tenant = credential.split("-")[0]
        return Principal(
            tenant_id=tenant,
            actor=credential,
            scopes=self.scopes,
            valid_seconds=self.valid_seconds,
            grants=self.grants,
        )

    async def _name_of(self, _: str, __: str) -> str:
        self.name_reads += 1
        name = self.name
        await asyncio.sleep(self.read_seconds)
        if self.fault is not None:
            raise self.fault
        return name

    async def held(self, credential: str) -> RequestCredential:
        principal = await self.credentials.principal(credential)
        assert principal is not None
        connection: Any = ASGIConnection(
            {"type": "http", "path": "/feed", "headers": [], "route_handler": None}
        )  # type: ignore[typeddict-item]
        return RequestCredential(self.credentials, credential, principal, connection, ())


def polls() -> SharedPolls[int, int]:
    """Polls that never find anything."""

    async def nothing(_: str, __: str, wanted: Any) -> list[None]:
        return [None for _ in wanted]

    return SharedPolls(Subscriptions(), nothing)


async def wait(
    shared: SharedPolls[int, int], credential: RequestCredential, seconds: float = 30
) -> int | None:
    with shared.join("a", "dataset", credential) as waiter:
        return await waiter.wait(1, seconds)


def run(main: Coroutine[Any, Any, _T]) -> _T:
    async def bounded() -> _T:
        async with asyncio.timeout(20):
            return await main

    return asyncio.run(bounded())


def test_requests_with_one_credential_read_it_once_after_a_change_and_not_before() -> None:
    world, shared = World(), polls()

    async def main() -> None:
        many = [await world.held("a-1") for _ in range(READERS)]
        waits = [asyncio.create_task(wait(shared, each)) for each in many]
        await when(lambda: waiting(shared) == READERS)
        for each in many:
            await each.check()
        assert world.reads == 1
        first = {id(each) for poll in shared._open.values() for each in poll._waiting}
        # The keys of another tenant concern none of them.
        world.credentials.drop("b")
        await asyncio.sleep(0.05)
        assert world.reads == 1
        world.credentials.drop("a")
        await when(lambda: world.reads == 2)
        await asyncio.sleep(0.05)
        # It is as it was: none of them was woken.
        assert {id(each) for poll in shared._open.values() for each in poll._waiting} == first
        for each in many:
            await each.check()
        assert world.reads == 2
        world.refused.add("a-1")
        world.credentials.drop("a")
        ended = await asyncio.gather(*waits, return_exceptions=True)
        assert {type(each) for each in ended} == {CredentialEnded}
        assert world.reads == 3
        assert not shared._open

    run(main())


def test_name_of_a_dataset_is_read_once_after_a_change_and_ends_requests_whose_grants_it_leaves() -> None:
    world, shared = World(grants=(Grant(datasets="orders*"),)), polls()

    async def main() -> None:
        many = [await world.held(f"a-{number % 2}") for number in range(READERS)]
        for each in many:
            each.began_with([world.name])
        waits = [asyncio.create_task(wait(shared, each)) for each in many]
        await when(lambda: waiting(shared) == READERS)
        assert (world.reads, world.name_reads) == (2, 1)
        # Another key of the tenant has changed, then the name, within the grant.
        for reads, name in ((2, "orders"), (3, "orders_2")):
            world.name = name
            world.credentials.drop("a")
            await when(lambda expected=reads: world.name_reads == expected)  # type: ignore[misc]
        await asyncio.sleep(0.05)
        assert not any(each.done() for each in waits)
        # A fault is not remembered.
        world.fault = Unavailable("the database is away")
        world.credentials.drop("a")
        await when(lambda: world.reads > 6)
        assert not any(each.done() for each in waits)
        world.fault, world.name = None, "payments"
        world.credentials.drop("a")
        ended = await asyncio.gather(*waits, return_exceptions=True)
        assert {type(each) for each in ended} == {CredentialEnded}

    run(main())


@pytest.mark.parametrize("read_by_another", [False, True], ids=["alone", "read-by-another"])
def test_name_that_changes_while_the_name_of_before_is_read_ends_the_wait_that_begins_then(
    monkeypatch: pytest.MonkeyPatch, read_by_another: bool
) -> None:
    monkeypatch.setattr(credential_checks, "_PAUSE_SECONDS", 0.0)
    world, shared = World(grants=(Grant(datasets="orders*"),)), polls()

    async def main() -> None:
        credential, other = await world.held("a-1"), await world.held("a-1")
        for each in (credential, other):
            each.began_with([world.name])
        pending = asyncio.create_task(wait(shared, credential))
        await when(lambda: waiting(shared) == 1)
        before = world.name_reads
        world.read_seconds = 0.2
        world.credentials.drop("a")
        await when(lambda: world.name_reads == before + 1)
        # The name of before is being read. No request waits yet, so this change wakes none.
        world.name = "payments"
        world.read_seconds = 0.001
        world.credentials.drop("a")
        if read_by_another:
            await other.check()
        with pytest.raises(CredentialEnded):
            await asyncio.wait_for(pending, 5)

    run(main())


def test_tenant_that_changes_its_keys_all_the_time_is_checked_a_few_times_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(credential_checks, "_PAUSE_SECONDS", 0.2)
    world, shared = World(), polls()

    async def main() -> None:
        waits = [asyncio.create_task(wait(shared, await world.held(f"a-{number}"))) for number in range(5)]
        await when(lambda: waiting(shared) == len(waits))
        began, before = time.monotonic(), world.reads
        while time.monotonic() < began + 0.5:
            world.credentials.drop("a")
            await asyncio.sleep(0.001)
        assert world.reads - before <= len(waits) * ((time.monotonic() - began) / 0.2 + 2)
        # The last change is never missed.
        world.refused.add("a-3")
        world.credentials.drop("a")
        await when(waits[3].done)
        assert [each.done() for each in waits] == [False, False, False, True, False]
        for each in waits:
            each.cancel()

    run(main())


def test_credential_that_ends_while_it_is_read_ends_the_wait_that_begins_then() -> None:
    world, shared = World(), polls()

    async def main() -> None:
        credential = await world.held("a-1")
        world.credentials.drop("a")
        world.read_seconds = 0.2
        pending = asyncio.create_task(wait(shared, credential))
        await when(lambda: world.reads == 2)
        world.refused.add("a-1")
        world.credentials.drop("a")
        with pytest.raises(CredentialEnded):
            await asyncio.wait_for(pending, 5)
        assert world.reads == 3

    run(main())


async def _ends_as_expired(world: World, pending: asyncio.Task[int | None]) -> None:
    """The wait goes on until the token is refused, and ends with the reason."""
    assert not pending.done()
    world.fault = TokenRefused("expired", "the token has expired")
    with pytest.raises(CredentialEnded) as ended:
        await pending
    assert ended.value.error.facts == {"reason": "expired"}


def test_token_that_expires_ends_what_waits_with_it() -> None:
    world, shared = World(valid_seconds=0.3), polls()

    async def main() -> None:
        token = await world.held("a-token")
        pending = asyncio.create_task(wait(shared, token))
        await when(lambda: waiting(shared) == 1)
        # Before it ends, it is verified again, as its issuer may have withdrawn the key.
        await when(lambda: world.reads == 2)
        await _ends_as_expired(world, pending)

    run(main())


def test_token_that_expires_while_it_is_verified_ends_what_waits_with_its_reason() -> None:
    world, shared = World(valid_seconds=0.0001), polls()

    async def main() -> None:
        # It was valid when it was verified.
        token = await world.held("a-token")
        pending = asyncio.create_task(wait(shared, token))
        await when(lambda: world.reads == 3)
        await _ends_as_expired(world, pending)

    run(main())


def test_nothing_of_the_data_is_sent_while_the_credential_cannot_be_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(request_credential, "_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(credential_checks, "_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(shared_polls, "POLL_SECONDS", 0.01)
    world, shared = World(), polls()

    async def events() -> AsyncIterator[bytes]:
        yield HEARTBEAT
        yield b"change 1"
        yield HEARTBEAT
        yield b"change 2"

    async def main() -> None:
        credential = await world.held("a-1")
        pending = asyncio.create_task(wait(shared, credential))
        await when(lambda: waiting(shared) == 1)
        stream: Any = while_valid(events(), credential)  # type: ignore[arg-type]
        world.fault = Unavailable("the database is away")
        # The connection that listens is lost, too.
        world.credentials.drop_all()
        assert await anext(stream) == HEARTBEAT
        piece = asyncio.create_task(anext(stream))
        reads = world.reads
        await when(lambda: world.reads > reads + 2)
        assert not piece.done()
        assert not pending.done()
        world.fault = None
        assert await piece == b"change 1"
        assert await anext(stream) == HEARTBEAT
        world.refused.add("a-1")
        world.credentials.drop_all()
        world.credentials.confirm(float("inf"))
        with pytest.raises(CredentialEnded):
            await pending
        error = (await anext(stream)).decode()
        assert error.startswith('event: error\ndata: {"type":"/problems/unauthorized"')
        assert error.endswith('"instance":"/feed"}\n\n')
        assert [each async for each in stream] == []

    run(main())
    monkeypatch.setattr(request_credential, "_RETRIES_MAX", 3)
    world = World()

    async def away() -> None:
        credential = await world.held("a-1")
        world.fault = Unavailable("the database is away")
        world.credentials.drop_all()
        pieces = [each async for each in while_valid(events(), credential)]  # type: ignore[arg-type]
        assert pieces[0] == HEARTBEAT
        assert pieces[1].startswith(b'event: error\ndata: {"type":"/problems/unavailable"')
        assert len(pieces) == 2

    run(away())


def test_credential_that_is_valid_again_serves_new_requests() -> None:
    world = World()

    async def main() -> None:
        credential = await world.held("a-1")
        await credential.check()
        world.fault = TokenRefused("key", "the issuer has withdrawn the key of the token")
        world.credentials.drop("a")
        with pytest.raises(CredentialEnded):
            await credential.check()
        world.fault = None
        again = await world.held("a-1")
        await again.check()
        with pytest.raises(CredentialEnded):
            await credential.check()

    run(main())


def test_credential_is_not_read_for_requests_that_do_not_wait() -> None:
    world, shared = World(), polls()

    async def main() -> None:
        ended, busy = await world.held("a-1"), await world.held("a-2")
        assert await wait(shared, ended, 0.05) is None
        await busy.check()
        world.refused.add("a-2")
        world.credentials.drop("a")
        await asyncio.sleep(0.05)
        assert world.reads == 2
        with pytest.raises(CredentialEnded):
            await busy.check()

    run(main())
