"""Accepts the jobs of concurrent requests together: one transaction for all that arrived during the last one."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Final

from app.core.jobs.values import Accepted, NewJob
from app.infra.errors import Unavailable
from app.kernel.format.errors import HeadwaterError

_BATCH_JOBS_MAX: Final = 256


class _Ticket:
    """The job of one request; the thread that accepts its batch sets the outcome."""

    def __init__(self, new: NewJob) -> None:
        self.new = new
        self.outcome: Accepted | BaseException | None = None


class GroupAccept:
    """Accepts jobs in batches: `accept_all` accepts those of a tenant in one transaction. See `JobStore.accept_all`.

    Used from many threads. A single request is accepted at once, without waiting for others.

    Requests that arrive during a transaction wait for its end; the first of them to continue accepts all of them.
    """

    def __init__(
        self,
        accept_all: Callable[[str, Sequence[NewJob]], list[Accepted | HeadwaterError]],
        alone: Callable[[], bool] = lambda: False,
    ) -> None:
        """`alone`: whether the request needs a transaction of its own."""
        self._accept_all = accept_all
        self._alone = alone
        self._waiting: dict[str, list[_Ticket]] = defaultdict(list)
        self._mutex = threading.Lock()
        self._locks: dict[str, threading.Lock] = defaultdict(threading.Lock)

    def accept(self, tenant_id: str, new: NewJob) -> Accepted:
        """Raises IdempotencyMismatch, NotFound (dataset gone), Unavailable."""
        ticket = _Ticket(new)
        if self._alone():
            [outcome] = self._accept_all(tenant_id, [new])
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome
        with self._mutex:
            self._waiting[tenant_id].append(ticket)
            lock = self._locks[tenant_id]
        with lock:
            # Repeated until this job is accepted: the batch before may have been full.
            while ticket.outcome is None:
                self._accept_batch(tenant_id)
        if isinstance(ticket.outcome, BaseException):
            raise ticket.outcome
        return ticket.outcome

    def _accept_batch(self, tenant_id: str) -> None:
        with self._mutex:
            batch = self._waiting[tenant_id][:_BATCH_JOBS_MAX]
            del self._waiting[tenant_id][:_BATCH_JOBS_MAX]
        outcomes = self._outcomes(tenant_id, [ticket.new for ticket in batch])
        for ticket, outcome in zip(batch, outcomes, strict=True):
            ticket.outcome = outcome

    def _outcomes(self, tenant_id: str, new: Sequence[NewJob]) -> Sequence[Accepted | BaseException]:
        try:
            return self._accept_all(tenant_id, new)
        except Unavailable as error:
            # They may have been accepted: none is repeated.
            return [error] * len(new)
        except Exception as error:
            if len(new) == 1:
                return [error]
            # Nothing was accepted. One by one, the error is that of its request only.
            return [outcome for each in new for outcome in self._outcomes(tenant_id, [each])]
        except BaseException as error:
            return [error] * len(new)
