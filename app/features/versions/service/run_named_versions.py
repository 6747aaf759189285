"""Runs the jobs that name versions: beside the writes of the dataset, each with an instant of its own."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.jobs.kinds.named_version import SavepointTask, TagTask
from app.core.jobs.values import Job
from app.features.versions.repository.named_versions import NamedVersionStore


@dataclass(frozen=True, kw_only=True, slots=True)
class RunNames:
    """Runs the tasks of savepoints and tags."""

    names: NamedVersionStore

    def run(self, job: Job, task: SavepointTask | TagTask, tag: str) -> None:  # noqa: ARG002  (no Spark)
        """Raises NameTaken, VersionExpired, NotFound."""
        self.names.name(job.tenant_id, job.dataset_id, job.claim, task)
