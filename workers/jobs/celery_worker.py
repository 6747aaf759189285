"""The Celery worker: receives wake-ups and hands them to the runner of their sort."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from celery import Celery
from celery.apps.worker import Worker


def register_tasks(celery: Celery, wake: Mapping[str, Callable[[str, str], None]]) -> None:
    """Binds tasks, by name, to what they wake. Ids in, nothing out: outcomes are in Postgres."""
    for name, wakes in wake.items():
        celery.task(wakes, name=name)


def serve(celery: Celery, *, name: str) -> None:
    """Serves until SIGTERM or SIGINT.

    A task only wakes a runner, whose threads do the work: they share the one warm Spark session.
    """
    # The process has its logging; Celery's would replace it.
    celery.conf.worker_hijack_root_logger = False
    # Worker starts itself in start(); argv parsing is Celery's own command line, which has no place here.
    worker: Worker = celery.Worker(
        pool_cls="threads",
        concurrency=1,
        hostname=name,
        # Celery gives this level to the root logger, and with it to every line of ours.
        loglevel="INFO",
        quiet=True,
        without_gossip=True,
        without_mingle=True,
        without_heartbeat=True,
    )
    worker.start()
