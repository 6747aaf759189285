"""The ASGI application: its resources, and the handling that all of them share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final

from litestar import Litestar
from litestar.config.cors import CORSConfig
from litestar.exceptions import HTTPException
from litestar.middleware import DefineMiddleware
from litestar.types import ASGIApp

from app.access.tenants.values import Principal
from app.core.feature.api import provided_by_name
from app.core.messaging.redis_limits import RedisLimits
from app.http.audited import AuditedRequests
from app.http.auth import PUBLIC, Authentication, Scheme, in_sequence, require_scope
from app.http.credential_cache import Credentials
from app.http.dependencies import resolve_in_sequence
from app.http.limits.request_limits import RequestLimits
from app.http.limits.unread_bytes import UnreadBytes
from app.http.middleware import edge
from app.http.options import options_handlers
from app.http.parameters.query_parameters import refuse_unknown_parameters
from app.http.problems import (
    JobFailed,
    on_credential_ended,
    on_headwater_error,
    on_http_exception,
    on_job_failed,
    on_unexpected,
    serve_error_forms,
    serve_statuses,
)
from app.http.request import JSON_BODY_BYTES_MAX, ApiRequest
from app.http.response import ApiResponse
from app.http.waiting.request_credential import CredentialEnded, Permit
from app.kernel.format.errors import HeadwaterError
from app.process.api import ERROR_FORMS, PROTOCOL_ROUTES, PROVIDERS, ROUTES, STATUSES
from app.process.front import front_handlers
from app.process.openapi import schema_handler

Lifespan = Callable[[Litestar], AbstractAsyncContextManager[None]]


# Headers of requests and responses beside those that every page may send and read.
_CORS_REQUEST_HEADERS: Final = (
    "Authorization",
    "Content-Encoding",
    "Content-Type",
    "Idempotency-Key",
    "If-Match",
    "If-None-Match",
    "Last-Event-ID",
    "Prefer",
    "Range",
    "X-Request-Id",
)
_CORS_RESPONSE_HEADERS: Final = (
    "Allow",
    "Content-Range",
    "ETag",
    "Headwater-Corrected",
    "Headwater-Disposition",
    "Headwater-Earliest",
    "Headwater-Next-Page-Token",
    "Headwater-Next-Since",
    "Headwater-Pending",
    "Headwater-Schema-Id",
    "Headwater-Version",
    "Idempotency-Replayed",
    "Link",
    "Location",
    "Preference-Applied",
    "RateLimit",
    "RateLimit-Policy",
    "Retry-After",
    "WWW-Authenticate",
    "X-Request-Id",
)


def application(
    dependencies: Mapping[str, object],
    credentials: Credentials,
    grants: Permit,
    schemes: Mapping[str, Scheme],
    audited_requests: AuditedRequests,
    limiter: RedisLimits,
    unread: UnreadBytes,
    on_end: Callable[[Principal, int], None],
    lifespan: Sequence[Lifespan] = (),
    *,
    cors_origins: Sequence[str] = (),
) -> ASGIApp:
    """The application whose handlers have these dependencies. Raises ValueError for one that has a provider's name.

    `grants`: the guard of `RequireGrant`. `schemes`: credentials of other kinds, by name. `audited_requests`: records
    requests. `unread`: counts large bodies that are not sent yet. `on_end`: called after each request of a principal,
    with the bytes of the body that was sent. `lifespan`: context managers that run from its start to its stop.
    `cors_origins`: the origins whose pages may call it.
    """
    serve_statuses(STATUSES)
    serve_error_forms(ERROR_FORMS)
    permits: list[Permit] = [require_scope, grants]
    described = [schema_handler(ROUTES, PROVIDERS), *front_handlers(ROUTES, PROVIDERS)]
    handlers = [*ROUTES, *PROTOCOL_ROUTES, *described]
    litestar = Litestar(
        route_handlers=[*options_handlers(handlers), *handlers],
        dependencies=provided_by_name(dependencies, PROVIDERS),
        request_class=ApiRequest,
        response_class=ApiResponse,
        middleware=[
            DefineMiddleware(
                Authentication,
                credentials=credentials,
                permits=permits,
                schemes=schemes,
                exclude_from_auth_key=PUBLIC,
            ),
            DefineMiddleware(RequestLimits, limiter=limiter),
        ],
        guards=[in_sequence([*permits, refuse_unknown_parameters, audited_requests.begin])],
        exception_handlers={
            HeadwaterError: on_headwater_error,
            CredentialEnded: on_credential_ended,
            JobFailed: on_job_failed,
            HTTPException: on_http_exception,
            Exception: on_unexpected,
        },
        lifespan=list(lifespan),
        cors_config=_cors(cors_origins) if cors_origins else None,
        logging_config=None,
        # `openapi` creates the document; the framework's own pages load scripts from other hosts.
        openapi_config=None,
        # For JSON bodies that are decoded for a handler; other bodies are limited where they are read.
        request_max_body_size=JSON_BODY_BYTES_MAX,
    )
    resolve_in_sequence(litestar)
    return edge(litestar, audited_requests, unread, on_end)


def _cors(origins: Sequence[str]) -> CORSConfig:
    # Credentials are headers, which a page sets by itself, and never cookies.
    return CORSConfig(
        allow_origins=list(origins),
        allow_methods=["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"],
        allow_headers=list(_CORS_REQUEST_HEADERS),
        expose_headers=list(_CORS_RESPONSE_HEADERS),
    )
