"""Rates and waiting requests of all API processes, counted in Redis; by each process alone while Redis does not answer.

A process that has many requests of a tenant takes some in advance, so that not each of them calls Redis: no more than
it had lately, no more than a fiftieth of a second has, and for a twentieth of a second.

Every call has one round trip and a timeout. After a failure, no call is made for a second, so that Redis delays few
requests. Tenants call in turns. A request that gets no turn in time is counted by its process, which does not concern
other tenants.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Final, NamedTuple
from uuid import uuid4

from redis import RedisError
from redis.asyncio import ConnectionPool, Redis

from app.access.tenants.quotas import quota_exceeded
from app.access.tenants.rates import SECOND, Fill, RateBucket, admit, interval
from app.infra.sharing.fair_slots import FairSlots

TIMEOUT_SECONDS: Final = 0.05
_PAUSE_SECONDS: Final = 1.0
# The calls of Redis at a time: of all tenants, and of one; and those of one that wait.
_CALLS_MAX: Final = 16
_TENANT_CALLS_MAX: Final = 4
_TENANT_WAITING_MAX: Final = 64
# A call that was given up may hold its connection for a moment.
_CONNECTIONS_MAX: Final = 2 * _CALLS_MAX
# How often the event loop turns after the timeout: a busy process must not take its own delay for one of Redis.
_LOOP_TURNS: Final = 20
_LOCAL_BUCKETS_MAX: Final = 100_000
# What a process takes in advance: the requests of this share of a second at most, and for this time.
_AHEAD_PER_SECOND: Final = 50
_AHEAD_SECONDS: Final = 0.05
_AHEAD_MAX: Final = 10_000
# Ended requests of a tenant that Redis may still count.
_TENANT_ENDED_MAX: Final = 1_000
# A waiting request of a process that was killed is counted until this time has passed.
STREAM_SECONDS: Final = 30.0
RENEW_SECONDS: Final = 10.0
"""How often the waiting requests of a process are counted again."""

# The last argument is how many requests to take at most. Returns the time, how many were taken from all buckets, and
# the states of the buckets before.
_TAKE: Final = """
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local found, count = {}, tonumber(ARGV[#ARGV])
for i, key in ipairs(KEYS) do
    local step, span = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
    found[i] = tonumber(redis.call('GET', key) or '0')
    count = math.min(count, math.floor((span - math.max(found[i] - now, 0)) / step))
end
if count > 0 then
    for i, key in ipairs(KEYS) do
        local after = math.max(found[i], now) + count * tonumber(ARGV[2 * i - 1])
        redis.call('SET', key, string.format('%.0f', after), 'PX', math.ceil((after - now) / 1000) + 1000)
    end
end
local states = {string.format('%.0f', now), count}
for i in ipairs(KEYS) do states[i + 2] = string.format('%.0f', found[i]) end
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

# The caller that renews, which waits its turn like a tenant.
_RENEWAL: Final = ""

_log = logging.getLogger(__name__)


class _States(NamedTuple):
    """Buckets as they were before `number` requests were taken from all of them. `now`: the time of that."""

    buckets: Sequence[RateBucket]
    full_at: Sequence[int]
    now: int
    number: int

    def fills(self, before: int, now: int) -> list[Fill]:
        """The buckets after one more of these requests than `before`, at a time."""
        return [
            admit(max(full_at, self.now) + before * interval(each.rate), now, each.rate)[1]
            for full_at, each in zip(self.full_at, self.buckets, strict=True)
        ]


class _Ahead:
    """The requests of some buckets that a process has taken in advance."""

    def __init__(self) -> None:
        self._states: _States | None = None
        self._taken_at = 0.0
        self._used = 0
        self._is_called = False

    def take(self) -> list[Fill] | None:
        """The buckets after one of the requests that were taken in advance; None if there is none."""
        states, passed = self._states, time.monotonic() - self._taken_at
        if states is None or self._used >= states.number or passed >= _AHEAD_SECONDS:
            return None
        self._used += 1
        return states.fills(self._used - 1, states.now + int(passed * SECOND))

    @contextmanager
    def calling(self, limit: int) -> Iterator[int]:
        """How many to take now: twice as many as were used in time, or as many as were used. One call of a process
        takes in advance at a time.
        """
        if self._is_called:
            yield 1
            return
        is_recent = time.monotonic() - self._taken_at < _AHEAD_SECONDS
        count = min(max(1, 2 * self._used if is_recent else self._used), limit)
        self._is_called, self._states, self._used, self._taken_at = True, None, 1, time.monotonic()
        try:
            yield count
        finally:
            self._is_called = False

    def keep(self, states: _States) -> None:
        """These were taken, and the first is used."""
        self._states = states


class RedisLimits:
    """The limits of requests. Belongs to the event loop. Connects to Redis when a tenant or key has a limit."""

    def __init__(self, redis_url: str, *, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        self._timeout_seconds = timeout_seconds
        # `_answer_of` has the timeout.
        pool = ConnectionPool.from_url(redis_url, max_connections=_CONNECTIONS_MAX)
        self._redis = Redis(connection_pool=pool)
        self._take = self._redis.register_script(_TAKE)
        self._open = self._redis.register_script(_OPEN)
        self._renew = self._redis.register_script(_RENEW)
        self._calls = FairSlots(_CALLS_MAX, party_max=_TENANT_CALLS_MAX, waiting_max=_TENANT_WAITING_MAX)
        self._called_again_at = 0.0
        self._full_at: dict[str, int] = {}
        self._ahead: dict[tuple[RateBucket, ...], _Ahead] = {}
        self._streams: dict[str, set[str]] = {}
        # By tenant, with the time at which Redis counts them no longer.
        self._ended: dict[str, dict[str, float]] = {}

    async def take(self, buckets: Sequence[RateBucket]) -> Sequence[Fill]:
        """Takes a request from all buckets, or from none if one of them does not admit it."""
        limit = min(max(1, each.rate // _AHEAD_PER_SECOND) for each in buckets)
        if limit == 1:
            return (await self._take_up_to(buckets, 1))[0]
        ahead = self._ahead_of(tuple(buckets))
        if (from_ahead := ahead.take()) is not None:
            return from_ahead
        with ahead.calling(limit) as count:
            fills, states = await self._take_up_to(buckets, count)
            if count > 1 and states is not None:
                ahead.keep(states)
            return fills

    async def _take_up_to(
        self, buckets: Sequence[RateBucket], count: int
    ) -> tuple[Sequence[Fill], _States | None]:
        """Takes up to this many requests: the buckets after the first of them, and all that Redis has counted."""
        arguments: list[Any] = [
            value for each in buckets for value in (interval(each.rate), interval(each.rate) * each.rate)
        ]
        keys = [f"headwater:rate:{{{each.name.partition(':')[0]}}}:{each.name}" for each in buckets]
        answer = await self._in_turn(
            buckets[0].name.partition(":")[0], lambda: self._take(keys=keys, args=[*arguments, count])
        )
        if answer is None:
            return self._taken_here(buckets), None
        now, admitted_count, *full_at = map(int, answer)
        states = _States(buckets, full_at, now, admitted_count)
        return states.fills(0, now), states

    def _ahead_of(self, buckets: tuple[RateBucket, ...]) -> _Ahead:
        ahead = self._ahead.get(buckets)
        if ahead is None:
            if len(self._ahead) >= _AHEAD_MAX:
                self._ahead.clear()
            ahead = self._ahead[buckets] = _Ahead()
        return ahead

    @asynccontextmanager
    async def stream(self, tenant_id: str, limit: int) -> AsyncIterator[None]:
        """Counts a request that waits until the context ends. Raises QuotaExceeded."""
        if tenant_id in self._ended:
            await self._remove_ended(tenant_id, tenant_id)
        mine = self._streams.setdefault(tenant_id, set())
        stream_id = uuid4().hex
        mine.add(stream_id)
        try:
            arguments: list[Any] = [stream_id, limit, _milliseconds(STREAM_SECONDS)]
            answer = await self._in_turn(
                tenant_id, lambda: self._open(keys=[_streams_key(tenant_id)], args=arguments)
            )
            fits, count = (len(mine) <= limit, len(mine) - 1) if answer is None else map(int, answer)
            if not fits:
                raise quota_exceeded("streams", limit, count)
            yield
        finally:
            mine.discard(stream_id)
            if not mine:
                self._streams.pop(tenant_id, None)
            expiries = self._ended.setdefault(tenant_id, {})
            if len(expiries) < _TENANT_ENDED_MAX:  # Further ones expire in Redis.
                expiries[stream_id] = time.monotonic() + STREAM_SECONDS
            await self._remove_ended(tenant_id, tenant_id)

    async def renew(self, on_turn: Callable[[], None]) -> None:
        """Keeps the waiting requests of this process counted, and ended ones not. Runs until it is cancelled.

        `on_turn`: called each time.
        """
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            on_turn()
            for tenant_id in list(self._streams):
                await self._in_turn(_RENEWAL, partial(self._renew_all, tenant_id))
            for tenant_id in list(self._ended):
                await self._remove_ended(tenant_id, _RENEWAL)

    async def close(self) -> None:
        """Closes the connections."""
        await self._redis.aclose(close_connection_pool=True)

    async def _renew_all(self, tenant_id: str) -> Any:
        arguments: list[Any] = [_milliseconds(STREAM_SECONDS), *self._streams.get(tenant_id, ())]
        return await self._renew(keys=[_streams_key(tenant_id)], args=arguments)

    async def _remove_ended(self, tenant_id: str, caller: str) -> None:
        """Removes the ended requests of a tenant from Redis; those that remain are removed another time."""
        ended_ids = set(self._ended.get(tenant_id, ()))
        if not ended_ids:
            return
        key = _streams_key(tenant_id)
        answer = await self._in_turn(caller, lambda: self._redis.zrem(key, *ended_ids))
        now = time.monotonic()
        remaining = {
            stream_id: until
            for stream_id, until in self._ended.pop(tenant_id, {}).items()
            if until > now and (answer is None or stream_id not in ended_ids)
        }
        if remaining:
            self._ended[tenant_id] = remaining

    async def _in_turn(self, caller: str, call: Callable[[], Awaitable[Any]]) -> Any:
        """The answer of Redis; None if the caller gets no turn, or if Redis does not answer in time.

        In the second case it is not called for a second.
        """
        if self._paused():
            return None
        async with self._calls.slot(caller, self._timeout_seconds) as has_turn:
            return await self._answer_of(call) if has_turn and not self._paused() else None

    async def _answer_of(self, call: Callable[[], Awaitable[Any]]) -> Any:
        calling = asyncio.ensure_future(call())
        try:
            await asyncio.wait([calling], timeout=self._timeout_seconds)
            for _ in range(_LOOP_TURNS):
                if calling.done():
                    return calling.result()
                await asyncio.sleep(0)
            raise TimeoutError(f"no answer within {_milliseconds(self._timeout_seconds)} ms")
        except (RedisError, OSError) as error:
            if not self._paused():
                self._called_again_at = time.monotonic() + _PAUSE_SECONDS
                kind = type(error).__name__
                _log.warning(
                    "Redis does not count requests (%s: %s); this process counts its own", kind, error
                )
            return None
        finally:
            calling.cancel()

    def _paused(self) -> bool:
        return time.monotonic() < self._called_again_at

    def _taken_here(self, buckets: Sequence[RateBucket]) -> Sequence[Fill]:
        now = int(time.monotonic() * SECOND)
        if len(self._full_at) >= _LOCAL_BUCKETS_MAX:
            self._full_at = {name: full_at for name, full_at in self._full_at.items() if full_at > now}
        admissions = [admit(self._full_at.get(each.name, 0), now, each.rate) for each in buckets]
        if all(fill.admitted for _, fill in admissions):
            self._full_at |= {each.name: after for each, (after, _) in zip(buckets, admissions, strict=True)}
        return [fill for _, fill in admissions]


def _streams_key(tenant_id: str) -> str:
    return f"headwater:streams:{{{tenant_id}}}"


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
