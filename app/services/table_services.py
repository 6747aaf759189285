"""Table services on request: tasks that keep a dataset in shape, beside its writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from app.lake.identifiers import new_id, new_instant_id
from app.lake.projection import check_partitions
from app.services.group_accept import GroupAccept
from app.services.model import Accepted, Dataset, NewJob
from app.services.task_model import CleanTask, ClusteringTask, CompactionTask


@dataclass(frozen=True, kw_only=True, slots=True)
class TableServices:
    """Accepts the tasks of table services. `wake` is called after one was recorded."""

    group: GroupAccept
    wake: Callable[[], None]

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
        new = NewJob(
            id=new_id(),
            instant_id=new_instant_id(),
            dataset_id=dataset.id,
            request=task,
            idempotency_key=idempotency_key,
            request_hash=msgspec.json.encode(task).decode(),
            actor=actor,
        )
        accepted = self.group.accept(dataset.tenant_id, new)
        if not accepted.replayed:
            self.wake()
        return accepted
