"""What the Iceberg catalogue serves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.core.feature.api import ApiProcess, FeatureApi
from app.features.iceberg.compose import object_trees, plan_scans, rendered_tables
from app.features.iceberg.handlers import catalogue, plan, tables
from app.features.iceberg.handlers.error_form import error_form
from app.features.iceberg.handlers.tokens import give_token
from app.features.iceberg.problems import PROBLEMS
from app.features.iceberg.providers import PROVIDERS
from app.features.iceberg.service.loaded_tables import LoadedTables
from app.features.objects.compose import table_keys
from app.features.objects.ports import ObjectTree


def _dependencies(process: ApiProcess) -> Mapping[str, object]:
    platform = process.platform
    return {
        "configured_url": platform.settings.public_url,
        "loaded_tables": LoadedTables(tables=rendered_tables(platform), keys=table_keys(platform)),
        "plan_scans": plan_scans(platform),
    }


def _trees(process: ApiProcess) -> Mapping[str, ObjectTree]:
    return {tree.segment: tree for tree in object_trees(process.platform)}


API: Final = FeatureApi(
    name="iceberg",
    routes=(),
    protocol_routes=(*catalogue.HANDLERS, *tables.HANDLERS, *plan.HANDLERS, give_token),
    error_forms={"iceberg": error_form},
    providers=PROVIDERS,
    dependencies=_dependencies,
    object_trees=_trees,
    problems=(PROBLEMS,),
)
