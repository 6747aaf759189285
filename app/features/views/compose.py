"""Composes the use cases of views."""

from __future__ import annotations

from collections.abc import Callable

from app.core.consumers.followers import ConsumerKind, Follower
from app.core.jobs.values import JobKind
from app.core.platform import Platform
from app.features.views.repository.views import ViewStore
from app.features.views.service.origins import FindOrigins
from app.features.views.service.refresh import DeriveView, FollowInputs
from app.features.views.service.views import DerivedViews
from app.features.writes.ports import InputStager
from app.kernel.derivation.engine import Derivation


def derived_views(platform: Platform) -> DerivedViews:
    """Views in the API."""
    return DerivedViews(
        catalog=platform.stores.catalog, views=ViewStore(platform.database), wake=platform.wake
    )


def count(platform: Platform) -> Callable[[str], int]:
    """How many views of a tenant, by its id, count against its quota."""
    return ViewStore(platform.database).count


def dependencies(platform: Platform) -> dict[str, object]:
    """The use cases of the feature, by the names that handlers use."""
    origins = FindOrigins(
        views=ViewStore(platform.database), index=platform.changelog, reader=platform.reader
    )
    return {"views": derived_views(platform), "origins": origins}


def stagers(platform: Platform, engine: Derivation) -> dict[JobKind, InputStager]:
    """The kind of write whose input is a query."""
    refresh = DeriveView(
        views=ViewStore(platform.database),
        timeline=platform.stores.timeline,
        index=platform.changelog,
        pins=platform.pins,
        engine=engine,
    )
    return {JobKind.REFRESH: refresh}


def followers(platform: Platform) -> dict[ConsumerKind, Follower]:
    """The kind of consumer that starts refreshes."""
    return {ConsumerKind.VIEW: FollowInputs(views=ViewStore(platform.database), wake=platform.wake)}
