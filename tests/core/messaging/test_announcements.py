"""Announcements through a real Redis, which comes and goes."""

import asyncio
import contextlib
import time

import psutil
import pytest
from redis import RedisError

from app.core.messaging.announcements import CHANNEL, Announcements, listen
from app.infra.runtime.valkey import EmbeddedValkey
from tests.support.waiting import until


def announcements_of(redis_url, act, count, *, hears=lambda _: None, seconds_max=20):
    """What the first `count` announcements contained; `act` runs in a thread meanwhile."""

    async def run():
        heard = []
        enough = asyncio.Event()

        def notify(tenant_id, dataset_id):
            heard.append((tenant_id, dataset_id))
            if len(heard) >= count:
                enough.set()

        listening = asyncio.create_task(listen(redis_url, notify, hears))
        acting = asyncio.create_task(asyncio.to_thread(act))
        try:
            async with asyncio.timeout(seconds_max):
                await enough.wait()
        finally:
            await acting
            listening.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await listening
        return heard

    return asyncio.run(run())


def publish_when_subscribed(announcements, *messages):
    """Publishes once somebody listens."""
    while announcements._redis.pubsub_numsub(CHANNEL)[0][1] == 0:
        time.sleep(0.02)
    for message in messages:
        announcements.publish([message])


def test_announcement_reaches_the_listener(tmp_path):
    with EmbeddedValkey(tmp_path) as server:
        announcements = Announcements(server.url)
        messages = [("t", "a"), ("t", "b")]
        assert (
            announcements_of(server.url, lambda: publish_when_subscribed(announcements, *messages), 2)
            == messages
        )
        assert announcements.reachable()
        announcements.close()


def test_invalid_message_is_skipped(tmp_path):
    with EmbeddedValkey(tmp_path) as server:
        announcements = Announcements(server.url)

        def act():
            publish_when_subscribed(announcements)
            announcements._redis.publish(CHANNEL, b"nonsense")
            announcements.publish([("t", "a"), ("t", "b")])

        assert announcements_of(server.url, act, 2) == [("t", "a"), ("t", "b")]
        announcements.close()


def test_listener_reconnects_to_redis(tmp_path):
    server = EmbeddedValkey(tmp_path)
    server.start()
    announcements = Announcements(server.url)

    def act():
        publish_when_subscribed(announcements, ("t", "before"))
        server.stop()
        with pytest.raises(RedisError):
            announcements.publish([("t", "lost")])
        assert not announcements.reachable()
        server.start()
        publish_when_subscribed(announcements, ("t", "after"))

    hears = []
    try:
        heard = announcements_of(server.url, act, 2, hears=hears.append)
        assert heard == [("t", "before"), ("t", "after")]
        assert (hears[0], hears[-1], False in hears) == (True, True, True)
    finally:
        announcements.close()
        server.stop()


def test_redis_that_no_longer_answers_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr("app.core.messaging.announcements.LISTEN_SECONDS", 1.0)
    with EmbeddedValkey(tmp_path) as server:
        announcements, hears = Announcements(server.url), []

        def act():
            publish_when_subscribed(announcements, ("t", "before"))
            # Silence alone is normal.
            time.sleep(2.5)
            assert hears == [True]
            process = psutil.Process(server._process.pid)
            process.suspend()
            try:
                until(lambda: hears[-1] is False, "the loss of the connection")
            finally:
                process.resume()
            until(lambda: hears[-1], "another connection")
            publish_when_subscribed(announcements, ("t", "after"))

        heard = announcements_of(server.url, act, 2, hears=hears.append)
        assert heard == [("t", "before"), ("t", "after")]
        announcements.close()
