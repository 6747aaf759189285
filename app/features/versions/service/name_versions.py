"""Savepoints and tags: accepted on request, and given by jobs, which run beside the writes of the dataset."""

from __future__ import annotations

from dataclasses import dataclass

from app.access.errors import NotFound
from app.core.catalog.values import Dataset
from app.core.jobs.kinds.named_version import NamedVersion, SavepointTask, TagTask, VersionKind
from app.core.jobs.service.request_job import RequestIdentity, RequestJob
from app.core.jobs.values import Accepted, Job
from app.features.versions.repository import NamedVersionStore, taken
from app.features.versions.service.versions import VersionOf
from app.kernel.format.version_names import check_version_name
from app.kernel.paging import Page


@dataclass(frozen=True, kw_only=True, slots=True)
class NameVersions:
    """Names versions of datasets, and deletes the names."""

    names: NamedVersionStore
    versions: VersionOf
    jobs: RequestJob

    def start(self, dataset: Dataset, task: SavepointTask | TagTask, identity: RequestIdentity) -> Accepted:
        """A job that names a version (None: the head when it runs).

        Raises InvalidRequest, NameTaken, VersionExpired, IdempotencyMismatch, NotFound.
        """
        check_version_name(task.name)
        earlier_job = self.jobs.replayed(dataset, identity)
        if earlier_job is not None:
            return earlier_job
        self.versions.find(dataset, version=task.version)
        # A name that is taken already is refused now; of two jobs with one name, the one that runs second fails.
        self._check_free(dataset, task.name)
        return self.jobs.accept(dataset, task, identity)

    def get(self, dataset: Dataset, kind: VersionKind, name: str) -> NamedVersion:
        """Raises NotFound, also for a name of the other kind."""
        named_version = self.names.get(dataset.tenant_id, dataset.id, name)
        if named_version.kind is not kind:
            raise NotFound(f"{name!r} is a {named_version.kind.value} of this dataset, not a {kind.value}")
        return named_version

    def list(self, dataset: Dataset, kind: VersionKind, *, page_size: int, page_token: str | None) -> Page:
        """NamedVersion items by name. Raises InvalidRequest for an unknown page token."""
        return self.names.list(
            dataset.tenant_id, dataset.id, kind, page_size=page_size, page_token=page_token
        )

    def remove(self, dataset: Dataset, kind: VersionKind, name: str) -> None:
        """Deletes a name; the version may be cleaned if nothing else keeps it. Raises NotFound."""
        self.get(dataset, kind, name)
        self.names.remove(dataset.tenant_id, dataset.id, [name])

    def _check_free(self, dataset: Dataset, name: str) -> None:
        try:
            named_version = self.names.get(dataset.tenant_id, dataset.id, name)
        except NotFound:
            return
        raise taken(named_version, name)


@dataclass(frozen=True, kw_only=True, slots=True)
class RunNames:
    """Runs the tasks of savepoints and tags."""

    names: NamedVersionStore

    def run(self, job: Job, task: SavepointTask | TagTask, tag: str) -> None:  # noqa: ARG002  (no Spark)
        """Raises NameTaken, VersionExpired, NotFound."""
        self.names.name(job.tenant_id, job.dataset_id, job.claim, task)
