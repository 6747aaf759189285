"""What sharing serves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.access.tenants.ports import ActorStore
from app.access.tenants.values import ActorKind
from app.core.compose import read_changes
from app.core.feature.api import ApiProcess, CountOf, FeatureApi
from app.core.platform import Platform
from app.core.timeline.repository.pending_writes import PendingWriteStore
from app.core.timeline.service.plan_files import FilePlanner
from app.features.objects.compose import process_keys, renderings
from app.features.objects.ports import ObjectTree
from app.features.objects.service.published_files import FilePublication
from app.features.rendered_files.compose import rendered_files, rendered_objects
from app.features.sharing.compose import shared_tables
from app.features.sharing.handlers import listings, tables
from app.features.sharing.handlers.credentials import SHARE_TOKENS, ShareTokenScheme
from app.features.sharing.handlers.protocol_errors import protocol_error
from app.features.sharing.handlers.recipients import RECIPIENT_HANDLERS
from app.features.sharing.handlers.shares import SHARE_HANDLERS
from app.features.sharing.problems import PROBLEMS
from app.features.sharing.providers import PROVIDERS
from app.features.sharing.repository.change_versions import ChangeVersionStore
from app.features.sharing.repository.credentials import RecipientStore
from app.features.sharing.repository.recipients import ShareRecipientStore
from app.features.sharing.repository.shares import ShareStore
from app.features.sharing.service.change_files import ChangeFiles
from app.features.sharing.service.recipients import Recipients
from app.features.sharing.service.shares import Shares
from app.features.sharing.service.table_changes import TableChanges
from app.features.sharing.service.table_forms import SharedForms
from app.features.sharing.service.table_queries import Links, TableQueries
from app.http.auth import Resource, Scheme
from app.infra.files.deletion_vector_file import VectorReader


def _dependencies(process: ApiProcess) -> dict[str, object]:
    platform = process.platform
    store = ShareStore(platform.database)
    queries, changes = _table_reads(process)
    return {
        "shared_tables": shared_tables(platform),
        "table_queries": queries,
        "table_changes": changes,
        "shares": Shares(store=store),
        "recipients": Recipients(
            catalog=platform.stores.catalog, shares=store, store=ShareRecipientStore(platform.database)
        ),
    }


def _resources(platform: Platform) -> dict[str, Resource]:
    store = ShareStore(platform.database)

    def datasets(tenant_id: str, reference: str) -> list[str]:
        return [each.name for each in store.get(tenant_id, reference).datasets]

    return {"share": Resource(datasets=datasets)}


def _trees(process: ApiProcess) -> Mapping[str, ObjectTree]:
    changes = process.once(_change_files)
    return {changes.segment: changes}


def _schemes(process: ApiProcess) -> Mapping[str, Scheme]:
    return {SHARE_TOKENS: ShareTokenScheme(credentials=process.credentials)}


def _actors(platform: Platform) -> Mapping[ActorKind, ActorStore]:
    return {ActorKind.RECIPIENT: RecipientStore(platform.database)}


def _quotas(platform: Platform) -> dict[str, CountOf]:
    return {
        "shares": ShareStore(platform.database).count,
        "recipients": ShareRecipientStore(platform.database).count,
    }


def _links(process: ApiProcess) -> Links:
    """Links to the files of tables."""
    return Links(keys=process.once(process_keys))


def _change_files(process: ApiProcess) -> ChangeFiles:
    """The files of changes, for `ApiProcess.once`."""
    return ChangeFiles(
        feed=read_changes(process.platform),
        objects=process.once(rendered_objects),
        versions=ChangeVersionStore(process.platform.database),
        renderings=process.once(renderings),
    )


def _table_reads(process: ApiProcess) -> tuple[TableQueries, TableChanges]:
    """What reads tables for recipients."""
    platform = process.platform
    timeline = platform.stores.timeline
    forms = SharedForms(
        publication=FilePublication(renderings=process.once(renderings)),
        timeline=timeline,
        pending_writes=PendingWriteStore(platform.database),
    )
    queries = TableQueries(
        forms=forms,
        timeline=timeline,
        versions=platform.leases,
        planner=FilePlanner(timeline=timeline),
        rendered_files=process.once(rendered_files),
        vectors=VectorReader(platform.storage),
        links=_links(process),
    )
    changes = TableChanges(
        forms=forms,
        timeline=timeline,
        versions=ChangeVersionStore(platform.database),
        files=process.once(_change_files),
        links=_links(process),
    )
    return queries, changes


API: Final = FeatureApi(
    name="sharing",
    protocol_routes=(*listings.HANDLERS, *tables.HANDLERS),
    error_forms={"delta-sharing": protocol_error},
    object_trees=_trees,
    routes=(*SHARE_HANDLERS, *RECIPIENT_HANDLERS),
    dependencies=_dependencies,
    providers=PROVIDERS,
    resources=_resources,
    schemes=_schemes,
    actors=_actors,
    quotas=_quotas,
    problems=(PROBLEMS,),
)
