"""Following the feed by server-sent events."""

import asyncio
import threading
import time
from contextlib import contextmanager
from types import SimpleNamespace

import httpx2
import pytest

from app.core.changes.handlers import events as change_events
from app.core.changes.service.read_changes import FeedQuery, ReadChanges
from app.http.waiting import shared_polls
from app.infra.errors import Unavailable
from app.kernel.changelog.delivery_forms import ChangeForm
from tests.support.http import problem, upsert
from tests.support.streams import blocks, feed_of, serving, streamed

EVERY_FORM = pytest.mark.parametrize("form", [form.value for form in ChangeForm])


def followed(client, feed, last_event_id=None, **parameters):
    """The events up to `until`, at which the stream ends."""
    headers = {} if last_event_id is None else {"Last-Event-ID": str(last_event_id)}
    answer = client.get(f"{feed}/events", params={"until": 4, **parameters}, headers=headers)
    if answer.status_code == 204:
        assert answer.content == b""
        return []
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-store"
    return blocks(answer.text)


@contextmanager
def following(service, client, feed, **parameters):
    """A list to which the pieces of the stream come while it is open, and a way to wait for one of them."""
    pieces, opened, ended = [], threading.Event(), threading.Event()
    key = client.headers["authorization"].split()[1]
    with service.client(key) as second:

        def read():
            try:
                with second.stream("GET", f"{feed}/events", params=parameters) as stream:
                    opened.set()
                    pieces.extend(stream.iter_text())
            except httpx2.TransportError:
                pass  # the test closes the connection under it
            ended.set()

        def until(condition, seconds=10):
            deadline = time.monotonic() + seconds
            while not condition("".join(pieces)):
                assert time.monotonic() < deadline, pieces
                time.sleep(0.01)
            return "".join(pieces)

        thread = threading.Thread(target=read)
        thread.start()
        assert opened.wait(10)
        yield SimpleNamespace(until=until, ended=ended)
    thread.join(30)


@EVERY_FORM
def test_stream_events_equal_the_changes_of_pages(client, feed, form):
    events = followed(client, feed, form=form)
    assert [change for _, change in events] == client.get(feed, params={"form": form}).json()["changes"]
    assert events[-1][0] == 4


@EVERY_FORM
def test_reader_that_resumes_after_any_event_gets_the_rest_and_no_half_of_a_pair(client, feed, form):
    whole = followed(client, feed, form=form)
    for seen, (position, change) in enumerate(whole, 1):
        first_half = change.get("op") == "-C" or change.get("_change_type") == "update_preimage"
        first_half = first_half or (form == "retract" and change["op"] == "-R")
        rest = followed(client, feed, last_event_id=position, form=form, since=1)
        assert rest == whole[seen - 1 if first_half else seen :]


def test_stream_applies_columns_since_and_until(client, feed):
    events = followed(client, feed, since=2, columns="note", until=4)
    assert [(at, change["row"]) for at, change in events] == [(2, {"note": "a"}), (4, {"note": "c"})]


def test_stream_continues_over_many_pages(client, feed, monkeypatch):
    whole = followed(client, feed)
    monkeypatch.setattr(change_events, "PAGE_CHANGES", 1)
    assert followed(client, feed) == whole


@pytest.mark.parametrize(("since", "until"), [(4, 4), (0, 0), (3, 1), (2, 3)])
def test_stream_without_remaining_changes_ends(client, feed, since, until):
    assert followed(client, feed, since=since, until=until) == []


def test_reconnect_after_the_last_event_gets_204(client, feed):
    answer = client.get(f"{feed}/events", params={"until": 4}, headers={"Last-Event-ID": "4"})
    assert (answer.status_code, answer.content) == (204, b"")


def test_empty_last_event_id_starts_at_the_beginning(client, feed):
    assert len(followed(client, feed, last_event_id="")) == 4


@pytest.mark.parametrize("last_event_id", ["x", "-1", "now", "1.0", "9" * 30, "\u0661".encode()])
def test_invalid_last_event_id_is_refused(client, feed, last_event_id):
    answer = client.get(f"{feed}/events", headers={"Last-Event-ID": last_event_id})
    members = problem(answer, 400, "invalid-request")
    assert members["errors"][0]["pointer"] == "/Last-Event-ID"


