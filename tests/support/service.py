"""The real API on a loopback port, with a worker whose tasks run in this process rather than on Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from app.access.tenants.values import KeyScope
from app.core.consumers.followers import ConsumerKind
from app.core.consumers.repository.followers import FollowerStore
from app.core.consumers.service import Follow
from app.core.feature.feature import Worker
from app.core.jobs.repository.jobs import JobStore
from app.core.jobs.repository.outbox import OutboxStore
from app.core.jobs.service.relay import APART_SECONDS, Relay
from app.core.jobs.service.run_tasks import RunTasks
from app.core.jobs.values import JobQueue
from app.core.messaging.announcements import Announcements
from app.core.messaging.outbox_sender import OutboxSender
from app.core.messaging.work_queue import WorkQueue
from app.core.platform import Platform
from app.features.sources.compose import round_store
from app.features.sources.service.due import StartRounds
from app.features.webhooks.compose import alert_followers, deliver_webhooks
from app.features.webhooks.repository.alert_followers import AlertFollowerStore
from app.features.writes.engine import DecodedInput
from app.features.writes.service.run import RunWrites
from app.infra.db.session import ADMINISTRATOR_ROLE, Database
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import Storage, open_storage
from app.infra.runtime.loopback import LOOPBACK, free_port
from app.infra.runtime.loops import Loop
from app.infra.settings import Settings
from app.kernel.commit.write_options import DEFAULT_OPTIONS, WriteOptions
from app.kernel.derivation.request import DeriveRequest
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.operation import Operation
from app.kernel.format.rows.row_limits import DEFAULT_LIMITS
from app.kernel.format.rows.staged import RawInput, StagedFile
from app.main import Api, compose, server
from app.process.features import stores_on
from tests.support.administration import Administration
from tests.support.engine import EngineInProcess
from tests.support.http import TLS
from tests.support.view_computation import DerivationInProcess
from workers.engine.decode.decode_input import Tasks, decode_input
from workers.engine.task_files import TaskResources
from workers.engine.tasks import TaskResult, run_task
from workers.wiring import follower_handlers, run_tasks, run_writes, start_rounds

SCOPES = tuple(KeyScope)
_WORK_SECONDS_MAX = 240.0


class TasksInProcess(EngineInProcess):
    """An engine that runs the same tasks as Spark does, one after another, and computes views by functions of tests."""

    decompressed_bytes_max = 2**30
    limits = DEFAULT_LIMITS

    def __init__(self, storage: Storage) -> None:
        super().__init__(resources=TaskResources.on(storage, MemoryBudget(bytes_max=2**30)))
        self.derivation = DerivationInProcess(storage)

    def decode(
        self,
        raws: Sequence[RawInput],
        dataset: DatasetDefinition,
        operation: Operation,
        *,
        prefix: str,
        options: WriteOptions = DEFAULT_OPTIONS,
        quarantine: str | None = None,
        tag: str,
    ) -> DecodedInput:
        def run(tasks: Tasks) -> list[TaskResult]:
            return [run_task(self.resources, task) for task in tasks]

        return decode_input(
            run,
            raws,
            dataset,
            operation,
            options,
            prefix=prefix,
            quarantine=quarantine,
            decompressed_bytes_max=self.decompressed_bytes_max,
            limits=self.limits,
        )

    def derive(self, request: DeriveRequest, tag: str) -> tuple[StagedFile, ...]:
        return self.derivation.derive(request)


@dataclass(kw_only=True)
class Service:
    """A running service. `work` runs what waits, once; `working` keeps doing so in the background."""

    url: str
    settings: Settings
    api: Api
    database: Database
    tenants: Administration
    platform: Platform
    worker: Worker[Any]
    jobs: JobStore
    run_writes: RunWrites
    run_tasks: RunTasks
    followers: FollowerStore
    follow: Follow
    alerts: AlertFollowerStore
    follow_alerts: Follow
    start_rounds: StartRounds
    relay: Relay
    derivation: DerivationInProcess
    _stop: threading.Event = field(default_factory=threading.Event)

    def new_key(self, tenant: str, scopes: Sequence[str] = SCOPES) -> str:
        """The key of a new tenant."""
        tenant_id = self.tenants.add_tenant(tenant)
        return self.tenants.make_key(tenant_id, scopes).api_key

    def client(self, api_key: str) -> httpx2.Client:
        """A client with this credential."""
        return httpx2.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {api_key}"},
            timeout=30,
            trust_env=False,
            verify=TLS,
        )

    def work(self) -> None:
        """Runs all waiting writes and tasks to their end, and what follows feeds until none of it is due.

        Fails if that takes minutes: what fails each time may be due again each time.
        """
        deadline = time.monotonic() + _WORK_SECONDS_MAX
        while any([self.run_waiting_writes(), self._run_tasks(), self.run_followers(), self._run_sources()]):
            assert time.monotonic() < deadline, "work that is due again and again"

    def run_waiting_writes(self) -> bool:
        """Runs writes of datasets that wait; false if there were none."""
        waiting = self.jobs.runnable(10)
        for dataset in waiting:
            self.run_writes.run(dataset.tenant_id, dataset.dataset_id)
        return bool(waiting)

    def _run_tasks(self) -> bool:
        waiting = self.jobs.runnable(10, JobQueue.TASKS)
        for dataset in waiting:
            self.run_tasks.run(dataset.tenant_id, dataset.dataset_id)
        return bool(waiting)

    def _run_sources(self) -> bool:
        due = round_store(self.platform).due(10)
        for tenant_id, source_id in due:
            self.start_rounds.run(tenant_id, source_id)
        return bool(due)

    def run_followers(self) -> bool:
        """Does one piece of work for datasets with followers that are due; false if there were none."""
        due = self.followers.due(10)
        for tenant_id, dataset_id in due:
            self.follow.run(tenant_id, dataset_id)
        alerts = self.alerts.due(10)
        for tenant_id, webhook_id in alerts:
            self.follow_alerts.run(tenant_id, webhook_id)
        return bool(due or alerts)

    @contextmanager
    def working(self) -> Iterator[None]:
        """Runs what comes, and reports its end, as a worker does."""
        stop = threading.Event()
        relaying = relay_loop(self.relay, self.settings.poll_seconds)

        def work() -> None:
            while not stop.wait(0.01):
                self.work()

        threads = [
            threading.Thread(target=work, name="worker"),
            threading.Thread(target=relaying.run, args=(stop,), name="worker's relay"),
        ]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            self.relay.wake()
            for thread in threads:
                thread.join()


def relay_loop(relay: Relay, poll_seconds: float) -> Loop:
    """The loop of a relay."""
    return Loop(
        "relay", relay.run, every_seconds=poll_seconds, apart_seconds=APART_SECONDS, woken=relay.woken
    )


def settings_for(database_url: str, admin_url: str, redis_url: str, directory: Path, **more: Any) -> Settings:
    """Small limits, so that tests reach them. Nothing gathers metrics, unless a test does."""
    more = {"metrics_seconds": 86_400.0, **more}
    return Settings(
        database_url=database_url,
        admin_database_url=admin_url,
        redis_url=redis_url,
        data_dir=directory,
        poll_seconds=0.5,
        unused_file_seconds=0.0,
        disk_free_bytes_min=0,
        json_body_bytes_max=256 * 1024,
        inline_bytes_max=64 * 1024,
        upload_bytes_max=16 * 1024 * 1024,
        webhook_retry_seconds=(0.05, 0.05),
        webhook_http=True,
        webhook_allow=("127.0.0.0/8",),
        export_roots=((directory / "outgoing").as_uri() + "/{tenant_id}", "s3://outgoing/exports"),
        source_roots=((directory / "incoming").as_uri(), (directory / "own").as_uri() + "/{tenant_id}"),
        source_http=True,
        source_allow=("127.0.0.0/8",),
        **more,
    )


@contextmanager
def running_service(settings: Settings) -> Iterator[Service]:
    """Serves the API from a thread of this process until the context is left."""
    port = free_port()
    api = compose(settings)
    serving = server(api, LOOPBACK, port)
    thread = threading.Thread(target=serving.run, name="api")
    thread.start()
    database = Database(settings.database_url, application_name="tests worker")
    administration = Database(
        settings.admin_database_url, role=ADMINISTRATOR_ROLE, application_name="tests administration"
    )
    queue, announcements = WorkQueue(settings.redis_url), Announcements(settings.redis_url)
    try:
        deadline = time.monotonic() + 20
        while not serving.started:
            assert thread.is_alive(), "the server ended while it started"
            assert time.monotonic() < deadline, "the server did not start"
            time.sleep(0.01)
        sender = OutboxSender(queue=queue, announcements=announcements)
        relay = Relay(OutboxStore(database), sender)
        engine = TasksInProcess(open_storage(settings.storage_uri))
        platform = Platform.on(settings, stores_on(database), relay.wake)
        worker = Worker(platform=platform, engine=engine, id="tests")
        followers = FollowerStore(database)
        yield Service(
            url=f"http://{LOOPBACK}:{port}",
            settings=settings,
            api=api,
            database=database,
            tenants=Administration(administration),
            platform=platform,
            worker=worker,
            jobs=platform.stores.jobs,
            relay=relay,
            run_writes=run_writes(worker),
            run_tasks=run_tasks(worker),
            followers=followers,
            follow=Follow(followers=followers, handlers=follower_handlers(worker), owner=worker.id),
            alerts=alert_followers(platform),
            follow_alerts=Follow(
                followers=alert_followers(platform),
                handlers={ConsumerKind.WEBHOOK: deliver_webhooks(platform)},
                owner=worker.id,
            ),
            start_rounds=start_rounds(worker),
            derivation=engine.derivation,
        )
    finally:
        serving.should_exit = True
        thread.join(20)
        queue.close()
        announcements.close()
        database.close()
        administration.close()
