"""Many readers of one process: what they share, and that none of them loses anything by it."""

import asyncio
import time
from dataclasses import replace
from types import SimpleNamespace

import msgspec
import pytest

from app.access.errors import NotFound
from app.core.changes.errors import OffsetAhead
from app.core.changes.handlers.events import _as_events
from app.core.changes.handlers.shared_pages import SharedPages
from app.core.changes.service.read_changes import FeedQuery, ReadChanges
from app.http.limits.threads import Threads
from app.http.waiting import shared_polls
from app.infra.errors import Unavailable
from app.kernel.changelog.delivery_forms import ChangeForm
from app.kernel.format.dataset import Vocabulary
from app.kernel.sql.conditions.row_access import RowAccess
from tests.support.stored_feed import DATASET
from tests.support.streams import CORRECTION, Counting, blocks, feed_of, serving, streamed, waiting, when

READERS = 200


@pytest.fixture
def feed_in_memory(monkeypatch):
    """A feed of one commit: services over it, and its reads and looks. Only rings are waited for."""
    monkeypatch.setattr(shared_polls, "POLL_SECONDS", 60.0)
    stored = feed_of(1)
    reads = Counting(ReadChanges(catalog=stored, index=stored, reader=stored).page)
    stored.moved_heads = fetches = Counting(stored.moved_heads)
    services = serving(stored, reads)

    def commit(*, announced=True):
        stored.history.commits.append(CORRECTION)
        if announced:
            services.subscriptions.notify(DATASET.tenant_id, DATASET.id)

    return SimpleNamespace(services=services, reads=reads, fetches=fetches, commit=commit)


class Reader:
    """Follows from `since` to `until`; `seen` are the positions delivered so far."""

    def __init__(self, services, *, since=0, until):
        self.seen = []
        self.stream = streamed(services, FeedQuery(limit=100, until=until), since)

    async def step(self):
        piece = await anext(self.stream)
        self.seen += [at for at, change in blocks(piece.decode()) if change]

    async def run(self):
        async for piece in self.stream:
            self.seen += [at for at, change in blocks(piece.decode()) if change]
        return self.seen


def positions(commits):
    """What a reader of this number of corrections gets: behind a -C its own position, behind a +C the next."""
    return [at for number in range(commits) for at in (2 * number, 2 * number + 2)]


def test_readers_at_one_position_share_polls_and_pages(feed_in_memory):
    services, fetches, commits = feed_in_memory.services, feed_in_memory.fetches, 5

    async def follow():
        readers = [Reader(services, until=2 * (commits + 1)) for _ in range(READERS)]
        running = [asyncio.create_task(reader.run()) for reader in readers]
        for number in range(commits):
            await when(lambda: all(len(reader.seen) == 2 * (number + 1) for reader in readers))  # noqa: B023
            await when(lambda: waiting(services.head_polls) == READERS)
            feed_in_memory.commit()
        return await asyncio.gather(*running)

    assert asyncio.run(follow()) == [positions(commits + 1)] * READERS
    assert feed_in_memory.reads.calls == commits + 1
    # They come in a few waves, each of which is awaited; then there is one poll for each notification.
    assert fetches.calls <= commits + READERS / 10


def test_readers_that_see_different_rows_share_polls_and_never_a_page(feed_in_memory):
    services, commits = feed_in_memory.services, 3
    accesses = {RowAccess(): "rows", RowAccess(where=("n = 1",)): "none", RowAccess(masked=("k",)): "masked"}

    async def read(access):
        query = FeedQuery(limit=100, until=2 * commits, access=access)
        return [
            change
            async for piece in streamed(services, query)
            for _, change in blocks(piece.decode())
            if change
        ]

    async def follow():
        running = [asyncio.create_task(read(access)) for access in [*accesses] * 20]
        for _ in range(commits - 1):
            await when(lambda: waiting(services.head_polls) == len(running))
            feed_in_memory.commit()
            await when(
                lambda: waiting(services.head_polls) == len(running) or all(map(asyncio.Task.done, running))
            )
        return await asyncio.gather(*running)

    for access, changes in zip([*accesses] * 20, asyncio.run(follow()), strict=True):
        assert len(changes) == (0 if accesses[access] == "none" else 2 * commits)
        assert {change["row"]["k"] for change in changes} <= {None if accesses[access] == "masked" else "a"}