def test_invalid_stream_request_returns_a_problem(client, new_client, feed, orders):
    problem(client.get(f"{feed}/events", headers={"Last-Event-ID": "5"}), 409, "offset-ahead")
    problem(client.get(f"{feed}/events", params={"since": "5"}), 409, "offset-ahead")
    for name, value in [("columns", "nope"), ("form", "avro"), ("until", "-1"), ("limit", "3")]:
        members = problem(client.get(f"{feed}/events", params={name: value}), 400, "invalid-request")
        assert members["errors"][0]["pointer"] == f"/{name}"
    problem(new_client().get(f"{feed}/events"), 404, "not-found")
    problem(new_client(("write",)).get(f"{feed}/events"), 403, "forbidden")


def test_stream_delivers_a_commit_immediately(client, feed, orders, service):
    with service.working(), following(service, client, feed, since=4, until=5) as stream:
        began = time.monotonic()
        client.post(f"{orders}/writes", json=upsert({"id": 3, "note": "new"}))
        received = stream.until(lambda text: text.endswith("\n\n"))
        assert time.monotonic() - began < 5
        ((position, change),) = blocks(received)
        assert (position, change["op"], change["row"]) == (5, "+A", {"id": 3, "note": "new"})
        assert stream.ended.wait(5)


def test_stream_from_the_head_has_a_resume_position_before_its_first_event(client, feed, orders, service):
    with following(service, client, feed, since="now", until=5) as stream:
        received = stream.until(lambda text: text.endswith("\n\n"))
        assert blocks(received) == [(4, None)]
        client.post(f"{orders}/writes", json=upsert({"id": 3, "note": "new"}))
        service.work()
        assert stream.ended.wait(10)
    assert [at for at, _ in followed(client, feed, last_event_id=4, since="now", until=5)] == [5]


def test_idle_stream_sends_heartbeat_comments(client, feed, service, monkeypatch):
    monkeypatch.setattr(change_events, "HEARTBEAT_SECONDS", 0.1)
    with following(service, client, feed, since=4, until=5) as stream:
        received = stream.until(lambda text: text.count(": still here\n\n") == 2)
        assert blocks(received) == []
        assert not stream.ended.is_set()
        client.delete(feed.removesuffix("/changes"))
        assert stream.ended.wait(10)


def test_head_request_returns_headers_and_closes(client, feed):
    began = time.monotonic()
    answer = client.head(f"{feed}/events", params={"since": 4})
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert client.get(feed).status_code == 200
    assert time.monotonic() - began < 5


def test_stream_reads_the_next_page_after_sending_the_last():
    stored = feed_of(5)
    query = FeedQuery(limit=2, until=10)

    async def follow():
        events = streamed(serving(stored), query)
        pages = 1
        async for piece in events:
            assert [at for at, _ in blocks(piece.decode())] == [2 * pages - 2, 2 * pages]
            # Each page is one version here; one change more is read, in case it closes a pair.
            assert max(version for version, _, _ in stored.read) <= pages + 1
            pages += 1
        return pages - 1

    assert asyncio.run(follow()) == 5


def test_stream_ends_when_the_process_stops():
    services = serving(feed_of(1))

    async def follow():
        events = streamed(services, FeedQuery(limit=2))
        assert await anext(events)
        asyncio.get_running_loop().call_later(0.05, services.subscriptions.close)
        return [piece async for piece in events]

    assert asyncio.run(follow()) == []


def test_stream_survives_an_unavailable_database(monkeypatch):
    monkeypatch.setattr(shared_polls, "POLL_SECONDS", 0.01)
    stored = feed_of(2)
    read = ReadChanges(catalog=stored, index=stored, reader=stored)
    faults = [Unavailable("still gone"), Unavailable("gone"), None]

    def page(*request):
        if faults and (fault := faults.pop()):
            raise fault
        return read.page(*request)

    async def follow():
        events = streamed(serving(stored, page), FeedQuery(limit=2, until=4))
        return [at async for piece in events for at, _ in blocks(piece.decode())]

    assert asyncio.run(follow()) == [0, 2, 2, 4]
    assert not faults


def test_stream_ends_when_its_next_changes_expire():
    stored = feed_of(5)

    async def follow():
        events = streamed(serving(stored), FeedQuery(limit=2))
        received = [await anext(events)]
        stored.earliest = 6
        return received + [piece async for piece in events]

    assert [at for piece in asyncio.run(follow()) for at, _ in blocks(piece.decode())] == [0, 2]
