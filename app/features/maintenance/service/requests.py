"""Requests for table services: accepts their tasks as jobs, for users and for policies alike."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from app.core.catalog.values import Dataset
from app.core.jobs.kinds.declared import TableServiceTask
from app.core.jobs.kinds.rewrite import RewriteRequest
from app.core.jobs.service.request_job import RequestIdentity, RequestJob
from app.core.jobs.values import Accepted
from app.kernel.format.rows.projection import check_partitions


@dataclass(frozen=True, kw_only=True, slots=True)
class TableServiceRequests:
    """Accepts the tasks of table services."""

    request_job: RequestJob

    def start(
        self, dataset: Dataset, task: TableServiceTask, idempotency_key: str | None, actor: str | None
    ) -> Accepted:
        """Accepts a job for the task. `actor`: the id of the API key or subject; None for the service itself.

        Raises InvalidRequest for partitions that cannot exist, IdempotencyMismatch, NotFound (dataset gone).
        """
        if isinstance(task, RewriteRequest):
            check_partitions(dataset.definition, task.partitions)
        text = msgspec.json.encode(task).decode()
        return self.request_job.accept(
            dataset, task, RequestIdentity(text=text, idempotency_key=idempotency_key, actor=actor)
        )
