"""The limits of requests: rates of tenants and keys, and requests that wait. Applied after authentication.

The fields RateLimit-Policy and RateLimit are those of draft-ietf-httpapi-ratelimit-headers-10.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from functools import cache
from typing import Any, Final, Protocol
from urllib.parse import parse_qs

import msgspec
from litestar.handlers import BaseRouteHandler
from litestar.types import ASGIApp, Receive, Scope, Send

from app.access.tenants.quotas import rate_limited
from app.access.tenants.rates import SECOND, Fill, RateBucket
from app.access.tenants.values import ActorKind, Principal
from app.http.event_stream import STREAM
from app.http.parameters.headers import parse_preference
from app.http.parameters.query_options import options_type
from app.http.protocols import INNER, RATE

RATE_FIELDS: Final = "headwater_rate_fields"
"""Where the state of a request has the fields of its response that state its rates."""


# The parameters with the seconds that a request may wait.
_WAITING: Final = ("timeout", "wait")


class Limiter(Protocol):
    """Counts requests of all API processes together. It never fails: without its store, each process counts alone."""

    async def take(self, buckets: Sequence[RateBucket]) -> Sequence[Fill]:
        """Takes a request from all buckets, or from none if one of them does not admit it."""
        ...

    def stream(self, tenant_id: str, limit: int) -> AbstractAsyncContextManager[None]:
        """Counts a request that waits until the context ends. Raises QuotaExceeded."""
        ...


class RequestLimits:
    """Refuses requests beyond the limits of their tenant or key. Those without limits pass at once."""

    def __init__(self, app: ASGIApp, limiter: Limiter) -> None:
        self._app = app
        self._limiter = limiter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Raises RateLimited, QuotaExceeded."""
        principal: Principal | None = scope.get("user")
        if principal is None:
            await self._app(scope, receive, send)
            return
        rate_name: str | None = scope["route_handler"].opt.get(RATE)
        buckets = buckets_of(principal) if rate_name is None else own_buckets(principal, rate_name)
        if buckets and INNER not in scope:
            fills = await self._limiter.take(buckets)
            scope["state"][RATE_FIELDS] = rate_fields(buckets, fills)
            for bucket, fill in zip(buckets, fills, strict=True):
                if not fill.admitted:
                    name = rate_name or "requests_per_second"
                    raise rate_limited(bucket.kind, bucket.rate, fill.wait / SECOND, name=name)
        streams = principal.quotas.limit("streams")
        if streams is None or not _waits(scope):
            await self._app(scope, receive, send)
            return
        async with self._limiter.stream(principal.tenant_id, streams):
            await self._app(scope, receive, send)


def buckets_of(principal: Principal) -> list[RateBucket]:
    """What limits the rate of the principal's requests."""
    buckets = []
    if (rate := principal.quotas.limit("requests_per_second")) is not None:
        buckets.append(RateBucket(principal.tenant_id, "tenant", rate))
    if principal.requests_per_second is not None:
        buckets.append(
            RateBucket(f"{principal.tenant_id}:{principal.actor}", "key", principal.requests_per_second)
        )
    return buckets


def own_buckets(principal: Principal, name: str) -> list[RateBucket]:
    """What limits the rate of the tenant's requests of one kind, and that of a recipient. `name`: of the quota."""
    rate = principal.quotas.limit(name)
    buckets = [] if rate is None else [RateBucket(f"{principal.tenant_id}:{name}", "tenant", rate)]
    if principal.kind is ActorKind.RECIPIENT and principal.requests_per_second is not None:
        own = f"{principal.tenant_id}:{principal.actor}:{name}"
        buckets.append(RateBucket(own, "recipient", principal.requests_per_second))
    return buckets


def rate_fields(buckets: Sequence[RateBucket], fills: Sequence[Fill]) -> list[tuple[bytes, bytes]]:
    """The fields of a response: the policies, and what is left of them."""
    policies = ", ".join(f'"{bucket.kind}";q={bucket.rate};w=1' for bucket in buckets)
    remainders = ", ".join(
        f'"{bucket.kind}";r={fill.remaining};t={-(-fill.reset // SECOND)}'
        for bucket, fill in zip(buckets, fills, strict=True)
    )
    return [(b"ratelimit-policy", policies.encode()), (b"ratelimit", remainders.encode())]


def _waits(scope: Any) -> bool:
    """Whether the request is an event stream, or may wait: what it finds at once is not known before."""
    handler = scope["route_handler"]
    if handler.opt.get(STREAM):
        return True
    for name, value in scope["headers"]:
        if name == b"prefer" and parse_preference(value.decode("latin-1")).wait_seconds:
            return True
    query = parse_qs(scope["query_string"].decode("latin-1"))
    if _reads_pages(handler) and "longpoll" not in query.get("feed", ()):
        return False
    durations = [seconds for name in _WAITING for seconds in query.get(name, ())]
    return any(seconds.strip("0") for seconds in durations) if durations else _waits_by_default(handler)


@cache
def _reads_pages(handler: BaseRouteHandler) -> bool:
    """Whether the request waits only as a longpoll of a feed."""
    type_ = options_type(handler)
    fields = () if type_ is None else msgspec.structs.fields(type_)
    return any(field.encode_name == "feed" for field in fields)


@cache
def _waits_by_default(handler: BaseRouteHandler) -> bool:
    type_ = options_type(handler)
    fields = () if type_ is None else msgspec.structs.fields(type_)
    return any(field.encode_name in _WAITING and field.default for field in fields)
