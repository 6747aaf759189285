"""The Celery worker: receives wake-ups and runs the writes of the dataset they name."""

from __future__ import annotations

from collections.abc import Callable

from celery import Celery
from celery.apps.worker import Worker

from app.messaging.work_queue import WRITE_TASK


def register_tasks(celery: Celery, run: Callable[[str, str], None]) -> None:
    """Binds the tasks to the use case. Ids in, nothing out: outcomes are in Postgres."""

    @celery.task(name=WRITE_TASK)
    def write(tenant_id: str, dataset_id: str) -> None:
        run(tenant_id, dataset_id)


def serve(celery: Celery, *, threads: int, name: str) -> None:
    """Serves until SIGTERM or SIGINT, then lets running tasks end.

    Threads, not processes: they share the one warm Spark session.
    """
    # The process has its logging; Celery's would replace it.
    celery.conf.worker_hijack_root_logger = False
    # Worker starts itself in start(); argv parsing is Celery's own command line, which has no place here.
    worker: Worker = celery.Worker(
        pool_cls="threads",
        concurrency=threads,
        hostname=name,
        # Celery gives this level to the root logger, and with it to every line of ours.
        loglevel="INFO",
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    worker.start()
