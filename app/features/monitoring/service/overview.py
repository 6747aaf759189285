"""All datasets of a tenant with their numbers, page by page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from app.access.tenants.values import Principal
from app.core.catalog.repository.catalog import CatalogStore
from app.core.catalog.service import GrantedDatasets, readable
from app.core.catalog.values import DatasetFilter, DatasetSummary
from app.features.monitoring.repository.dataset_numbers import DatasetNumberStore
from app.features.monitoring.values import DatasetNumbers, HourNumbers
from app.kernel.paging import Page

_PAGE_SIZE: Final = 1_000
_PAGES_MAX: Final = 10


@dataclass(frozen=True, kw_only=True, slots=True)
class TenantOverview:
    """The datasets that a principal may read, with the numbers of those that it sees whole."""

    catalog: CatalogStore
    numbers: DatasetNumberStore

    def page(
        self,
        principal: Principal,
        selection: DatasetFilter,
        *,
        page_size: int,
        page_token: str | None,
    ) -> tuple[Page, dict[str, DatasetNumbers]]:
        """DatasetSummary items by name, and numbers by id of those that are seen whole.

        Numbers of others would count the rows that a filter or a mask hides.
        """
        page = self.catalog.summaries(
            principal.tenant_id, readable(principal, selection), page_size=page_size, page_token=page_token
        )
        whole = [each.id for each in page.items if _is_whole(principal, each)]
        return page, dict(self.numbers.of(principal.tenant_id, whole)) if whole else {}

    def hours(
        self, granted_datasets: GrantedDatasets, reference: str | None, *, count: int
    ) -> list[HourNumbers]:
        """The writes of the last hours, the oldest first: of one dataset, or of all that the principal sees whole.

        Raises NotFound, Forbidden, RestrictedGrant for a dataset that it sees in part.
        """
        principal = granted_datasets.principal
        tenant_id = principal.tenant_id
        if reference is not None:
            return self.numbers.hours(tenant_id, [granted_datasets.get(tenant_id, reference).id], count)
        if principal.grants is None:
            return self.numbers.hours(tenant_id, None, count)
        return self.numbers.hours(tenant_id, self._whole(principal), count)

    def _whole(self, principal: Principal) -> list[str]:
        """The ids of the datasets that the principal sees whole, of the first ones by name."""
        ids: list[str] = []
        token = None
        for _ in range(_PAGES_MAX):
            page = self.catalog.summaries(
                principal.tenant_id,
                readable(principal, DatasetFilter()),
                page_size=_PAGE_SIZE,
                page_token=token,
            )
            ids += [each.id for each in page.items if _is_whole(principal, each)]
            token = page.next_token
            if token is None:
                break
        return ids


def _is_whole(principal: Principal, dataset: DatasetSummary) -> bool:
    return not principal.access(dataset.name).restricted
