"""Requests that are tried again where that is safe."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import httpx

from headwater_client.problem import Problem, problem_of

_ATTEMPTS: Final = 6
_DELAY_SECONDS_FIRST: Final = 0.2
_DELAY_SECONDS_MAX: Final = 10.0
_TRY_AGAIN: Final = frozenset({429, 502, 503, 504})

Body = bytes | Path
"""What a request sends: bytes, or a file, which is streamed and never held in memory."""


class Transport:
    """Sends requests with a credential. Safe for use from several threads at once."""

    def __init__(self, url: str, api_key: str, transport: httpx.BaseTransport | None = None) -> None:
        self._client = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {api_key}"},
            timeout=30,
            transport=transport,
        )

    def close(self) -> None:
        """Closes its connections."""
        self._client.close()

    def send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Body | None = None,
        repeatable: bool,
        patience_seconds: float = 0.0,
    ) -> httpx.Response:
        """The response, if it is a success.

        `repeatable`: sending it twice does no more than sending it once, so a lost answer may be asked for
        again. `patience_seconds`: how much longer than usual the service may take to answer. Raises Problem,
        httpx.TransportError.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            last = attempt == _ATTEMPTS
            try:
                with _opened(body) as content:
                    response = self._client.request(
                        method,
                        path,
                        params=params,
                        headers=headers,
                        content=content,
                        timeout=httpx.Timeout(30, read=60 + patience_seconds),
                    )
            except httpx.TransportError as error:
                # Without a connection nothing was sent, so nothing can have been done.
                if last or not (repeatable or isinstance(error, httpx.ConnectError)):
                    raise
                time.sleep(_delay_seconds(attempt, None))
                continue
            if response.is_success:
                return response
            problem = problem_of(response)
            if last or not repeatable or not _may_pass(problem):
                raise problem
            time.sleep(_delay_seconds(attempt, response.headers.get("retry-after")))
        raise AssertionError("the last attempt returns or raises")


def _may_pass(problem: Problem) -> bool:
    return problem.status in _TRY_AGAIN or problem.code == "idempotency-in-flight"


def _delay_seconds(attempt: int, retry_after: str | None) -> float:
    if retry_after is not None and retry_after.isdigit():
        return min(float(retry_after), _DELAY_SECONDS_MAX)
    longest = min(_DELAY_SECONDS_FIRST * 2.0**attempt, _DELAY_SECONDS_MAX)
    # Clients that lost the same service at the same time must not all come back at the same time.
    return random.uniform(longest / 2, longest)  # noqa: S311


@contextmanager
def _opened(body: Body | None) -> Iterator[bytes | IO[bytes] | None]:
    if isinstance(body, Path):
        with body.open("rb") as file:
            yield file
    else:
        yield body
