"""Naming versions, as a task: beside the writes of the dataset, and with an instant of its own."""

from __future__ import annotations

from dataclasses import dataclass

from app.jobs.tasks import SavepointTask, TagTask
from app.jobs.values import Job
from app.versions.ports import NamedVersions


@dataclass(frozen=True, kw_only=True, slots=True)
class RunNames:
    """Does the tasks of savepoints and tags."""

    names: NamedVersions

    def run(self, job: Job, tag: str) -> None:  # noqa: ARG002  (nothing of it runs on Spark)
        """Raises NameTaken, VersionExpired, NotFound."""
        if not isinstance(job.request, SavepointTask | TagTask):
            raise TypeError(f"job {job.id} names no version: {job.kind.value}")
        self.names.name(job.tenant_id, job.dataset_id, job.claim, job.request)
