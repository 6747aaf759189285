"""Composes the services of the API from its features."""

from __future__ import annotations

from collections.abc import Callable

from app import core
from app.changes.handlers.head_watches import head_polls
from app.changes.handlers.shared_pages import SharedPages
from app.exports.compose import manage_exports
from app.files.slices.slice_merge import MemoryBudget
from app.http.context import Check, Services
from app.http.credentials import Credentials
from app.http.threads import Threads
from app.http.waiting.subscriptions import Subscriptions
from app.idempotency.compose import run_once
from app.jobs.handlers.job_watches import job_polls
from app.maintenance.compose import maintenance_store, table_services
from app.metastore.compose import metastore_reports
from app.overview.compose import overview
from app.partitions.compose import partitions
from app.platform import Platform
from app.quarantine.compose import quarantine
from app.reads.compose import read_jobs, read_table
from app.tenants.repository import TenantStore
from app.transactions.compose import accept_transaction
from app.verifications.compose import verifications
from app.versions.compose import comparisons, name_versions, restores, version_of
from app.views.compose import derived_views
from app.webhooks.compose import webhooks
from app.writes.compose import accept_write, explain_write


def api_services(platform: Platform, readiness: Callable[[], list[Check]]) -> Services:
    """The services behind the API's resources."""
    settings, stores = platform.settings, platform.stores
    # Data of reads that do not fit into memory go to a folder of their own.
    memory = MemoryBudget(bytes_max=settings.read_memory_bytes, scratch=settings.data_dir / "reads")
    threads, subscriptions = Threads(), Subscriptions()
    changes = core.read_changes(platform)
    writes, versions = accept_write(platform), version_of(platform)
    transactions = accept_transaction(platform, writes)
    return Services(
        credentials=Credentials(TenantStore(platform.database).authenticate, threads),
        datasets=core.datasets(platform),
        views=derived_views(platform),
        accept_write=writes,
        accept_transaction=transactions,
        read_changes=changes,
        feed_starts=core.feed_starts(platform),
        read_corrections=core.read_corrections(platform),
        read_table=read_table(platform, versions, memory),
        read_jobs=read_jobs(platform, versions),
        consumers=core.consumers(platform),
        explain_write=explain_write(platform, memory),
        exports=manage_exports(platform),
        metastore_reports=metastore_reports(maintenance_store(platform).record),
        partitions=partitions(platform),
        overview=overview(platform, versions),
        table_services=table_services(platform),
        verifications=verifications(platform),
        name_versions=name_versions(platform),
        restores=restores(platform),
        comparisons=comparisons(platform),
        quarantine=quarantine(platform),
        webhooks=webhooks(platform),
        jobs=stores.jobs,
        transactions=transactions,
        run_once=run_once(platform),
        read_timeline=core.read_timeline(platform),
        readiness=readiness,
        json_body_bytes_max=settings.json_body_bytes_max,
        upload_bytes_max=settings.upload_bytes_max,
        threads=threads,
        subscriptions=subscriptions,
        pages=SharedPages(changes.page_at_known_head, threads),
        head_polls=head_polls(subscriptions, threads, stores.catalog.get),
        job_polls=job_polls(subscriptions, threads, stores.jobs.find),
    )
