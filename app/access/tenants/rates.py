"""The rule of rates: a bucket that holds the requests of one second and is filled evenly (GCRA)."""

from __future__ import annotations

from typing import Final

import msgspec

SECOND: Final = 1_000_000
"""Times are in whole microseconds, which the scripts of Redis calculate exactly as well."""


class RateBucket(msgspec.Struct, frozen=True):
    """What is limited: its name among all, its kind (`tenant`, `key` or `recipient`) and its requests per second."""

    name: str
    kind: str
    rate: int


class Fill(msgspec.Struct, frozen=True):
    """A bucket after a request. `wait`: until the next request is admitted; `reset`: until the bucket is full.

    Times in microseconds. `remaining`: the requests that are admitted at once.
    """

    admitted: bool
    remaining: int
    wait: int
    reset: int


def interval(rate: int) -> int:
    """The microseconds in which one request is refilled."""
    return max(1, SECOND // rate)


def admit(full_at: int, now: int, rate: int) -> tuple[int, Fill]:
    """Whether a request at `now` is admitted by a bucket that would be full at `full_at`; that time after it.

    A request that is not admitted changes nothing.
    """
    step = interval(rate)
    span = step * rate
    after = max(full_at, now) + step
    if after - now > span:
        pending = full_at - now
        return full_at, Fill(False, max(0, (span - pending) // step), after - now - span, pending)
    return after, Fill(True, (span - (after - now)) // step, 0, after - now)
