"""The typed client as a consumer: what is committed when, who is refused, and what a lost answer comes to."""

import time
from collections.abc import Iterator

import httpx2
import pytest

from headwater_client import (
    ChangePage,
    FeedConsumer,
    Headwater,
    MaxLag,
    NewDataset,
    NewField,
    Problem,
    Retention,
)


@pytest.fixture
def feed(service, headwater, orders):
    """A feed of five changes."""
    headwater.write_rows(orders, [{"id": number, "note": "a"} for number in range(5)])
    service.work()
    return orders


def code(problem) -> str:
    return problem.value.code


def test_consumer_positions_are_stored(headwater, feed):
    made = headwater.create_consumer(feed, "c", max_lag=MaxLag(changes=9))
    assert (made.offset, made.head, made.lag.changes, made.max_lag) == (0, 5, 5, MaxLag(changes=9))
    moved = headwater.commit(feed, made, 3)
    assert (moved.offset, moved.revision, moved.max_lag) == (3, 2, MaxLag(changes=9))
    with pytest.raises(Problem) as stale:
        headwater.commit(feed, made, 4)
    assert code(stale) == "precondition-failed"
    back = headwater.commit(feed, moved, "earliest", reset=True)
    assert headwater.bound_consumer(feed, back, None).max_lag is None
    headwater.create_consumer(feed, "b", offset="now")
    assert [(each.name, each.offset) for each in headwater.consumers(feed)] == [("b", 5), ("c", 0)]
    with pytest.raises(Problem) as there:
        headwater.create_consumer(feed, "c")
    assert code(there) == "precondition-failed"
    headwater.delete_consumer(feed, "c")
    with pytest.raises(Problem) as gone:
        headwater.get_consumer(feed, "c")
    assert code(gone) == "not-found"


def offsets(pages: Iterator[ChangePage]) -> list[int]:
    return [change.offset for page in pages for change in page.changes]


def test_page_is_committed_when_the_next_is_requested(headwater, feed):
    pages = headwater.consume(feed, "c", limit=2, follow=False)
    assert [change.offset for change in next(pages).changes] == [0, 1]
    assert headwater.get_consumer(feed, "c").offset == 0
    assert [change.offset for change in next(pages).changes] == [2, 3]
    assert headwater.get_consumer(feed, "c").offset == 2
    # It dies here.
    pages.close()
    assert offsets(headwater.consume(feed, "c", follow=False)) == [2, 3, 4]
    assert headwater.get_consumer(feed, "c").offset == 5
    assert offsets(headwater.consume(feed, "c", follow=False)) == []
    assert offsets(headwater.consume(feed, "late", start=4, follow=False)) == [4]


def test_consumer_starts_with_the_table(headwater, feed):
    table = {change.row["id"] for change in headwater.changes(feed, since="snapshot")}
    pages = headwater.consume(feed, "c", start="snapshot", limit=1, follow=False)
    found = [next(pages).changes[0].row["id"], next(pages).changes[0].row["id"]]
    # It dies here, before the second page is committed.
    pages.close()
    assert str(headwater.get_consumer(feed, "c").offset).startswith("snapshot:")
    for page in headwater.consume(feed, "c", limit=1, follow=False):
        found += [change.row["id"] for change in page.changes]
    assert sorted(found) == sorted([*table, found[1]])
    assert headwater.get_consumer(feed, "c").offset == 5


def test_consumer_waits_for_changes(service, headwater, feed):
    with service.working():
        pages = headwater.consume(feed, "c", start="now", poll_seconds=5)
        headwater.create_consumer(feed, "c", offset="now")
        headwater.write_rows(feed, [{"id": 7, "note": "new"}], wait=10)
        assert [change.row["id"] for change in next(pages).changes] == [7]
        pages.close()


def test_members_read_one_at_a_time(headwater, feed):
    first = headwater.consume(feed, "c", member="a", limit=2, follow=False)
    next(first)
    second = headwater.consume(feed, "c", member="b", limit=2, follow=False)
    with pytest.raises(Problem) as leased:
        next(second)
    assert code(leased) == "consumer-leased"
    assert leased.value.document["member"] == "a"
    next(first)
    first.close()
    assert offsets(headwater.consume(feed, "c", member="b", limit=2, follow=False)) == [2, 3, 4]
    assert headwater.get_consumer(feed, "c").lease is None


def test_member_with_an_expired_lease_gets_lease_lost(headwater, feed):
    slow = headwater.consume(feed, "c", member="a", lease_seconds=1, limit=2, follow=False)
    next(slow)
    deadline = time.monotonic() + 20
    while (found := taken_over(headwater, feed)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert found == [0, 1, 2, 3, 4]
    with pytest.raises(Problem) as lost:
        next(slow)
    assert code(lost) == "lease-lost"
    assert headwater.get_consumer(feed, "c").offset == 5


def taken_over(headwater, feed):
    """What the next member gets; None while the first one's lease runs."""
    try:
        return offsets(headwater.consume(feed, "c", member="b", follow=False))
    except Problem as problem:
        if problem.code != "consumer-leased":
            raise
        return None


def test_lease_is_extended_with_every_page(headwater, feed):
    pages = headwater.consume(feed, "c", member="a", lease_seconds=3, limit=1, follow=False)
    next(pages)
    first = headwater.get_consumer(feed, "c").lease.until
    time.sleep(1.1)
    next(pages)
    assert headwater.get_consumer(feed, "c").lease.until > first
    pages.close()


def test_changed_bound_between_two_pages_is_no_conflict(headwater, feed):
    pages = headwater.consume(feed, "c", limit=2, follow=False)
    next(pages)
    headwater.bound_consumer(feed, headwater.get_consumer(feed, "c"), MaxLag(seconds=60))
    assert offsets(pages) == [2, 3, 4]
    assert headwater.get_consumer(feed, "c").offset == 5


def test_commit_of_another_member_between_two_pages_is_a_conflict(headwater, feed):
    pages = headwater.consume(feed, "c", limit=2, follow=False)
    next(pages)
    headwater.commit(feed, headwater.get_consumer(feed, "c"), 5)
    with pytest.raises(Problem) as stale:
        next(pages)
    assert code(stale) == "precondition-failed"


class LosesAnswers(httpx2.HTTPTransport):
    """Loses the first answer to each commit, though it has happened."""

    lost = 0

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        answer = super().handle_request(request)
        if request.method == "PUT" and "if-match" in request.headers and answer.status_code == 200:
            answer.read()
            self.lost += 1
            raise httpx2.ReadError("the connection broke", request=request)
        return answer


def test_lost_response_of_a_commit_is_no_conflict(service, api_key, headwater, feed):
    transport = LosesAnswers()
    with Headwater(service.url, api_key, transport=transport) as unlucky:
        assert offsets(unlucky.consume(feed, "c", limit=2, follow=False)) == [0, 1, 2, 3, 4]
    assert transport.lost == 3
    consumer: FeedConsumer = headwater.get_consumer(feed, "c")
    assert (consumer.offset, consumer.revision) == (5, 4)


def test_retention_of_a_feed_is_set_and_changed(headwater):
    fields = (NewField(name="id", type="int64"),)
    new = NewDataset(name="kept", fields=fields, retention=Retention(seconds=60))
    dataset = headwater.create_dataset(new)
    changed = headwater.change_retention(dataset, Retention(changes=5))
    assert changed.version == dataset.version + 1
    assert headwater.change_retention(changed, None).version == changed.version + 1
    assert changed.earliest_offset == 0
    with pytest.raises(Problem) as refused:
        headwater.change_retention(dataset.id, Retention())
    assert code(refused) == "invalid-dataset"