def test_lost_notification_only_delays_and_idle_readers_share_one_poll(feed_in_memory, monkeypatch):
    monkeypatch.setattr(shared_polls, "POLL_SECONDS", 0.1)
    services = feed_in_memory.services

    async def follow():
        running = [asyncio.create_task(Reader(services, until=4).run()) for _ in range(READERS)]
        await when(lambda: waiting(services.head_polls) == READERS)
        fetches, began = feed_in_memory.fetches.calls, time.monotonic()
        await asyncio.sleep(0.5)
        fetches = feed_in_memory.fetches.calls - fetches
        idle = fetches / (time.monotonic() - began)
        feed_in_memory.commit(announced=False)
        return idle, await asyncio.gather(*running)

    idle, received = asyncio.run(follow())
    assert received == [positions(2)] * READERS
    # Ten in a second, and those for the last who came.
    assert 2 <= idle <= 30
    assert feed_in_memory.reads.calls == 2


def test_dataset_is_polled_seldom_while_announcements_arrive(feed_in_memory, monkeypatch):
    monkeypatch.setattr(shared_polls, "POLL_SECONDS", 0.05)
    monkeypatch.setattr(shared_polls, "ANNOUNCED_POLL_SECONDS", 1e6)
    services, fetches = feed_in_memory.services, feed_in_memory.fetches
    services.subscriptions.set_hears(True)

    async def follow():
        running = [asyncio.create_task(Reader(services, until=6).run()) for _ in range(READERS)]
        await when(lambda: waiting(services.head_polls) == READERS)
        await asyncio.sleep(0.1)
        before = fetches.calls
        await asyncio.sleep(0.5)
        assert fetches.calls == before
        # Missed, until it is known that announcements are.
        feed_in_memory.commit(announced=False)
        services.subscriptions.set_hears(False)
        await when(lambda: feed_in_memory.reads.calls == 2)
        feed_in_memory.commit(announced=False)
        return await asyncio.gather(*running)

    assert asyncio.run(follow()) == [positions(3)] * READERS


def test_commit_during_a_poll_is_polled_again(feed_in_memory):
    async def follow():
        feed_in_memory.fetches.gate.clear()
        running = asyncio.create_task(Reader(feed_in_memory.services, until=4).run())
        await when(lambda: feed_in_memory.fetches.calls == 1)
        feed_in_memory.commit()
        feed_in_memory.fetches.gate.set()
        async with asyncio.timeout(20):
            return await running

    assert asyncio.run(follow()) == positions(2)


def test_busy_reader_gets_changes_it_was_notified_of_while_busy(feed_in_memory):
    services = feed_in_memory.services

    async def follow():
        prompt, busy = Reader(services, until=6), Reader(services, until=6)
        await busy.step()
        running = asyncio.create_task(prompt.run())
        for seen in (2, 4):
            await when(lambda: len(prompt.seen) == seen and waiting(services.head_polls) == 1)  # noqa: B023
            feed_in_memory.commit()
        # The slow one delays no other, and needs no ring for what it missed.
        assert await running == positions(3)
        assert busy.seen == positions(1)
        async with asyncio.timeout(20):
            return await busy.run()

    assert asyncio.run(follow()) == positions(3)


def test_cancelled_reader_does_not_cancel_the_shared_page(feed_in_memory):
    services, reads = feed_in_memory.services, feed_in_memory.reads

    async def follow():
        reads.gate.clear()
        running = [asyncio.create_task(Reader(services, until=2).run()) for _ in range(3)]
        await when(lambda: reads.calls == 1)
        await asyncio.sleep(0.01)
        running[0].cancel()
        running[1].cancel()
        await asyncio.sleep(0.01)
        reads.gate.set()
        return await asyncio.gather(*running, return_exceptions=True)

    *left, received = asyncio.run(follow())
    assert all(isinstance(one, asyncio.CancelledError) for one in left)
    assert received == positions(1)
    assert reads.calls == 1


def test_cancelled_reader_does_not_cancel_the_shared_poll(feed_in_memory):
    services = feed_in_memory.services

    async def follow():
        running = [asyncio.create_task(Reader(services, until=4).run()) for _ in range(3)]
        await when(lambda: waiting(services.head_polls) == 3)
        running[0].cancel()
        await when(lambda: waiting(services.head_polls) == 2)
        feed_in_memory.commit()
        received = await asyncio.gather(*running[1:])
        assert not services.head_polls._open
        assert not services.subscriptions._subscriptions
        return received

    assert asyncio.run(follow()) == [positions(2)] * 2


