"""The Celery worker: receives notifications and passes them to the runner of their kind."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

from celery import Celery
from celery.apps.worker import Worker, install_worker_term_handler

_log = logging.getLogger(__name__)


class _QuietWorker(Worker):
    """A Celery worker that prints nothing by itself when it stops: its lines would not be in the form of the log."""

    def install_platform_tweaks(self, worker: Worker) -> None:
        super().install_platform_tweaks(worker)
        for name in ("SIGTERM", "SIGINT"):
            install_worker_term_handler(worker, sig=name, verbose=False)


def register_tasks(celery: Celery, wake: Mapping[str, Callable[[str, str], None]]) -> None:
    """Registers the tasks by name. Tasks receive tenants and datasets and return nothing: results are in Postgres."""
    for name, wakes in wake.items():
        celery.task(_for_each(wakes), name=name)


def _for_each(wakes: Callable[[str, str], None]) -> Callable[[Sequence[tuple[str, str]]], None]:
    def notify(datasets: Sequence[tuple[str, str]]) -> None:
        for tenant_id, dataset_id in datasets:
            wakes(tenant_id, dataset_id)

    return notify


def serve(celery: Celery, *, name: str) -> None:
    """Serves until SIGTERM or SIGINT.

    A task only notifies a runner, whose threads do the work: they share the process's Spark session.
    """
    # The process configures its logging; Celery's would replace it.
    celery.conf.worker_hijack_root_logger = False
    # The worker starts itself in start(); Celery's own command line is not used.
    worker = _QuietWorker(
        app=celery,
        pool_cls="solo",
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
    _log.info("receives no notifications any more, and stops")
