"""What the core rooms serve."""

from __future__ import annotations

from typing import Final

from app.core import compose
from app.core.catalog import problems as catalog_problems
from app.core.catalog import providers as catalog_providers
from app.core.catalog.handlers import (
    change_dataset,
    create_dataset,
    delete_dataset,
    get_dataset,
    get_dataset_schema,
    list_dataset_schemas,
    list_datasets,
)
from app.core.catalog.service import Datasets
from app.core.changes import problems as changes_problems
from app.core.changes.handlers.changes import read_changes
from app.core.changes.handlers.corrections import read_corrections
from app.core.changes.handlers.events import follow_changes
from app.core.changes.handlers.head_polls import head_polls
from app.core.changes.handlers.shared_pages import SharedPages
from app.core.changes.service.feed_starts import FeedStarts
from app.core.consumers import problems as consumers_problems
from app.core.consumers import providers as consumers_providers
from app.core.consumers.handlers import (
    delete_consumer,
    get_consumer,
    lease_consumer,
    list_consumers,
    put_consumer,
    release_consumer,
)
from app.core.consumers.service import Consumers
from app.core.feature.api import ApiProcess, CountOf, FeatureApi
from app.core.feature.feature import merged
from app.core.idempotency import problems as idempotency_problems
from app.core.idempotency import providers as idempotency_providers
from app.core.idempotency.service import RunOnce
from app.core.jobs import problems as jobs_problems
from app.core.jobs import providers as jobs_providers
from app.core.jobs.handlers.job_polls import job_polls
from app.core.jobs.handlers.jobs import cancel_job, follow_job, get_job, list_jobs
from app.core.jobs.handlers.waiting import JobWaits
from app.core.jobs.service.jobs import Jobs
from app.core.platform import Platform
from app.core.timeline import problems as timeline_problems
from app.core.timeline.files import TimelineFileStore
from app.core.timeline.handlers import read_timeline
from app.core.timeline.repository.archives import TimelineArchiveStore
from app.core.timeline.service.read_timeline import ReadTimeline
from app.http.auth import Resource
from app.kernel.format.identifiers import is_uuid


def _dependencies(process: ApiProcess) -> dict[str, object]:
    platform = process.platform
    stores = platform.stores
    consumers = Consumers(index=compose.consumer_store(platform))
    return {
        "datasets": Datasets(
            catalog=stores.catalog, wake=platform.wake, metastore=bool(platform.settings.metastore_uri)
        ),
        "feed_starts": FeedStarts(
            catalog=stores.catalog,
            at_commit=platform.changelog.position_at_commit,
            of_consumer=consumers.position,
        ),
        "read_corrections": compose.read_corrections(platform),
        "consumers": consumers,
        "jobs": Jobs(store=stores.jobs, wake=platform.wake),
        "read_timeline": ReadTimeline(
            timeline=stores.timeline,
            archives=TimelineArchiveStore(platform.database),
            files=TimelineFileStore(platform.storage, platform.reader),
        ),
        "run_once": RunOnce(replies=compose.reply_store(platform), wake=platform.wake),
        **_waiting(process),
    }


def _waiting(process: ApiProcess) -> dict[str, object]:
    """What requests wait with, and the pages that they share."""
    platform, threads, subscriptions = process.platform, process.threads, process.subscriptions
    stores = platform.stores
    snapshots = compose.read_snapshots(platform, compose.table_walk(platform, compose.read_memory(platform)))
    polls = job_polls(subscriptions, threads, stores.jobs.find)
    return {
        "pages": SharedPages(
            snapshots.page_at_known_head, process.page_threads, kept_bytes=platform.settings.page_cache_bytes
        ),
        "dataset_lookups": catalog_providers.dataset_lookups(threads, stores.catalog.get),
        "head_polls": head_polls(subscriptions, threads, stores.catalog.moved_heads),
        "job_waits": JobWaits(
            polls=polls, get_job=stores.jobs.get, threads=threads, subscriptions=subscriptions
        ),
    }


def dataset_resource(platform: Platform) -> Resource:
    """The dataset itself, of which a key sees the rows that its access allows."""
    catalog = platform.stores.catalog

    def datasets(tenant_id: str, reference: str) -> list[str]:
        # A name says by itself whether it is granted, whether or not there is such a dataset.
        return catalog.names(tenant_id, [reference]) if is_uuid(reference) else [reference]

    return Resource(datasets=datasets)


def _resources(platform: Platform) -> dict[str, Resource]:
    catalog, jobs = platform.stores.catalog, platform.stores.jobs

    def of_job(tenant_id: str, job_id: str) -> list[str]:
        return catalog.names(tenant_id, [jobs.get(tenant_id, job_id).dataset_id])

    return {
        "dataset": dataset_resource(platform),
        "job": Resource(datasets=of_job, access=lambda *reference: jobs.get(*reference).access),
    }


def _quotas(platform: Platform) -> dict[str, CountOf]:
    stores = platform.stores
    return {
        "datasets": stores.catalog.count,
        "consumers": compose.consumer_store(platform).count,
        "queued_jobs": stores.jobs.count_queued,
        "running_jobs": stores.jobs.count_running,
    }


API: Final = FeatureApi(
    name="core",
    routes=(
        create_dataset,
        list_datasets,
        get_dataset,
        get_dataset_schema,
        list_dataset_schemas,
        change_dataset,
        delete_dataset,
        list_jobs,
        get_job,
        follow_job,
        cancel_job,
        read_changes,
        follow_changes,
        read_corrections,
        list_consumers,
        put_consumer,
        get_consumer,
        delete_consumer,
        lease_consumer,
        release_consumer,
        read_timeline,
    ),
    providers=merged(
        catalog_providers.PROVIDERS,
        jobs_providers.PROVIDERS,
        consumers_providers.PROVIDERS,
        idempotency_providers.PROVIDERS,
    ),
    dependencies=_dependencies,
    resources=_resources,
    quotas=_quotas,
    problems=(
        catalog_problems.PROBLEMS,
        changes_problems.PROBLEMS,
        consumers_problems.PROBLEMS,
        idempotency_problems.PROBLEMS,
        jobs_problems.PROBLEMS,
        timeline_problems.PROBLEMS,
    ),
)
