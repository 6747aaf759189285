"""What exports serve."""

from __future__ import annotations

from typing import Final

from app.core.feature.api import ApiProcess, CountOf, FeatureApi
from app.core.platform import Platform
from app.features.exports.compose import destinations_on
from app.features.exports.handlers.exports import (
    change_export,
    create_export,
    delete_export,
    get_export,
    get_export_run,
    list_all_exports,
    list_export_runs,
    list_exports,
    start_export_run,
)
from app.features.exports.handlers.files import check_export_file, download_export_file
from app.features.exports.problems import PROBLEMS
from app.features.exports.repository.exports import ExportStore
from app.features.exports.service.exports import ManageExports
from app.features.versions.compose import version_of
from app.http.auth import Resource


def _exports(platform: Platform) -> ManageExports:
    return ManageExports(
        exports=ExportStore(platform.database),
        timeline=platform.stores.timeline,
        versions=version_of(platform),
        storage=platform.storage,
        destinations=destinations_on(platform),
        wake=platform.wake,
    )


def _dependencies(process: ApiProcess) -> dict[str, object]:
    return {"exports": _exports(process.platform)}


def _resources(platform: Platform) -> dict[str, Resource]:
    catalog, exports = platform.stores.catalog, _exports(platform)

    def datasets(tenant_id: str, export_id: str) -> list[str]:
        return catalog.names(tenant_id, [exports.get(tenant_id, export_id).dataset_id])

    return {
        "export": Resource(
            datasets=datasets, access=lambda *reference: exports.get(*reference).definition.access
        )
    }


def _quotas(platform: Platform) -> dict[str, CountOf]:
    return {"exports": ExportStore(platform.database).count}


API: Final = FeatureApi(
    name="exports",
    routes=(
        create_export,
        list_exports,
        list_all_exports,
        get_export,
        change_export,
        delete_export,
        start_export_run,
        list_export_runs,
        get_export_run,
        download_export_file,
        check_export_file,
    ),
    dependencies=_dependencies,
    resources=_resources,
    quotas=_quotas,
    problems=(PROBLEMS,),
)
