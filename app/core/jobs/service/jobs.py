"""The jobs of a tenant, for its users."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import msgspec

from app.access.errors import NotFound
from app.core.catalog.service import GrantedDatasets
from app.core.jobs.kinds.kind import JobKind
from app.core.jobs.repository.jobs import JobStore
from app.core.jobs.values import Job, JobFilter
from app.kernel.paging import Page


@dataclass(frozen=True, kw_only=True, slots=True)
class Jobs:
    """The jobs of a tenant. `wake` is called after jobs have ended; losing it costs latency only."""

    store: JobStore
    wake: Callable[[], None]

    def get(self, tenant_id: str, job_id: str) -> Job:
        """Raises NotFound."""
        return self.store.get(tenant_id, job_id)

    def shown(self, granted_datasets: GrantedDatasets, job: Job) -> Job:
        """The job as the principal may see it: why a refresh failed may quote rows of the view's inputs."""
        return _shown(granted_datasets.sees_inputs, job)

    def list(
        self,
        granted_datasets: GrantedDatasets,
        reference: str | None,
        job_filter: JobFilter,
        *,
        page_size: int,
        page_token: str | None,
    ) -> Page:
        """Job items of granted datasets, the newest first; of the dataset with this id or name, unless None.

        Of a dataset that the principal sees in part, those that show no more than it sees.

        Raises NotFound, InvalidRequest for an unknown page token.
        """
        tenant_id = granted_datasets.principal.tenant_id
        if reference is not None:
            dataset, _ = granted_datasets.seen(tenant_id, reference)
            job_filter = msgspec.structs.replace(job_filter, dataset_id=dataset.id)
        job_filter = msgspec.structs.replace(
            job_filter, datasets=granted_datasets.principal.patterns(granted_datasets.scope)
        )
        page = self.store.page(tenant_id, job_filter, page_size=page_size, page_token=page_token)
        shows, sees_inputs = cache(granted_datasets.shows), cache(granted_datasets.sees_inputs)
        visible = page.filtered(lambda job: shows(job.dataset_id, job.access))
        return visible.mapped(lambda job: _shown(sees_inputs, job))

    def cancel(self, granted_datasets: GrantedDatasets, job_id: str) -> Job:
        """Ends a queued or running job, with the others of its transaction, whose datasets must be granted too.

        Raises JobNotCancellable, NotFound, Forbidden.
        """
        tenant_id = granted_datasets.principal.tenant_id
        if granted_datasets.principal.grants is not None:
            datasets = self.store.datasets_with(tenant_id, job_id)
            granted_datasets.check_ids(datasets, NotFound(f"there is no job {job_id!r}"))
        job = self.store.cancel(tenant_id, job_id)
        self.wake()
        return job


def _shown(sees_inputs: Callable[[str], bool], job: Job) -> Job:
    if job.error is None or job.kind is not JobKind.REFRESH or sees_inputs(job.dataset_id):
        return job
    return msgspec.structs.replace(job, error=job.error.without_values())
