"""The jobs of a tenant, for its users."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from app.catalog.ports import DatasetLookup
from app.jobs.repository.jobs import JobStore
from app.jobs.values import Job, JobFilter
from app.paging import Page


@dataclass(frozen=True, kw_only=True, slots=True)
class Jobs:
    """The jobs of a tenant."""

    catalog: DatasetLookup
    store: JobStore

    def get(self, tenant_id: str, job_id: str) -> Job:
        """Raises NotFound."""
        return self.store.get(tenant_id, job_id)

    def list(
        self,
        tenant_id: str,
        reference: str | None,
        wanted: JobFilter,
        *,
        page_size: int,
        page_token: str | None,
    ) -> Page:
        """Job items, the newest first; of the dataset with this id or name, unless None.

        Raises NotFound, InvalidRequest for an unknown page token.
        """
        if reference is not None:
            dataset = self.catalog.get(tenant_id, reference)
            wanted = msgspec.structs.replace(wanted, dataset_id=dataset.id)
        return self.store.page(tenant_id, wanted, page_size=page_size, page_token=page_token)

    def cancel(self, tenant_id: str, job_id: str) -> Job:
        """Ends a queued or running job, with the others of its transaction. Raises JobNotCancellable, NotFound."""
        return self.store.cancel(tenant_id, job_id)
