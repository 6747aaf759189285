"""Retries: which requests are retried, and after which delay."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from email.utils import parsedate_to_datetime
from typing import Final

import httpx2

from headwater_client.problem import Problem
from headwater_client.transport.driver import Request

ATTEMPTS: Final = 6
_DELAY_SECONDS_FIRST: Final = 0.2
_DELAY_SECONDS_MAX: Final = 10.0
_RETRY_AFTER_SECONDS_MAX: Final = 60.0
_STATUSES: Final = frozenset({429, 502, 503, 504})


def is_repeatable(request: Request) -> bool:
    """Whether it may be sent again: it is idempotent by its method or key, and is no request for the health of now."""
    if request.path.startswith("/health/"):
        return False
    return request.method == "GET" or "Idempotency-Key" in request.headers


def delay_after_error(attempt: int, error: httpx2.TransportError, *, repeatable: bool) -> float | None:
    """The delay in seconds after `attempt`, which got no response; None for no further attempt."""
    # Without a connection nothing was sent, so nothing can have been executed.
    may_repeat = repeatable or isinstance(error, httpx2.ConnectError)
    return _backoff(attempt) if may_repeat and attempt < ATTEMPTS else None


def delay_after_problem(
    attempt: int, problem: Problem, retry_after: str | None, *, repeatable: bool
) -> float | None:
    """The delay in seconds after `attempt`, which was rejected; None for no further attempt."""
    may_pass = problem.status in _STATUSES or problem.code == "idempotency-in-flight"
    # What exists or is stored does not end by itself: such a quota has no time after which a request may succeed.
    lasts = problem.code == "quota-exceeded" and retry_after is None
    if lasts or not (may_pass and repeatable and attempt < ATTEMPTS):
        return None
    requested = None if retry_after is None else _seconds(retry_after)
    if requested is None:
        return _backoff(attempt)
    return requested if requested <= _RETRY_AFTER_SECONDS_MAX else None


def _backoff(attempt: int) -> float:
    longest = min(_DELAY_SECONDS_FIRST * 2.0**attempt, _DELAY_SECONDS_MAX)
    # A random delay: clients that lost the same service must not return at the same time.
    return random.uniform(longest / 2, longest)  # noqa: S311


def _seconds(retry_after: str) -> float | None:
    """The value of the header, which is a number of seconds or a date; None if it is neither."""
    if retry_after.isdigit():
        return float(retry_after)
    try:
        date = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=timezone.utc)
    return max((date - datetime.now(timezone.utc)).total_seconds(), 0.0)
