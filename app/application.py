"""The ASGI application: resources, and what applies to all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

from litestar import Litestar
from litestar.datastructures import State
from litestar.exceptions import HTTPException
from litestar.middleware import DefineMiddleware
from litestar.types import ASGIApp

from app.format.errors import HeadwaterError
from app.http.auth import PUBLIC, Authentication, require_scope
from app.http.context import Services
from app.http.middleware import edge
from app.http.problems import on_headwater_error, on_http_exception, on_unexpected
from app.http.query_parameters import refuse_unknown_parameters
from app.openapi import get_schema
from app.routes import ROUTES

Lifespan = Callable[[Litestar], AbstractAsyncContextManager[None]]


def application(services: Services, lifespan: Sequence[Lifespan] = ()) -> ASGIApp:
    """The application on these services. `lifespan`: what runs beside it, from its start to its stop."""
    return edge(
        Litestar(
            route_handlers=[*ROUTES, get_schema],
            middleware=[DefineMiddleware(Authentication, exclude_from_auth_key=PUBLIC)],
            guards=[require_scope, refuse_unknown_parameters],
            exception_handlers={
                HeadwaterError: on_headwater_error,
                HTTPException: on_http_exception,
                Exception: on_unexpected,
            },
            state=State({"services": services}),
            lifespan=list(lifespan),
            logging_config=None,
            # The document is made by `openapi`; the framework's own pages load scripts from elsewhere.
            openapi_config=None,
            # Every body is bounded where it is read, with the limit named in the answer.
            request_max_body_size=None,
        )
    )
