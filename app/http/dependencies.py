"""What handlers are provided with: use cases by name, and what is read from the request.

A handler declares what it needs as a parameter: `webhooks: Provided[Webhooks]`. The name chooses the dependency.
A provider declares the headers that it reads in its own signature; they are documented for every handler that uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Annotated, Any, Final, TypeAlias, TypeVar

from litestar import Litestar
from litestar.di import Dependency, Provide
from litestar.params import HeaderParameter, SkipValidationMarker
from litestar.routes import HTTPRoute

from app.catalog.service import Datasets
from app.catalog.values import Dataset
from app.consumers.values import ExpectedRevision
from app.format.errors import PreconditionFailed
from app.http.context import Services
from app.http.headers import (
    Preference,
    negotiate,
    parse_idempotency_key,
    parse_if_match,
    parse_preference,
    require_version,
)
from app.http.idempotency import Idempotency
from app.http.in_flight import InFlight
from app.http.openapi.operation_docs import documentation_of
from app.http.query_options import decode_options, options_type
from app.http.query_parameters import DatasetReference
from app.http.request import ApiRequest
from app.http.stored_file import RANGE_HEADERS, Download
from app.http.threads import Threads
from app.idempotency.service import RunOnce
from app.jobs.handlers.accepted import Acceptance
from app.jobs.handlers.waiting import JobWaiter, waiter_of
from app.tenants.values import Principal

_T = TypeVar("_T")

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


async def expected_revision(if_match: IfMatch = "*") -> int | None:
    """The revision that the resource must have; None for any. Raises PreconditionFailed."""
    return parse_if_match(if_match)


async def required_revision(if_match: IfMatch = "*") -> int:
    """The revision that the resource must have. Raises PreconditionRequired, PreconditionFailed."""
    return require_version(parse_if_match(if_match))


async def put_condition(
    if_match: IfMatch = "*",
    if_none_match: Annotated[
        str | None,
        HeaderParameter(
            name="If-None-Match", description="`*`: the resource must not exist yet; 412 if it does."
        ),
    ] = None,
) -> ExpectedRevision:
    """The revision that the resource must have, or that it must not exist. Raises PreconditionFailed."""
    if if_none_match is not None and if_none_match.strip() != "*":
        raise PreconditionFailed(f"If-None-Match: {if_none_match} is not supported here", expected="*")
    return ExpectedRevision(absent=if_none_match is not None, revision=parse_if_match(if_match))


async def download(
    threads: Provided[Threads],
    range_: Annotated[str | None, HeaderParameter(name="Range", description=RANGE_HEADERS["Range"])] = None,
    if_range: Annotated[
        str | None, HeaderParameter(name="If-Range", description=RANGE_HEADERS["If-Range"])
    ] = None,
) -> Download:
    """What sends a file, or the part that the request names."""
    return Download(range_=range_, if_range=if_range, threads=threads)


async def media_type(request: ApiRequest) -> str:
    """The media type of the response, of those that the handler declares. Raises NotAcceptable."""
    return negotiate(request.headers, list(documentation_of(request.route_handler).content))


async def found(
    dataset: DatasetReference,
    datasets: Provided[Datasets],
    principal: Provided[Principal],
    threads: Provided[Threads],
) -> Dataset:
    """The dataset of the path. Raises NotFound."""
    return await threads.run(datasets.get, principal.tenant_id, dataset)


async def acceptance(
    idempotency_key: Provided[str | None],
    preference: Provided[Preference],
    principal: Provided[Principal],
    in_flight: Provided[InFlight],
    threads: Provided[Threads],
    waiter: Provided[JobWaiter],
) -> Acceptance:
    """What accepts this request as a job."""
    return Acceptance(
        idempotency_key=idempotency_key,
        preference=preference,
        actor=principal.key_id,
        in_flight=in_flight,
        threads=threads,
        waiter=waiter,
    )


async def idempotency(
    request: ApiRequest,
    idempotency_key: Provided[str | None],
    threads: Provided[Threads],
    run_once: Provided[RunOnce],
) -> Idempotency:
    """What creates the resource of this request: once for each Idempotency-Key."""
    return Idempotency(
        request=request,
        key=idempotency_key,
        body=await request.body() if request.route_handler.parsed_data_field is not None else b"",
        threads=threads,
        run_once=run_once,
    )


PROVIDERS: Final[Mapping[str, Callable[..., Any]]] = {
    provider.__name__: provider
    for provider in (
        principal,
        options,
        idempotency_key,
        preference,
        expected_revision,
        required_revision,
        put_condition,
        download,
        media_type,
        found,
        acceptance,
        idempotency,
    )
}
"""What is read from a request, by the name of the parameter that it is provided as."""


def dependencies(services: Services) -> dict[str, Provide]:
    """The use cases of an application, and the providers, by name."""
    values = {field.name: getattr(services, field.name) for field in fields(services)}
    # Handlers that state their query parameters one by one have one of this name.
    values["partition_marks"] = values.pop("partitions")
    values["waiter"] = waiter_of(services)
    given = {name: _provide(value) for name, value in values.items()}
    return {**given, **{name: Provide(provider) for name, provider in PROVIDERS.items()}}


def resolve_in_sequence(application: Litestar) -> None:
    """Has the dependencies of a request resolved one after another.

    The framework starts a task for each, which takes longer than all of them: they hardly ever wait.
    """
    for route in application.routes:
        if isinstance(route, HTTPRoute):
            for _, model in route.route_handler_map.values():
                model.dependency_batches = [{each} for batch in model.dependency_batches for each in batch]


def _provide(value: Any) -> Provide:
    def provided() -> Any:
        return value

    return Provide(provided, sync_to_thread=False)
