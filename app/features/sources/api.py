"""What sources serve."""

from __future__ import annotations

from typing import Final

from app.core.feature.api import ApiProcess, CountOf, FeatureApi
from app.core.platform import Platform
from app.features.sources.compose import manage_sources, source_store
from app.features.sources.handlers import (
    change_source,
    create_source,
    delete_source,
    get_source,
    list_sources,
    start_source_round,
)
from app.features.sources.problems import PROBLEMS
from app.http.auth import Resource


def _dependencies(process: ApiProcess) -> dict[str, object]:
    return {"sources": manage_sources(process.platform)}


def _resources(platform: Platform) -> dict[str, Resource]:
    sources = manage_sources(platform)
    return {"source": Resource(datasets=lambda *reference: [sources.get(*reference).dataset_name])}


def _quotas(platform: Platform) -> dict[str, CountOf]:
    return {"sources": source_store(platform).count}


API: Final = FeatureApi(
    name="sources",
    routes=(
        create_source,
        list_sources,
        get_source,
        change_source,
        delete_source,
        start_source_round,
    ),
    dependencies=_dependencies,
    resources=_resources,
    quotas=_quotas,
    problems=(PROBLEMS,),
)
