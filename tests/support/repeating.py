"""A client's transport that sends requests again while a part of the service is away."""

from __future__ import annotations

import time
from typing import Final

import httpx2

_SECONDS_MAX: Final = 180.0
_PAUSE_SECONDS: Final = 0.2
# Of the proxy while no API answers, of the service while it waits for Postgres or the storage.
_PASSING: Final = frozenset({502, 503, 504})


class Repeating(httpx2.BaseTransport):
    """Repeats what docs/errors.md says may be repeated, for three minutes at most. Writes need an Idempotency-Key.

    `failures`: where each request that was sent again is recorded, as the status and its problem, or the error.
    """

    def __init__(self, failures: list[str]) -> None:
        self._failures = failures
        self._inner = httpx2.HTTPTransport(trust_env=False)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        deadline = time.monotonic() + _SECONDS_MAX
        while True:
            try:
                answer = self._inner.handle_request(request)
                answer.read()
            except httpx2.TransportError as error:
                self._failures.append(f"{request.method} {request.url.path}: {error!r}")
                if time.monotonic() > deadline:
                    raise
            else:
                if not _may_be_repeated(answer) or time.monotonic() > deadline:
                    return answer
                self._failures.append(
                    f"{request.method} {request.url.path}: {answer.status_code} {answer.text[:200]}"
                )
            time.sleep(_PAUSE_SECONDS)

    def close(self) -> None:
        self._inner.close()


def _may_be_repeated(answer: httpx2.Response) -> bool:
    in_flight = answer.status_code == 409 and "idempotency-in-flight" in answer.text
    return answer.status_code in _PASSING or in_flight
