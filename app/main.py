"""The API process: wires settings, store, files and services to the application, and serves it.

python -m app.main
"""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

import uvicorn
from litestar import Litestar
from litestar.types import ASGIApp

import app.arrow  # noqa: F401  (before all that makes arrays)
from app.application import application
from app.catalog.service import Datasets
from app.changes.handlers.head_watches import head_polls
from app.changes.handlers.shared_pages import SharedPages
from app.changes.repository.changelog import ChangelogStore
from app.changes.service.read_changes import ReadChanges
from app.changes.service.read_corrections import ReadCorrections
from app.composition import stores_on
from app.consumers.repository.consumers import ConsumerStore
from app.consumers.service.consumers import Consumers
from app.db.session import Database
from app.exports.repository.exports import ExportStore
from app.exports.service.exports import ManageExports
from app.files.lookups.key_search import KeySearch
from app.files.parquet_file import ParquetReader
from app.files.quarantine_file import QuarantineFileStore
from app.files.slices.slice_merge import MemoryBudget
from app.files.slices.table_reader import TableReader
from app.files.staged_file import StagedFileStore
from app.files.storage import Storage, open_storage
from app.format.errors import HeadwaterError
from app.http.context import Check, Services
from app.http.credentials import Credentials
from app.http.threads import Threads
from app.http.waiting.subscriptions import Subscriptions
from app.jobs.handlers.job_watches import job_polls
from app.jobs.repository.outbox import OutboxStore
from app.jobs.repository.workers import WorkerStore
from app.jobs.service.group_accept import GroupAccept
from app.jobs.service.relay import Relay
from app.jobs.service.request_job import RequestJob
from app.maintenance.service.table_services import TableServiceRequests
from app.messaging.announcements import Announcements, listen
from app.messaging.outbox_sender import OutboxSender
from app.messaging.work_queue import WorkQueue
from app.metastore.repository import MetastoreStateStore
from app.metastore.service.reports import MetastoreReports
from app.outbound.addresses import Rules
from app.overview.repository import OverviewStore
from app.overview.service import Overview
from app.partitions.repository.marks import PartitionStore
from app.partitions.service.maintenance import PartitionMarkers
from app.partitions.service.partitions import Partitions
from app.quarantine.repository import QuarantineStore
from app.quarantine.service import Quarantine
from app.reads.content import JoinedContent
from app.reads.repository import ReadResultStore
from app.reads.service.jobs import ReadJobs
from app.reads.service.rows import ReadTable
from app.runtime.memory import keep_freed_memory
from app.settings import Settings, SettingsError
from app.tenants.repository import TenantStore
from app.timeline.files import TimelineFileStore
from app.timeline.repository.archives import TimelineArchiveStore
from app.timeline.repository.read_leases import ReadLeaseStore
from app.timeline.service.read_timeline import ReadTimeline
from app.transactions.repository import TransactionStore
from app.transactions.service import AcceptTransaction
from app.verifications.service.verifications import Verify
from app.versions.repository.named_versions import NamedVersionStore
from app.versions.service.comparisons import Comparisons
from app.versions.service.name_versions import NameVersions
from app.versions.service.restores import Restores
from app.versions.service.versions import VersionOf
from app.views.repository.views import ViewStore
from app.views.service.views import DerivedViews
from app.webhooks.repository.webhooks import WebhookStore
from app.webhooks.sender import HttpSender
from app.webhooks.service.webhooks import Webhooks
from app.writes.service.accept import AcceptWrite
from app.writes.service.explain import ExplainWrite

# Between two polls of a worker its sign of life is old; three missed ones mean that it is gone.
_POLLS_MISSED_MAX: Final = 3
_STOP_SECONDS_MAX: Final = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class Api:
    """The application with what must be told of a stop, and the services behind it."""

    app: ASGIApp
    services: Services


def compose(settings: Settings) -> Api:
    """Wires everything. Connects to nothing yet: that happens when it is first needed."""
    database = Database(settings.database_url, application_name="headwater api")
    queue = WorkQueue(settings.redis_url)
    announcements = Announcements(settings.redis_url)
    relay = Relay(
        OutboxStore(database),
        OutboxSender(queue=queue, announcements=announcements),
        poll_seconds=settings.poll_seconds,
    )
    services = _services(settings, database, relay, announcements)

    @asynccontextmanager
    async def beside(_: Litestar) -> AsyncIterator[None]:
        async with _relay_thread(relay), _announcement_listener(settings.redis_url, services.subscriptions):
            yield
        queue.close()
        announcements.close()
        database.close()

    return Api(app=application(services, [beside]), services=services)


