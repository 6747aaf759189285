"""Rates and waiting requests: the rule against a model of time, and the same decisions by Redis and by a process."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import AsyncExitStack

import pytest
from redis.asyncio import Redis

from app.access.tenants.errors import QuotaExceeded
from app.access.tenants.rates import SECOND, Fill, RateBucket, admit, interval
from app.core.messaging import redis_limits as limits_module
from app.core.messaging.redis_limits import RedisLimits
from app.infra.runtime.loopback import LOOPBACK, free_port
from app.infra.runtime.valkey import EmbeddedValkey


@pytest.mark.parametrize("rate", [1, 3, 50])
def test_rule_admits_what_a_bucket_filled_evenly_admits(rate: int) -> None:
    """The model holds tokens, of which one is added in each interval, up to those of one second."""
    choice = random.Random(rate)
    step = interval(rate)
    now, full_at = 10 * SECOND, 0
    missing = 0  # microseconds until the model is full
    for _ in range(2_000):
        passed = choice.choice([0, 1, step // 2, step - 1, step, 2 * step, SECOND])
        now, missing = now + passed, max(0, missing - passed)
        admitted = missing + step <= rate * step
        full_at, fill = admit(full_at, now, rate)
        assert fill.admitted is admitted
        missing += step if admitted else 0
        assert (fill.reset, fill.remaining) == (missing, (rate * step - missing) // step)
        assert admit(full_at, now + fill.wait, rate)[1].admitted or fill.admitted


def run(redis_url: str, act):
    async def all_of_it():
        limits = RedisLimits(redis_url, timeout_seconds=1.0)
        try:
            return await act(limits)
        finally:
            await limits.close()

    return asyncio.run(all_of_it())


def unreachable() -> str:
    return f"redis://{LOOPBACK}:{free_port()}/0"


async def taken(limits: RedisLimits, buckets: list[RateBucket], times: int) -> list[list[Fill]]:
    return [list(await limits.take(buckets)) for _ in range(times)]


@pytest.mark.parametrize("reachable", [True, False])
def test_requests_of_a_second_are_admitted_and_further_ones_wait(
    redis: EmbeddedValkey, reachable: bool
) -> None:
    url = redis.url if reachable else unreachable()
    bucket = RateBucket(f"tenant-{reachable}", "tenant", 2)
    fills = [fill for [fill] in run(url, lambda limits: taken(limits, [bucket], 4))]
    assert [fill.admitted for fill in fills] == [True, True, False, False]
    assert [fill.remaining for fill in fills] == [1, 0, 0, 0]
    assert 0 < fills[2].wait <= SECOND // 2
    assert 0 < fills[1].reset <= SECOND


@pytest.mark.parametrize("reachable", [True, False])
def test_refused_request_takes_nothing_from_other_buckets(redis: EmbeddedValkey, reachable: bool) -> None:
    url = redis.url if reachable else unreachable()
    tenant = RateBucket(f"both-{reachable}", "tenant", 4)
    key = RateBucket(f"both-{reachable}:key", "key", 1)

    async def act(limits: RedisLimits) -> list[list[Fill]]:
        both = await taken(limits, [tenant, key], 3)
        return both + await taken(limits, [tenant], 4)

    found = [[fill.admitted for fill in fills] for fills in run(url, act)]
    assert found[:3] == [[True, True], [True, False], [True, False]]
    assert [admitted for [admitted] in found[3:]] == [True, True, True, False]


def test_processes_share_a_rate(redis: EmbeddedValkey) -> None:
    bucket = RateBucket("shared", "tenant", 5)

    async def act(first: RedisLimits) -> int:
        second = RedisLimits(redis.url, timeout_seconds=1.0)
        answers = await asyncio.gather(*(each.take([bucket]) for each in [first, second] * 10))
        await second.close()
        return sum(fill.admitted for [fill] in answers)

    # A sixth if the calls took a fifth of a second.
    assert run(redis.url, act) in (5, 6)


def test_many_requests_are_taken_in_advance_and_no_more_than_the_rate(redis: EmbeddedValkey) -> None:
    rate = 2_000
    tenant, key = RateBucket("many", "tenant", rate), RateBucket("many:key", "key", 5 * rate)

    async def act(limits: RedisLimits) -> tuple[int, float, int]:
        second = RedisLimits(redis.url, timeout_seconds=1.0)
        before = await second._redis.info("commandstats")
        began, admitted = time.monotonic(), 0
        for number in range(3 * rate):
            each = limits if number % 2 else second
            fills = await each.take([tenant, key])
            assert fills[1].admitted
            admitted += fills[0].admitted
        seconds = time.monotonic() - began
        after = await second._redis.info("commandstats")
        calls = after["cmdstat_evalsha"]["calls"] - before.get("cmdstat_evalsha", {"calls": 0})["calls"]
        await second.close()
        return admitted, seconds, calls

    admitted, seconds, calls = run(redis.url, act)
    # What was taken in advance is used for a twentieth of a second.
    assert rate <= admitted <= rate * (1.06 + seconds)
    # Those that are not admitted call Redis each.
    assert calls < 3 * rate - admitted + admitted / 2


def test_requests_taken_in_advance_state_what_is_left(redis: EmbeddedValkey) -> None:
    bucket = RateBucket("left", "tenant", 100_000)
    fills = [fill for [fill] in run(redis.url, lambda limits: taken(limits, [bucket], 50))]
    assert all(fill.admitted for fill in fills)
    assert all(100_000 - 50 <= fill.remaining < 100_000 for fill in fills)
    assert all(0 < fill.reset <= 50 * interval(100_000) for fill in fills)


@pytest.mark.parametrize("reachable", [True, False])
def test_waiting_requests_are_counted_while_they_wait(redis: EmbeddedValkey, reachable: bool) -> None:
    async def act(limits: RedisLimits) -> None:
        async with limits.stream("waiting", 2), limits.stream("waiting", 2):
            with pytest.raises(QuotaExceeded) as refused:
                async with limits.stream("waiting", 2):
                    raise AssertionError("it must not be admitted")
            assert refused.value.facts | {"retry_after_seconds": 0} == {
                "quota": "streams",
                "limit": 2,
                "used": 2,
                "retry_after_seconds": 0,
            }
            async with limits.stream("another", 1):
                pass
        async with limits.stream("waiting", 1):
            pass

    run(redis.url if reachable else unreachable(), act)


def test_waiting_requests_of_a_dead_process_expire(
    redis: EmbeddedValkey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits_module, "STREAM_SECONDS", 0.3)

    async def act(limits: RedisLimits) -> None:
        dead = RedisLimits(redis.url, timeout_seconds=1.0)
        waiting = dead.stream("killed", 1)
        await waiting.__aenter__()
        with pytest.raises(QuotaExceeded):
            await limits.stream("killed", 1).__aenter__()
        await asyncio.sleep(0.4)
        async with limits.stream("killed", 1):
            pass
        await waiting.__aexit__(None, None, None)
        await dead.close()

    run(redis.url, act)


def test_flood_of_a_tenant_does_not_change_how_the_streams_of_another_are_counted(
    redis: EmbeddedValkey, caplog: pytest.LogCaptureFixture
) -> None:
    async def act() -> None:
        # Ten times the default: on a busy machine Redis itself may not run for that long.
        flooded, other = (RedisLimits(redis.url, timeout_seconds=seconds) for seconds in (0.5, 5.0))
        flooding, served = True, 0
        bucket = RateBucket("loud", "tenant", 5)

        async def flood() -> None:
            nonlocal served
            while flooding:
                [fill] = await flooded.take([bucket])
                served += fill.admitted
                sum(range(2_000))  # A request occupies the event loop for a moment.
                await asyncio.sleep(0)

        began = time.monotonic()
        flood_tasks = [asyncio.create_task(flood()) for _ in range(300)]
        try:
            for _ in range(4):
                async with flooded.stream("quiet", 1):
                    await asyncio.sleep(0.05)
                    with pytest.raises(QuotaExceeded):
                        await other.stream("quiet", 1).__aenter__()
                async with other.stream("quiet", 1):
                    pass
        finally:
            flooding = False
            await asyncio.gather(*flood_tasks)
            await flooded.close()
            await other.close()
        # The process counts those that have no turn, up to the rate once more.
        assert served <= 2 * 5 * (time.monotonic() - began + 1) + 2

    asyncio.run(act())
    assert "does not count" not in caplog.text


def test_end_of_a_waiting_request_that_redis_missed_is_repeated(
    redis: EmbeddedValkey, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(limits_module, "RENEW_SECONDS", 0.05)
    monkeypatch.setattr(limits_module, "_PAUSE_SECONDS", 0.2)

    async def act(limits: RedisLimits) -> None:
        admin = Redis.from_url(redis.url)
        hasty = RedisLimits(redis.url, timeout_seconds=0.1)
        async with AsyncExitStack() as waiting:
            for _ in range(3):
                await waiting.enter_async_context(hasty.stream("missed", 3))
            await admin.client_pause(400)
        with pytest.raises(QuotaExceeded):
            await limits.stream("missed", 1).__aenter__()
        renewing = asyncio.create_task(hasty.renew(lambda: None))
        for _ in range(500):
            if not (counted := await admin.zcard("headwater:streams:{missed}")):
                break
            await asyncio.sleep(0.02)
        assert counted == 0
        renewing.cancel()
        await hasty.close()
        await admin.aclose()

    run(redis.url, act)
    assert len(caplog.messages) == 1
    assert "(TimeoutError: no answer within 100 ms)" in caplog.text


def test_redis_that_does_not_answer_delays_one_request_only() -> None:
    async def act() -> list[float]:
        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read()
            writer.close()

        server = await asyncio.start_server(silent, LOOPBACK, 0)
        port = server.sockets[0].getsockname()[1]
        limits = RedisLimits(f"redis://{LOOPBACK}:{port}/0", timeout_seconds=0.2)
        seconds = []
        for _ in range(3):
            began = time.perf_counter()
            assert (await limits.take([RateBucket("slow", "tenant", 100)]))[0].admitted
            seconds.append(time.perf_counter() - began)
        await limits.close()
        server.close()
        await server.wait_closed()
        await asyncio.sleep(0.05)
        return seconds

    first, *others = asyncio.run(act())
    assert first >= 0.2
    assert all(each < 0.2 for each in others)
