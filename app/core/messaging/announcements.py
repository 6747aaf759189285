"""Announcements that datasets have new changes, or that jobs of them have ended: Redis publish and subscribe."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final

import msgspec
from redis import Redis, RedisError
from redis.asyncio import Redis as AsyncRedis
from redis.asyncio.client import PubSub
from redis.exceptions import ConnectionError as ConnectionLost

CHANNEL: Final = "headwater:announcements"
_TIMEOUT_SECONDS: Final = 2.0
_PAUSE_SECONDS_MAX: Final = 5.0
LISTEN_SECONDS: Final = 5.0

_log = logging.getLogger(__name__)


_DATASETS: Final = msgspec.json.Decoder(list[tuple[str, str]])


class Announcements:
    """Publishes announcements. Safe to use from any number of threads."""

    def __init__(self, redis_url: str) -> None:
        self._redis = Redis.from_url(
            redis_url, socket_connect_timeout=_TIMEOUT_SECONDS, socket_timeout=_TIMEOUT_SECONDS
        )

    def publish(self, datasets: Sequence[tuple[str, str]]) -> None:
        """Publishes an announcement about tenants and datasets. Raises RedisError if Redis is out of reach."""
        self._redis.publish(CHANNEL, msgspec.json.encode(datasets))

    def reachable(self) -> bool:
        """Whether Redis answers."""
        try:
            return bool(self._redis.ping())
        except RedisError:
            return False

    def close(self) -> None:
        """Closes the connections."""
        self._redis.close()


async def listen(
    redis_url: str,
    notify: Callable[[str, str], None],
    hears: Callable[[bool], None] = lambda _: None,
    on_turn: Callable[[], None] = lambda: None,
) -> None:
    """Calls `notify(tenant_id, dataset_id)` for every announced dataset until cancelled. Reconnects after a disconnect.

    Calls `hears(True)` after each subscription, from which on announcements arrive, and `hears(False)` once they no
    longer do. Calls `on_turn` every few seconds while it works, also where Redis is out of reach.
    """
    pause_seconds = 0.1
    reachable = True
    while True:
        try:
            async with (
                # No read timeout: silence is normal.
                AsyncRedis.from_url(
                    redis_url,
                    socket_timeout=None,
                    socket_connect_timeout=_TIMEOUT_SECONDS,
                    socket_keepalive=True,
                ) as client,
                client.pubsub() as subscription,
            ):
                async with asyncio.timeout(LISTEN_SECONDS):
                    await subscription.subscribe(CHANNEL)
                async for message in _messages(subscription, on_turn):
                    if message["type"] == "message":
                        _notify(message["data"], notify)
                    elif message["type"] == "subscribe":
                        # The client subscribes again by itself when it has connected again.
                        hears(True)
                        if not reachable:
                            _log.info("Redis is reachable again; waiting requests are notified through it")
                        reachable, pause_seconds = True, 0.1
        except (RedisError, OSError) as error:
            on_turn()
            if reachable:
                _log.warning("no notifications from Redis (%s); waiting requests poll instead", error)
            reachable = False
            hears(False)
        except Exception:
            _log.exception("an announcement could not be passed on; listening again")
            hears(False)
        await asyncio.sleep(pause_seconds)
        pause_seconds = min(pause_seconds * 2, _PAUSE_SECONDS_MAX)


async def _messages(subscription: PubSub, on_turn: Callable[[], None]) -> AsyncIterator[dict[str, Any]]:
    """What arrives. Raises RedisError also if Redis does not answer: silence may be a connection that has died."""
    awaits_pong = False
    while True:
        message = await subscription.get_message(timeout=LISTEN_SECONDS)
        on_turn()
        if message is not None:
            awaits_pong = False
            yield message
        elif awaits_pong:
            raise ConnectionLost(f"no answer within {LISTEN_SECONDS:g} s")
        else:
            awaits_pong = True
            await subscription.ping()


def _notify(data: bytes, notify: Callable[[str, str], None]) -> None:
    try:
        datasets = _DATASETS.decode(data)
    except msgspec.MsgspecError:
        _log.warning("ignored a malformed message on the channel %s", CHANNEL)
        return
    for tenant_id, dataset_id in datasets:
        notify(tenant_id, dataset_id)