def _services(settings: Settings, database: Database, relay: Relay, announcements: Announcements) -> Services:
    catalog, jobs, timeline = (
        stores_on(database).catalog,
        stores_on(database).jobs,
        stores_on(database).timeline,
    )
    storage = open_storage(settings.storage_uri)
    reader = ParquetReader(storage)
    # What reads have no memory for goes through a folder of their own.
    memory = MemoryBudget(bytes_max=settings.read_memory_bytes, scratch=settings.data_dir / "reads")
    quarantine = QuarantineFileStore(storage)
    threads, subscriptions = Threads(), Subscriptions()
    transactions = TransactionStore(database)
    partition_marks = PartitionStore(database)
    group = GroupAccept(jobs)
    read_changes = ReadChanges(catalog=catalog, index=ChangelogStore(database), reader=reader)
    accept_write = _accept_write(settings, database, relay, group, storage)
    names = NamedVersionStore(database)
    versions = VersionOf(timeline=timeline, names=names, leases=ReadLeaseStore(database))
    request_job = RequestJob(jobs=jobs, group=group, wake=relay.wake)
    corrections = ReadCorrections(index=ChangelogStore(database), reader=reader)
    return Services(
        credentials=Credentials(TenantStore(database).authenticate, threads),
        datasets=Datasets(catalog=catalog, metastore=bool(settings.metastore_uri)),
        views=DerivedViews(catalog=catalog, views=ViewStore(database), wake=relay.wake),
        accept_write=accept_write,
        accept_transaction=AcceptTransaction(catalog=catalog, transactions=transactions, writes=accept_write),
        read_changes=read_changes,
        read_corrections=corrections,
        read_table=ReadTable(
            catalog=catalog,
            timeline=timeline,
            versions=versions,
            tables=TableReader(storage, reader, memory),
            corrections=corrections,
        ),
        read_jobs=_read_jobs(settings, database, request_job, versions),
        consumers=Consumers(index=ConsumerStore(database)),
        explain_write=ExplainWrite(timeline=timeline, search=KeySearch(storage, reader, memory)),
        exports=ManageExports(exports=ExportStore(database), storage=storage, wake=relay.wake),
        metastore_reports=MetastoreReports(states=MetastoreStateStore(database)),
        partitions=Partitions(
            marks=partition_marks, markers=PartitionMarkers(marks=partition_marks, storage=storage)
        ),
        overview=Overview(index=OverviewStore(database), timeline=timeline, versions=versions),
        table_services=TableServiceRequests(request_job=request_job),
        verify=Verify(request_job=request_job),
        name_versions=NameVersions(names=names, versions=versions, jobs=request_job),
        restores=Restores(names=names, versions=versions, jobs=request_job),
        comparisons=Comparisons(versions=versions, jobs=request_job),
        quarantine=Quarantine(
            index=QuarantineStore(database), files=quarantine, jobs=jobs, storage=storage, wake=relay.wake
        ),
        webhooks=Webhooks(
            catalog=catalog,
            index=WebhookStore(database),
            sender=HttpSender(rules=Rules.of(settings.webhook_allow, http=settings.webhook_http)),
            wake=relay.wake,
        ),
        jobs=jobs,
        transactions=transactions,
        read_timeline=_read_timeline(database, TimelineFileStore(storage, reader)),
        readiness=_readiness(settings, WorkerStore(database), announcements),
        json_body_bytes_max=settings.json_body_bytes_max,
        upload_bytes_max=settings.upload_bytes_max,
        threads=threads,
        subscriptions=subscriptions,
        pages=SharedPages(read_changes.page_at_known_head, threads),
        head_polls=head_polls(subscriptions, threads, catalog.get),
        job_polls=job_polls(subscriptions, threads, jobs.find),
    )


