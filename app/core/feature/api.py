"""What a feature adds to the API. It imports the framework, which no worker does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from litestar.di import Provide
from litestar.handlers import HTTPRouteHandler

from app.access.oidc.verifier import TokenVerifier
from app.access.tenants.ports import ActorStore
from app.access.tenants.values import ActorKind
from app.core.feature.feature import merged
from app.core.platform import Platform
from app.http.auth import Resource, Scheme
from app.http.credential_cache import Credentials
from app.http.dependencies import Provider
from app.http.limits.threads import PageThreads, Threads
from app.http.problems import ErrorForm
from app.http.waiting.subscriptions import Subscriptions
from app.infra.db.session import Database
from app.infra.files.lookups.key_search import KeySearch
from app.kernel.format.errors import HeadwaterError

_Value = TypeVar("_Value")

CountOf = Callable[[str], int]
"""How much a tenant, by its id, has of what a quota limits."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiProcess:
    """What the use cases of the API process share. They are synchronous: handlers call them through `threads`."""

    platform: Platform
    threads: Threads
    page_threads: PageThreads
    """Of pages of rows and changes, which count the bytes that clients have not read."""
    subscriptions: Subscriptions
    """What wakes requests that wait."""
    key_search: KeySearch
    administration: Database | None
    """With the login that administers tenants; None if the deployment has none."""
    credentials: Credentials
    """What checks API keys and tokens."""
    tokens: TokenVerifier | None
    """What verifies tokens of issuers; None if the deployment has none."""
    on_credential_change: Callable[[str], None]
    """Called with the id of a tenant whose credentials have changed."""
    quota_use: Mapping[str, CountOf]
    """By the name of the quota."""
    _made: dict[Callable[[ApiProcess], Any], Any] = field(default_factory=dict, init=False, repr=False)

    def once(self, make: Callable[[ApiProcess], _Value]) -> _Value:
        """What the function makes, made once for the process: features that name the same function share it.

        Called while the process is composed, which one thread does.
        """
        if make not in self._made:
            self._made[make] = make(self)
        value: _Value = self._made[make]
        return value


def _nothing(_: object) -> Mapping[Any, Any]:
    return {}


@dataclass(frozen=True, kw_only=True, slots=True)
class FeatureApi:
    """What a feature adds to the API. A field that is a function is called when the process starts."""

    name: str
    routes: Sequence[HTTPRouteHandler]
    providers: Mapping[str, Provider] = field(default_factory=dict)
    """What handlers of all features get from a request, by the name of the parameter."""
    dependencies: Callable[[ApiProcess], Mapping[str, object]] = _nothing
    """What handlers of all features get from the process, by the name of the parameter."""
    resources: Callable[[Platform], Mapping[str, Resource]] = _nothing
    """What belongs to datasets, by the name of the first parameter of its path."""
    schemes: Callable[[ApiProcess], Mapping[str, Scheme]] = _nothing
    """Credentials of other kinds than bearer ones, by the name that handlers state as their option `SCHEME`."""
    actors: Callable[[Platform], Mapping[ActorKind, ActorStore]] = _nothing
    """What resolves the credentials of actors of its own kinds."""
    problems: Sequence[Mapping[type[HeadwaterError], int]] = ()
    """The HTTP statuses of the errors of its rooms."""
    protocol_routes: Sequence[HTTPRouteHandler] = ()
    """Routes of another protocol, which has a document of its own: they are not in the OpenAPI document."""
    error_forms: Mapping[str, ErrorForm] = field(default_factory=dict)
    """The forms of errors of these routes, by the first segment of their paths."""
    quotas: Callable[[Platform], Mapping[str, CountOf]] = _nothing
    """What a tenant has, by the name of the quota that limits it."""
    object_trees: Callable[[ApiProcess], Mapping[str, object]] = _nothing
    """The `ObjectTree` (`app/features/objects/ports.py`) of each first segment of the paths below a table."""


def provided_by_name(values: Mapping[str, object], providers: Mapping[str, Provider]) -> dict[str, Provide]:
    """Values of an application, and providers, as the framework takes them. Raises ValueError; see `merged`."""
    return merged(
        {name: _provide(value) for name, value in values.items()},
        {name: Provide(provider) for name, provider in providers.items()},
    )


def _provide(value: Any) -> Provide:
    def provided() -> Any:
        return value

    return Provide(provided, sync_to_thread=False)