def test_dataset_found_at_the_timeout_is_returned(feed_in_memory):
    services = feed_in_memory.services

    async def wait():
        feed_in_memory.fetches.gate.clear()
        with services.head_polls.join(DATASET.tenant_id, DATASET.id, services.credential) as waiter:
            pending = asyncio.create_task(waiter.wait(0, 0.05))
            await when(lambda: waiting(services.head_polls) == 1)
            (answer,) = next(iter(services.head_polls._open.values()))._waiting
            # The loop has no turn until the time is over; then it has the answer and the end of the time in one.
            time.sleep(0.1)  # noqa: ASYNC251
            asyncio.get_running_loop().call_soon(answer.set_result, (1, DATASET))
            found = await pending
        feed_in_memory.fetches.gate.set()
        return found

    assert asyncio.run(wait()) is DATASET


def test_deleted_dataset_ends_all_its_streams(feed_in_memory):
    services = feed_in_memory.services

    async def follow():
        running = [asyncio.create_task(Reader(services, until=4).run()) for _ in range(READERS)]
        await when(lambda: waiting(services.head_polls) == READERS)
        feed_in_memory.fetches.faults = [NotFound("gone")]
        services.subscriptions.notify(DATASET.tenant_id, DATASET.id)
        return await asyncio.gather(*running)

    assert asyncio.run(follow()) == [positions(1)] * READERS


def test_unavailable_database_ends_no_stream(feed_in_memory, monkeypatch):
    monkeypatch.setattr(shared_polls, "POLL_SECONDS", 0.02)
    services = feed_in_memory.services

    async def follow():
        running = [asyncio.create_task(Reader(services, until=4).run()) for _ in range(READERS)]
        await when(lambda: waiting(services.head_polls) == READERS)
        feed_in_memory.fetches.faults = [Unavailable("away"), Unavailable("away")]
        feed_in_memory.reads.faults = [Unavailable("away")]
        feed_in_memory.commit()
        return await asyncio.gather(*running)

    assert asyncio.run(follow()) == [positions(2)] * READERS


def test_fault_of_a_page_reaches_all_its_readers_and_is_not_cached(feed_in_memory):
    pages, reads = feed_in_memory.services.pages, feed_in_memory.reads
    reads.faults = [OffsetAhead("of another feed")]

    async def request_page():
        pending = [pages.page(DATASET, 0, FeedQuery(limit=1), _as_events) for _ in range(3)]
        received = await asyncio.gather(*pending, return_exceptions=True)
        return received, await pages.page(DATASET, 0, FeedQuery(limit=1), _as_events)

    received, page = asyncio.run(request_page())
    assert [type(one) for one in received] == [OffsetAhead] * 3
    assert not page.empty


@pytest.mark.parametrize(
    "other",
    [{"tenant_id": "another"}, {"id": "another"}, {"version": 1}, {"earliest_offset": 1}],
    ids=["tenant", "dataset", "version", "earliest"],
)
def test_only_equal_queries_share_a_page(feed_in_memory, other):
    pages, reads = feed_in_memory.services.pages, feed_in_memory.reads
    query = FeedQuery(limit=2)

    async def request_page():
        for dataset in (DATASET, DATASET, msgspec.structs.replace(DATASET, **other)):
            await pages.page(dataset, 0, query, _as_events)
        for changed in ({"limit": 3}, {"form": ChangeForm.UPSERT}, {"until": 2}, {"columns": ("n",)}):
            await pages.page(DATASET, 0, FeedQuery(**{"limit": 2, **changed}), _as_events)
        await pages.page(DATASET, 2, query, _as_events)
        await pages.page(DATASET, 0, query, lambda page: b"")

    asyncio.run(request_page())
    assert reads.calls == 2 + 4 + 2


def ten_bytes(page):
    return b"x" * 10


@pytest.mark.parametrize("seconds", [60.0, 0.05])
def test_page_cache_is_bounded_in_time_and_bytes(seconds):
    stored = feed_of(3)
    reads = Counting(ReadChanges(catalog=stored, index=stored, reader=stored).page)
    # Room for two pages, with what else an entry takes.
    pages = SharedPages(reads, Threads(), kept_bytes=5_000, kept_seconds=seconds, settled_seconds=seconds)

    async def request_page(*positions):
        for since in positions:
            await pages.page(DATASET, since, FeedQuery(limit=2), ten_bytes)

    async def walk():
        if seconds > 1:
            await request_page(0, 2, 0, 2, 4, 2, 4)
            assert (reads.calls, len(pages._cache)) == (3, 2)
            assert 20 <= pages._cache.size_bytes <= 5_000
            await request_page(0)
            assert (reads.calls, len(pages._cache)) == (4, 2)
        else:
            await request_page(0, 2)
            await when(lambda: not pages._cache)
            assert pages._cache.size_bytes == 0
            await request_page(0)
            assert reads.calls == 3

    asyncio.run(walk())


