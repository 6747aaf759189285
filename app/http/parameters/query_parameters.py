"""Query parameters: none is ever ignored, except by routes of other protocols (`ANY_PARAMETERS`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, TypeAlias

from litestar.connection import ASGIConnection
from litestar.handlers import BaseRouteHandler
from litestar.params import PathParameter, QueryParameter

from app.http.parameters.query_options import options_type
from app.kernel.format.errors import FieldError, InvalidRequest
from app.kernel.format.member_errors import similar

ANY_PARAMETERS: Final = "any_parameters"
"""Handler option: parameters that the handler does not have are ignored, as the protocol of its route requires."""
INT64_MAX: Final = 2**63 - 1
PAGE_SIZE_MAX: Final = 1_000
_DIGITS_MAX: Final = 19
# What other parameters of this API and of others are called here.
_SYNONYMS: Final = {
    "cursor": ("page_token", "since"),
    "fields": ("columns",),
    "filter": ("where",),
    "limit": ("page_size",),
    "offset": ("since", "page_token"),
    "page": ("page_token",),
    "page_size": ("limit",),
    "per_page": ("page_size", "limit"),
    "select": ("columns",),
}
# The names of a handler's parameters, by its function: one entry for each operation of the API.
_NAMES: Final[dict[Callable[..., Any], frozenset[str]]] = {}

DatasetReference: TypeAlias = Annotated[str, PathParameter(description="The id or the name of a dataset.")]


async def refuse_unknown_parameters(
    connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler
) -> None:
    """Raises InvalidRequest for a parameter that the handler does not have, such as a misspelt one."""
    # Asynchronous, though it waits for nothing: the framework would have a thread call it, for every request.
    if handler.opt.get(ANY_PARAMETERS):
        return
    names = _names(handler)
    unknown_names = [name for name in connection.query_params if name not in names]
    if unknown_names:
        raise InvalidRequest(
            f"unknown query parameter {unknown_names[0]!r}",
            [
                FieldError(pointer=f"/{name}", detail=_accepted(name, names))
                for name in dict.fromkeys(unknown_names)
            ],
        )


def _accepted(name: str, names: frozenset[str]) -> str:
    hint = f"accepted here: {', '.join(sorted(names)) or 'none'}"
    synonyms = [synonym for synonym in _SYNONYMS.get(name, ()) if synonym in names]
    question = similar(synonyms[0] if synonyms else name, sorted(names))
    return f"{question} {hint}" if question else hint


def _names(handler: BaseRouteHandler) -> frozenset[str]:
    # A guard gets a new copy of the handler for each request, and all copies have one function.
    names = _NAMES.get(handler.fn)
    if names is None:
        names = _NAMES[handler.fn] = _declared(handler)
    return names


def _declared(handler: BaseRouteHandler) -> frozenset[str]:
    options = options_type(handler)
    return frozenset(
        field.kwarg_definition.name or name
        for name, field in handler.parsed_fn_signature.parameters.items()
        if isinstance(field.kwarg_definition, QueryParameter)
    ).union(() if options is None else options.__struct_encode_fields__)


def natural(text: str, name: str) -> int:
    """The number, of digits only, that fits into 64 bits. Raises InvalidRequest."""
    if not (text.isascii() and text.isdigit()) or len(text) > _DIGITS_MAX or int(text) > INT64_MAX:
        detail = f"expected 0–{INT64_MAX}"
        raise InvalidRequest(f"{name} is not valid", [FieldError(pointer=f"/{name}", detail=detail)])
    return int(text)
