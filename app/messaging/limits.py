"""Rates and waiting requests of all API processes, counted in Redis; by each process alone while Redis does not answer.

Every call has one round trip and a timeout. After a failure, no call is made for a second, so that Redis delays few
requests.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final
from uuid import uuid4

from redis import RedisError
from redis.asyncio import BlockingConnectionPool, Redis

from app.tenants.quotas import quota_exceeded
from app.tenants.rates import SECOND, Fill, RateBucket, admit, interval

TIMEOUT_SECONDS: Final = 0.05
_PAUSE_SECONDS: Final = 1.0
_CONNECTIONS_MAX: Final = 16
_LOCAL_BUCKETS_MAX: Final = 100_000
# A waiting request of a process that was killed is counted until this time has passed.
STREAM_SECONDS: Final = 30.0
RENEW_SECONDS: Final = 10.0
"""How often the waiting requests of a process are counted again."""

# Returns the time, and the states of the buckets before. Either all of them change or none.
_TAKE: Final = """
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local found, after, admitted = {}, {}, true
for i, key in ipairs(KEYS) do
    local step, span = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
    found[i] = tonumber(redis.call('GET', key) or '0')
    after[i] = math.max(found[i], now) + step
    if after[i] - now > span then admitted = false end
end
if admitted then
    for i, key in ipairs(KEYS) do
        redis.call('SET', key, string.format('%.0f', after[i]), 'PX', math.ceil((after[i] - now) / 1000) + 1000)
    end
end
local states = {string.format('%.0f', now)}
for i in ipairs(KEYS) do states[i + 1] = string.format('%.0f', found[i]) end
return states
"""
# Members are waiting requests, scores the milliseconds at which they are counted no longer.
_OPEN: Final = """
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local count = redis.call('ZCARD', KEYS[1])
if count >= tonumber(ARGV[2]) then return {0, count} end
redis.call('ZADD', KEYS[1], now + tonumber(ARGV[3]), ARGV[1])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return {1, count + 1}
"""
_RENEW: Final = """
local time = redis.call('TIME')
local until_ = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) + tonumber(ARGV[1])
for i = 2, #ARGV do redis.call('ZADD', KEYS[1], until_, ARGV[i]) end
redis.call('PEXPIRE', KEYS[1], ARGV[1])
"""

_log = logging.getLogger(__name__)


class RedisLimits:
    """The limits of requests. Belongs to the event loop. Connects to Redis when a tenant or key has a limit."""

    def __init__(self, redis_url: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._timeout_seconds = timeout_seconds
        pool = BlockingConnectionPool.from_url(
            redis_url,
            max_connections=_CONNECTIONS_MAX,
            timeout=timeout_seconds,
            socket_timeout=timeout_seconds,
            socket_connect_timeout=timeout_seconds,
        )
        self._redis = Redis(connection_pool=pool)
        self._take = self._redis.register_script(_TAKE)
        self._open = self._redis.register_script(_OPEN)
        self._renew = self._redis.register_script(_RENEW)
        self._called_again_at = 0.0
        self._full_at: dict[str, int] = {}
        self._streams: dict[str, set[str]] = {}

    async def take(self, buckets: Sequence[RateBucket]) -> Sequence[Fill]:
        """Takes a request from all buckets, or from none if one of them does not admit it."""
        arguments: list[Any] = [
            value for each in buckets for value in (interval(each.rate), interval(each.rate) * each.rate)
        ]
        keys = [f"headwater:rate:{{{each.name.partition(':')[0]}}}:{each.name}" for each in buckets]
        states = await self._answer_of(self._take(keys=keys, args=arguments))
        if states is None:
            return self._taken_here(buckets)
        now, *full_at = map(int, states)
        return [admit(before, now, each.rate)[1] for before, each in zip(full_at, buckets, strict=True)]

    @asynccontextmanager
    async def stream(self, tenant_id: str, limit: int) -> AsyncIterator[None]:
        """Counts a request that waits until the context ends. Raises QuotaExceeded."""
        mine = self._streams.setdefault(tenant_id, set())
        stream_id = uuid4().hex
        mine.add(stream_id)
        try:
            arguments: list[Any] = [stream_id, limit, _milliseconds(STREAM_SECONDS)]
            answer = await self._answer_of(self._open(keys=[_streams_key(tenant_id)], args=arguments))
            admitted, count = (len(mine) <= limit, len(mine) - 1) if answer is None else map(int, answer)
            if not admitted:
                raise quota_exceeded("streams", limit, count)
            yield
        finally:
            mine.discard(stream_id)
            if not mine:
                self._streams.pop(tenant_id, None)
            await self._answer_of(self._redis.zrem(_streams_key(tenant_id), stream_id))

    async def renew(self, moved: Callable[[], None]) -> None:
        """Keeps the waiting requests of this process counted. Runs until it is cancelled. `moved`: called each time."""
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            moved()
            for tenant_id, streams in list(self._streams.items()):
                arguments: list[Any] = [_milliseconds(STREAM_SECONDS), *streams]
                await self._answer_of(self._renew(keys=[_streams_key(tenant_id)], args=arguments))

    async def close(self) -> None:
        """Closes the connections."""
        await self._redis.aclose(close_connection_pool=True)

    async def _answer_of(self, call: Any) -> Any:
        """The answer of Redis; None if it does not answer in time. Then it is not called for a second."""
        if time.monotonic() < self._called_again_at:
            call.close()
            return None
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await call
        except (RedisError, OSError, TimeoutError) as error:
            self._called_again_at = time.monotonic() + _PAUSE_SECONDS
            _log.warning("Redis does not count requests (%s); this process counts its own", error)
            return None

    def _taken_here(self, buckets: Sequence[RateBucket]) -> Sequence[Fill]:
        now = int(time.monotonic() * SECOND)
        if len(self._full_at) >= _LOCAL_BUCKETS_MAX:
            self._full_at = {name: full_at for name, full_at in self._full_at.items() if full_at > now}
        found = [admit(self._full_at.get(each.name, 0), now, each.rate) for each in buckets]
        if all(fill.admitted for _, fill in found):
            self._full_at |= {each.name: after for each, (after, _) in zip(buckets, found, strict=True)}
        return [fill for _, fill in found]


def _streams_key(tenant_id: str) -> str:
    return f"headwater:streams:{{{tenant_id}}}"


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