def test_long_filters_count_in_the_cache():
    stored = feed_of(3)
    page = ReadChanges(catalog=stored, index=stored, reader=stored).page(DATASET, 0, FeedQuery(limit=2))
    pages = SharedPages(lambda *_: page, Threads(), kept_bytes=100_000)

    async def walk():
        for number in range(20):
            where = f"k = '{number:010000}'"
            await pages.page(DATASET, 0, FeedQuery(limit=2, where=where), ten_bytes)

    asyncio.run(walk())
    assert len(pages._cache) == 8


def test_settled_page_is_read_once_whatever_is_committed_behind_it():
    stored = feed_of(3)
    pages, reads = shared_pages_of(stored)

    async def walk():
        first = await pages.page(stored.get("t", "d"), 0, FeedQuery(limit=2), ten_bytes, fresh=True)
        stored.history.commits.append(CORRECTION)
        second = await pages.page(stored.get("t", "d"), 0, FeedQuery(limit=2), ten_bytes, fresh=True)
        last = await pages.page(stored.get("t", "d"), 6, FeedQuery(limit=4), ten_bytes, fresh=True)
        stored.history.commits.append(CORRECTION)
        longer = await pages.page(stored.get("t", "d"), 6, FeedQuery(limit=4), ten_bytes, fresh=True)
        return first, second, last, longer

    first, second, last, longer = asyncio.run(walk())
    assert (first.pending, second.pending) == (4, 6)
    assert replace(second, pending=4) == first
    # A page at the head is not settled.
    assert (last.position, longer.position) == (8, 10)
    assert reads.calls == 3


@pytest.mark.parametrize(
    ("earliest", "expected"),
    [(0, 1), (1, 1), (2, 2), (3, 2)],
    ids=["not cut", "cut before it", "cut at its start", "cut within it"],
)
def test_settled_page_is_not_returned_once_the_feed_is_cut_into_it(earliest, expected):
    stored = feed_of(3)
    pages, reads = shared_pages_of(stored)

    async def walk():
        dataset = stored.get("t", "d")
        await pages.page(dataset, 2, FeedQuery(limit=2), ten_bytes, fresh=True)
        cut = msgspec.structs.replace(dataset, earliest_offset=earliest)
        return await pages.page(cut, 2, FeedQuery(limit=2), ten_bytes, fresh=True)

    page = asyncio.run(walk())
    assert reads.calls == expected
    if expected == 1:
        assert page.earliest == earliest


@pytest.mark.parametrize(
    "change",
    [
        {"name": "renamed"},
        {"changelog": msgspec.structs.replace(DATASET.definition.changelog, vocabulary=Vocabulary(op="o"))},
    ],
    ids=["name", "vocabulary"],
)
def test_page_of_another_definition_is_read_again(change):
    stored = feed_of(3)
    pages, reads = shared_pages_of(stored)

    async def walk():
        dataset = stored.get("t", "d")
        await pages.page(dataset, 0, FeedQuery(limit=2), ten_bytes, fresh=True)
        definition = msgspec.structs.replace(dataset.definition, **change)
        other = msgspec.structs.replace(dataset, definition=definition, version=dataset.version + 1)
        await pages.page(other, 0, FeedQuery(limit=2), ten_bytes, fresh=True)

    asyncio.run(walk())
    assert reads.calls == 2


def test_request_that_read_the_dataset_long_ago_gets_no_page_of_long_ago():
    stored = feed_of(3)
    pages, reads = shared_pages_of(stored, kept_seconds=0.05)

    async def walk():
        old = stored.get("t", "d")
        await pages.page(old, 0, FeedQuery(limit=2), ten_bytes)
        await pages.page(msgspec.structs.replace(old, version=9), 0, FeedQuery(limit=2), ten_bytes)
        assert reads.calls == 1
        await asyncio.sleep(0.1)
        await pages.page(old, 0, FeedQuery(limit=2), ten_bytes)
        assert reads.calls == 2
        await asyncio.sleep(0.1)
        await pages.page(old, 0, FeedQuery(limit=2), ten_bytes, fresh=True)

    asyncio.run(walk())
    assert reads.calls == 2


def shared_pages_of(stored, **options):
    """Shared pages of the feed, and the reads that they make."""
    reads = Counting(ReadChanges(catalog=stored, index=stored, reader=stored).page)
    return SharedPages(reads, Threads(), **options), reads
