"""Leases of jobs: a heartbeat extends them while the work goes on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Self

from app.core.jobs.repository.jobs import JobStore
from app.core.jobs.values import Claim, Progress
from app.infra.errors import Unavailable

_log = logging.getLogger(__name__)


class LeaseHeartbeat(AbstractContextManager["LeaseHeartbeat"]):
    """Extends the leases of a group of claims in the background; `on_loss` is called once none of them is valid.

    The lease is for liveness only. The epoch, which is checked at the commit, fences a late worker.
    """

    def __init__(
        self,
        jobs: JobStore,
        tenant_id: str,
        claims: Sequence[Claim],
        *,
        lease_seconds: float,
        heartbeat_seconds: float,
        progress: Callable[[], Progress],
        on_loss: Callable[[], None],
    ) -> None:
        self._jobs = jobs
        self._tenant_id = tenant_id
        self._claims = list(claims)
        self._lease_seconds = lease_seconds
        self._heartbeat_seconds = heartbeat_seconds
        self._progress = progress
        self._on_loss = on_loss
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="lease", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._ended.wait(self._heartbeat_seconds):
            try:
                job_ids = self._jobs.heartbeat(
                    self._tenant_id,
                    self._claims,
                    lease_seconds=self._lease_seconds,
                    progress=self._progress(),
                )
            except Unavailable:
                _log.warning("the database is unavailable; the leases will be extended later")
                continue
            except Exception:
                _log.exception("the heartbeat failed; trying again")
                continue
            if not job_ids:
                _log.warning("lost every job of the group %s", [claim.job_id for claim in self._claims])
                self._on_loss()
                return
