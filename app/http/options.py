"""OPTIONS on every path: which methods it has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from litestar import Response
from litestar.handlers import HTTPRouteHandler

from app.http.auth import PUBLIC
from app.http.problems import allow_header


def options_handlers(handlers: Iterable[HTTPRouteHandler]) -> list[HTTPRouteHandler]:
    """A handler of OPTIONS for each path. They are registered before the others.

    The framework adds handlers of its own to paths without one, but those name the methods registered first only.
    """
    methods: dict[str, set[str]] = defaultdict(lambda: {"OPTIONS"})
    for handler in handlers:
        for path in handler.paths:
            methods[path] |= set(handler.http_methods)
    return [_handler(path, allow_header(names)) for path, names in methods.items()]


def _handler(path: str, methods: str) -> HTTPRouteHandler:
    async def answer_options() -> Response[None]:
        return Response(None, status_code=204, headers={"Allow": methods})

    return HTTPRouteHandler(path, http_method="OPTIONS", status_code=204, opt={PUBLIC: True})(answer_options)
