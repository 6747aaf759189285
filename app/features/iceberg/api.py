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
from app.features.iceberg.reading_examples import reading_examples
from app.features.iceberg.service.loaded_tables import LoadedTables
from app.features.objects.compose import process_keys
from app.features.objects.ports import ObjectTree

TABLE_THREADS_MAX: Final = 8
"""Threads that load tables. A document is made by the processor, so more threads of a tenant would slow others."""
TABLE_THREADS_TENANT_MAX: Final = 3
PLAN_THREADS_MAX: Final = 4
"""Threads that plan scans."""
PLAN_THREADS_TENANT_MAX: Final = 2


def _dependencies(process: ApiProcess) -> Mapping[str, object]:
    tables = process.once(rendered_tables)
    load_tables = LoadedTables(
        tables=tables.documents, manifests=tables.manifests, keys=process.once(process_keys)
    )
    return {
        "loaded_tables": load_tables,
        "plan_scans": plan_scans(process),
        "table_threads": process.page_threads.apart(TABLE_THREADS_MAX, party_max=TABLE_THREADS_TENANT_MAX),
        "plan_threads": process.page_threads.apart(PLAN_THREADS_MAX, party_max=PLAN_THREADS_TENANT_MAX),
        "reading_examples": reading_examples,
    }


def _trees(process: ApiProcess) -> Mapping[str, ObjectTree]:
    return {tree.segment: tree for tree in object_trees(process)}


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
