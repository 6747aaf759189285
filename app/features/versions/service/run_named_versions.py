"""Runs the jobs that name versions: beside the writes of the dataset, each with an instant of its own."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.jobs.tasks import SavepointTask, TagTask
from app.core.jobs.values import Job
from app.features.versions.repository.named_versions import NamedVersionStore


@dataclass(frozen=True, kw_only=True, slots=True)
class RunNames:
    """Runs the tasks of savepoints and tags."""

    names: NamedVersionStore

    def run(self, job: Job, tag: str) -> None:  # noqa: ARG002  (the port of tasks has it; nothing here runs on Spark)
        """Raises NameTaken, VersionExpired, NotFound."""
        if not isinstance(job.request, SavepointTask | TagTask):
            raise TypeError(f"job {job.id} is a {job.kind.value}, not a savepoint or tag")
        self.names.name(job.tenant_id, job.dataset_id, job.claim, job.request)
