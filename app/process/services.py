"""Composes the dependencies of handlers from the features."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping

from app.core import compose as core
from app.core.catalog.providers import dataset_lookups
from app.core.changes.handlers.head_polls import head_polls
from app.core.changes.handlers.shared_pages import SharedPages
from app.core.jobs.handlers.job_polls import job_polls
from app.core.jobs.handlers.waiting import JobWaits
from app.core.platform import Platform
from app.features.exports import compose as exports
from app.features.maintenance import compose as maintenance
from app.features.metastore import compose as metastore
from app.features.overview import compose as overview
from app.features.partitions import compose as partitions
from app.features.quarantine import compose as quarantine
from app.features.reads import compose as reads
from app.features.sources import compose as sources
from app.features.transactions import compose as transactions
from app.features.verifications import compose as verifications
from app.features.versions import compose as versions
from app.features.views import compose as views
from app.features.webhooks import compose as webhooks
from app.features.writes import compose as writes
from app.http.auth import AccessOf, DatasetsOf
from app.http.dependencies import merged
from app.http.in_flight import InFlight
from app.http.limits.threads import (
    OUTBOUND_TENANT_MAX,
    OUTBOUND_THREADS_MAX,
    ROW_STREAMS_MAX,
    ROW_STREAMS_TENANT_MAX,
    PageThreads,
    Threads,
)
from app.http.waiting.subscriptions import Subscriptions
from app.infra.files.lookups.hot_folder import HotFolder
from app.infra.files.lookups.key_search import KeySearch
from app.infra.files.s3.links import storage_links
from app.infra.files.slices.table_walk import TableWalk
from app.infra.settings import Settings
from app.infra.sharing.fair_slots import FairSlots
from app.kernel.format.identifiers import is_uuid

_log = logging.getLogger(__name__)


def dependencies(
    platform: Platform, threads: Threads, page_threads: PageThreads, subscriptions: Subscriptions
) -> Mapping[str, object]:
    """The dependencies of handlers by name. Raises ValueError for a name that two features use.

    Use cases are synchronous: handlers call them through `threads`.
    """
    settings = platform.settings
    memory = core.read_memory(platform)
    walk = core.table_walk(platform, memory)
    version_of = versions.version_of(platform)
    key_search = KeySearch(platform.storage, platform.reader, memory, _hot_folder(settings))
    accept_write = writes.accept_write(platform)
    return merged(
        {
            "threads": threads,
            "page_threads": page_threads,
            "row_streams": FairSlots(ROW_STREAMS_MAX, party_max=ROW_STREAMS_TENANT_MAX),
            "outbound": Threads(OUTBOUND_THREADS_MAX, party_max=OUTBOUND_TENANT_MAX),
            "in_flight": InFlight(),
            "storage_links": storage_links(
                settings.storage_uri,
                endpoint=settings.storage_link_url,
                seconds=settings.storage_link_seconds,
                environment=os.environ,
            ),
        },
        {"subscriptions": subscriptions, "json_body_bytes_max": settings.json_body_bytes_max},
        _waiting(platform, walk, threads, page_threads, subscriptions),
        core.dependencies(platform),
        writes.dependencies(platform, accept_write, key_search),
        transactions.dependencies(platform, accept_write),
        reads.dependencies(platform, version_of, walk, key_search, memory),
        versions.dependencies(platform),
        views.dependencies(platform),
        sources.dependencies(platform),
        exports.dependencies(platform),
        verifications.dependencies(platform),
        maintenance.dependencies(platform),
        quarantine.dependencies(platform),
        partitions.dependencies(platform),
        webhooks.dependencies(platform),
        overview.dependencies(platform, version_of),
        metastore.dependencies(maintenance.maintenance_store(platform).record),
    )


def _hot_folder(settings: Settings) -> HotFolder | None:
    """The folder for copies of files in which rows are looked up; None without one, which makes lookups slower."""
    if not settings.hot_bytes_max:
        return None
    try:
        return HotFolder(settings.data_dir / "hot", settings.hot_bytes_max)
    except OSError as error:
        _log.warning("rows are looked up without copies of files: %s", error)
        return None


def datasets_of(platform: Platform) -> Mapping[str, DatasetsOf]:
    """The names of the datasets that something belongs to, by the parameter of its path. See `require_grant`."""
    stores = platform.stores
    webhooks_of, exports_of = webhooks.webhooks(platform), exports.manage_exports(platform)
    sources_of = sources.manage_sources(platform)
    accepted = transactions.transaction_store(platform)

    def of_dataset(tenant_id: str, reference: str) -> list[str]:
        # A name says by itself whether it is granted, whether or not there is such a dataset.
        return stores.catalog.names(tenant_id, [reference]) if is_uuid(reference) else [reference]

    def of_job(tenant_id: str, job_id: str) -> list[str]:
        return stores.catalog.names(tenant_id, [stores.jobs.get(tenant_id, job_id).dataset_id])

    def of_webhook(tenant_id: str, webhook_id: str) -> list[str]:
        return stores.catalog.names(tenant_id, [webhooks_of.get(tenant_id, webhook_id).dataset_id])

    def of_export(tenant_id: str, export_id: str) -> list[str]:
        return stores.catalog.names(tenant_id, [exports_of.get(tenant_id, export_id).dataset_id])

    def of_source(tenant_id: str, reference: str) -> list[str]:
        return [sources_of.get(tenant_id, reference).dataset_name]

    def of_transaction(tenant_id: str, transaction_id: str) -> list[str]:
        found = accepted.get(tenant_id, transaction_id)
        return stores.catalog.names(tenant_id, [job.dataset_id for job in found.jobs])

    return {
        "dataset": of_dataset,
        "view": of_dataset,
        "source": of_source,
        "job": of_job,
        "webhook": of_webhook,
        "export": of_export,
        "transaction": of_transaction,
    }


def access_of(platform: Platform) -> Mapping[str, AccessOf]:
    """The access with which something was made, by the parameter of its path. See `require_grant`."""
    stores = platform.stores
    webhooks_of, exports_of = webhooks.webhooks(platform), exports.manage_exports(platform)

    return {
        "job": lambda tenant_id, job_id: stores.jobs.get(tenant_id, job_id).access,
        "webhook": lambda tenant_id, webhook_id: webhooks_of.get(tenant_id, webhook_id).access,
        "export": lambda tenant_id, export_id: exports_of.get(tenant_id, export_id).definition.access,
        # A transaction writes: what its jobs report may be of any row.
        "transaction": lambda *_: None,
    }


def quota_use(platform: Platform) -> Mapping[str, Callable[[str], int]]:
    """What a tenant has, by the name of the quota that limits it."""
    stores = platform.stores
    return {
        "datasets": stores.catalog.count,
        "views": views.count(platform),
        "consumers": core.consumer_store(platform).count,
        "webhooks": webhooks.count(platform),
        "exports": exports.count(platform),
        "sources": sources.count(platform),
        "queued_jobs": stores.jobs.count_queued,
        "running_jobs": stores.jobs.count_running,
    }


def _waiting(
    platform: Platform, walk: TableWalk, threads: Threads, page_threads: Threads, subscriptions: Subscriptions
) -> dict[str, object]:
    """What requests wait with, and the pages that they share."""
    stores = platform.stores
    polls = job_polls(subscriptions, threads, stores.jobs.find)
    return {
        "pages": SharedPages(
            core.read_snapshots(platform, walk).page_at_known_head,
            page_threads,
            kept_bytes=platform.settings.page_cache_bytes,
        ),
        "dataset_lookups": dataset_lookups(threads, stores.catalog.get),
        "head_polls": head_polls(subscriptions, threads, stores.catalog.moved_heads),
        "job_waits": JobWaits(
            polls=polls, get_job=stores.jobs.get, threads=threads, subscriptions=subscriptions
        ),
    }
