"""Dependencies of handlers: values of the application by name, and providers, which read them from the request.

A handler declares what it needs as a parameter: `webhooks: Provided[Webhooks]`. The name chooses the dependency.
A provider declares the headers that it reads in its own signature; they are documented for every handler that uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, TypeAlias, TypeVar

from litestar import Litestar
from litestar.di import Dependency
from litestar.params import HeaderParameter, SkipValidationMarker
from litestar.routes import HTTPRoute

from app.access.tenants.values import Principal
from app.http.limits.threads import Threads
from app.http.openapi.operation_docs import documentation_of
from app.http.parameters.headers import (
    Preference,
    negotiate,
    parse_idempotency_key,
    parse_if_match,
    parse_preference,
    prefers_redirect,
    require_revision,
)
from app.http.parameters.query_options import decode_options, options_type
from app.http.request import ApiRequest
from app.http.stored_file import RANGE_HEADERS, Download
from app.http.waiting.request_credential import RequestCredential
from app.infra.files.s3.links import StorageLinks
from app.kernel.format.errors import InvalidRequest

_T = TypeVar("_T")

Provider: TypeAlias = Callable[..., Any]
"""An asynchronous function that makes a value for one request. Its parameters are headers and provided values."""
Provided: TypeAlias = Annotated[_T, Dependency(kind="named"), SkipValidationMarker()]
"""A parameter that is provided by its name; its type is what the provider of that name returns."""

IfMatch: TypeAlias = Annotated[
    str,
    HeaderParameter(
        name="If-Match",
        description="The ETag that the resource must still have; 412 if it has another. `*` is any.",
    ),
]


async def principal(request: ApiRequest) -> Principal:
    """The tenant, the key and the scopes of the credential."""
    return request.user


async def credential(request: ApiRequest) -> RequestCredential:
    """The credential of the request, for streams and waits."""
    return request.auth


async def options(request: ApiRequest) -> Any:
    """The query options of the handler, as the struct that it declares. Raises InvalidRequest."""
    type_ = options_type(request.route_handler)
    assert type_ is not None
    return decode_options(request.query_params, type_)


async def idempotency_key(
    key: Annotated[
        str | None,
        HeaderParameter(
            name="Idempotency-Key",
            description="Makes a retry safe: the same key with the same request returns the first result.",
        ),
    ] = None,
) -> str | None:
    """Raises InvalidRequest."""
    return None if key is None else parse_idempotency_key(key)


async def preference(
    prefer: Annotated[
        str,
        HeaderParameter(
            name="Prefer", description="`wait=N` waits up to N seconds (60 at most) for the job to end."
        ),
    ] = "",
) -> Preference:
    """The preferences of the client, of the first Prefer line."""
    return parse_preference(prefer)


async def if_match_revision(if_match: IfMatch = "*") -> int | None:
    """The revision that the resource must have; None for any. Raises PreconditionFailed."""
    return parse_if_match(if_match)


async def required_if_match_revision(if_match: IfMatch = "*") -> int:
    """The revision that the resource must have. Raises PreconditionRequired, PreconditionFailed."""
    return require_revision(parse_if_match(if_match))


async def download(
    threads: Provided[Threads],
    storage_links: Provided[StorageLinks | None],
    prefer: Annotated[
        str,
        HeaderParameter(
            name="Prefer",
            description="`redirect`: a link to the file in the storage, 307, if the service gives links.",
        ),
    ] = "",
    range_: Annotated[str | None, HeaderParameter(name="Range", description=RANGE_HEADERS["Range"])] = None,
    if_range: Annotated[
        str | None, HeaderParameter(name="If-Range", description=RANGE_HEADERS["If-Range"])
    ] = None,
) -> Download:
    """What sends a file, or the part that the request names."""
    return Download(
        range_=range_,
        if_range=if_range,
        threads=threads,
        links=storage_links if prefers_redirect(prefer) else None,
    )


async def media_type(request: ApiRequest) -> str:
    """The media type of the response, of those that the handler declares. Raises NotAcceptable."""
    return negotiate(request.headers, list(documentation_of(request.route_handler).content))


async def public_url(request: ApiRequest, configured_url: Provided[str]) -> str:
    """The address under which clients reach the service, without a slash at its end: the setting, or Host.

    Raises InvalidRequest for a Host that is no address.
    """
    if configured_url:
        return configured_url
    try:
        return str(request.base_url).rstrip("/")
    except ValueError:
        raise InvalidRequest("the header Host is not valid: expected a name and a port up to 65535") from None


PROVIDERS: Final[Mapping[str, Provider]] = {
    provider.__name__: provider
    for provider in (
        principal,
        credential,
        options,
        idempotency_key,
        preference,
        if_match_revision,
        required_if_match_revision,
        download,
        media_type,
        public_url,
    )
}
"""The generic providers, by the name of the parameter that they provide. Features have providers of their own."""


def resolve_in_sequence(application: Litestar) -> None:
    """Has the dependencies of a request resolved one after another.

    The framework starts a task for each, which takes longer than all of them: they hardly ever wait.
    """
    for route in application.routes:
        if isinstance(route, HTTPRoute):
            for _, model in route.route_handler_map.values():
                model.dependency_batches = [{each} for batch in model.dependency_batches for each in batch]
