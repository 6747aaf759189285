"""What views serve."""

from __future__ import annotations

from typing import Final

from app.core.api import dataset_resource
from app.core.feature.api import ApiProcess, CountOf, FeatureApi
from app.core.platform import Platform
from app.features.views.handlers import (
    change_view,
    create_view,
    delete_view,
    find_origins,
    get_view,
    list_views,
    refresh_view,
)
from app.features.views.repository.views import ViewStore
from app.features.views.service.origins import FindOrigins
from app.features.views.service.views import DerivedViews
from app.http.auth import Resource


def _dependencies(process: ApiProcess) -> dict[str, object]:
    platform = process.platform
    catalog, views = platform.stores.catalog, ViewStore(platform.database)
    return {
        "views": DerivedViews(
            catalog=catalog,
            views=views,
            wake=platform.wake,
            slice_seconds=platform.settings.derived_slice_seconds,
        ),
        "origins": FindOrigins(views=views, index=platform.changelog, reader=platform.reader),
    }


def _resources(platform: Platform) -> dict[str, Resource]:
    # A view is a dataset.
    return {"view": dataset_resource(platform)}


def _quotas(platform: Platform) -> dict[str, CountOf]:
    return {"views": ViewStore(platform.database).count}


API: Final = FeatureApi(
    name="views",
    routes=(
        create_view,
        list_views,
        get_view,
        change_view,
        delete_view,
        refresh_view,
        find_origins,
    ),
    dependencies=_dependencies,
    resources=_resources,
    quotas=_quotas,
)