def _accept_write(
    settings: Settings, database: Database, relay: Relay, group: GroupAccept, storage: Storage
) -> AcceptWrite:
    return AcceptWrite(
        catalog=stores_on(database).catalog,
        jobs=stores_on(database).jobs,
        group=group,
        storage=storage,
        staged=StagedFileStore(storage),
        quarantine=QuarantineFileStore(storage),
        wake=relay.wake,
        inline_bytes_max=settings.inline_bytes_max,
        upload_bytes_max=settings.upload_bytes_max,
    )


def _read_jobs(settings: Settings, database: Database, requests: RequestJob, versions: VersionOf) -> ReadJobs:
    storage = open_storage(settings.storage_uri)
    return ReadJobs(
        requests=requests,
        timeline=stores_on(database).timeline,
        versions=versions,
        index=ChangelogStore(database),
        results=ReadResultStore(database),
        content=JoinedContent(storage),
        storage=storage,
        keep_seconds=settings.read_result_seconds,
    )


def _read_timeline(database: Database, files: TimelineFileStore) -> ReadTimeline:
    return ReadTimeline(
        timeline=stores_on(database).timeline, archives=TimelineArchiveStore(database), files=files
    )


def _readiness(
    settings: Settings, workers: WorkerStore, announcements: Announcements
) -> Callable[[], list[Check]]:
    def checks() -> list[Check]:
        redis = announcements.reachable()
        return [
            *_database_checks(workers, settings.poll_seconds * _POLLS_MISSED_MAX),
            Check(
                name="redis",
                ok=redis,
                required=False,
                detail="" if redis else "out of reach: work and changes are found by polling",
            ),
        ]

    return checks


def _database_checks(workers: WorkerStore, seconds: float) -> list[Check]:
    try:
        alive = workers.alive(seconds)
    except HeadwaterError as error:
        return [Check(name="database", ok=False, detail=error.detail)]
    # No tables yet, say, or those of another release. The log has the statement, the answer does not.
    except Exception as error:
        logging.getLogger(__name__).warning("the database does not fit this release: %s", error)
        return [Check(name="database", ok=False, detail="it does not have this release's schema")]
    detail = "" if alive else "no worker has polled lately: writes are accepted and wait"
    return [Check(name="database", ok=True), Check(name="worker", ok=alive > 0, detail=detail)]


@asynccontextmanager
async def _relay_thread(relay: Relay) -> AsyncIterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=relay.run, args=(stop,), name="relay", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        relay.wake()
        await asyncio.to_thread(thread.join, _STOP_SECONDS_MAX)


@asynccontextmanager
async def _announcement_listener(redis_url: str, subscriptions: Subscriptions) -> AsyncIterator[None]:
    listening = asyncio.create_task(listen(redis_url, subscriptions.notify), name="announcements")
    try:
        yield
    finally:
        listening.cancel()
        with suppress(asyncio.CancelledError):
            await listening


class Server(uvicorn.Server):
    """Tells waiting requests to answer before it waits for them."""

    def __init__(self, config: uvicorn.Config, subscriptions: Subscriptions) -> None:
        super().__init__(config)
        self._wakeups = subscriptions

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._wakeups.close()
        await super().shutdown(sockets)


def server(api: Api, host: str, port: int) -> Server:
    """The server that serves the API; `run()` blocks until a signal."""
    config = uvicorn.Config(
        api.app,
        host=host,
        port=port,
        loop="uvloop",
        http="httptools",
        ws="none",
        lifespan="on",
        log_config=None,
        # The application writes its own line for each request.
        access_log=False,
        server_header=False,
        # Longer than most clients keep a connection, so that it is they who close it.
        timeout_keep_alive=75,
        timeout_graceful_shutdown=_STOP_SECONDS_MAX,
    )
    return Server(config, api.services.subscriptions)


def configure_logging() -> None:
    """One line each, with its time, to standard error."""
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s %(message)s",
        force=True,
    )


def main() -> None:
    """Serves until SIGINT or SIGTERM."""
    configure_logging()
    try:
        settings = Settings.from_environment()
    except SettingsError as error:
        sys.exit(f"headwater: {error}")
    # Threads decode and write while the event loop answers: it must not wait 5 ms, the default, for each of its turns.
    sys.setswitchinterval(0.001)
    keep_freed_memory()
    server(compose(settings), settings.host, settings.port).run()


if __name__ == "__main__":
    main()
