"""The backstop: asks Postgres for waiting jobs, so that a lost wake-up costs seconds and never a job."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from app.lake.errors import Unavailable
from app.services.ports import Jobs
from workers.jobs.runner import Runner

_log = logging.getLogger(__name__)
_DATASETS_PER_POLL = 100


class Poller:
    """Polls every `poll_seconds` until told to stop; `alive` is called after each poll that reached the database."""

    def __init__(
        self, jobs: Jobs, runner: Runner, *, poll_seconds: float, threads: int, alive: Callable[[], None]
    ) -> None:
        self._jobs = jobs
        self._runner = runner
        self._poll_seconds = poll_seconds
        self._alive = alive
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="poller")

    def run(self, stop: threading.Event) -> None:
        """Polls until `stop` is set."""
        while True:
            try:
                for waiting in self._jobs.runnable(_DATASETS_PER_POLL):
                    self._pool.submit(self._run_one, waiting.tenant_id, waiting.dataset_id)
                self._alive()
            except Unavailable:
                _log.warning("the database is out of reach; polling again in %.1f s", self._poll_seconds)
            if stop.wait(self._poll_seconds):
                self._pool.shutdown(wait=False, cancel_futures=True)
                return

    def _run_one(self, tenant_id: str, dataset_id: str) -> None:
        try:
            self._runner.run(tenant_id, dataset_id)
        except Exception:
            _log.exception("the writes of dataset %s failed; they will be tried again", dataset_id)
