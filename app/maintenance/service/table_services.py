"""Table services on request: tasks that keep a dataset in shape, beside its writes."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from app.catalog.values import Dataset
from app.format.rows.projection import check_partitions
from app.jobs.service.request_job import RequestIdentity, RequestJob
from app.jobs.tasks import CleanTask, ClusteringTask, CompactionTask
from app.jobs.values import Accepted


@dataclass(frozen=True, kw_only=True, slots=True)
class TableServiceRequests:
    """Accepts the tasks of table services."""

    request_job: RequestJob

    def start(
        self,
        dataset: Dataset,
        task: CompactionTask | ClusteringTask | CleanTask,
        idempotency_key: str | None,
        actor: str | None,
    ) -> Accepted:
        """A job that does the task; `actor` is who asks for it, by key id.

        Raises InvalidRequest for partitions that there cannot be, IdempotencyMismatch, NotFound.
        """
        if not isinstance(task, CleanTask):
            check_partitions(dataset.definition, task.partitions)
        text = msgspec.json.encode(task).decode()
        return self.request_job.accept(
            dataset, task, RequestIdentity(text=text, idempotency_key=idempotency_key, actor=actor)
        )
