"""The Celery worker: receives notifications and passes them to the runner of their kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from celery import Celery
from celery.apps.worker import Worker


def register_tasks(celery: Celery, wake: Mapping[str, Callable[[str, str], None]]) -> None:
    """Registers the tasks by name. Tasks receive ids and return nothing: results are in Postgres."""
    for name, wakes in wake.items():
        celery.task(wakes, name=name)


def serve(celery: Celery, *, name: str) -> None:
    """Serves until SIGTERM or SIGINT.

    A task only notifies a runner, whose threads do the work: they share the process's Spark session.
    """
    # The process configures its logging; Celery's would replace it.
    celery.conf.worker_hijack_root_logger = False
    # The worker starts itself in start(); Celery's own command line is not used.
    worker: Worker = celery.Worker(
        pool_cls="threads",
        concurrency=1,
        hostname=name,
        # Celery sets this level on the root logger, and with it on all of the process's loggers.
        loglevel="INFO",
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    worker.start()
