"""All datasets of a tenant with their numbers, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from app.access.tenants.values import KeyScope, Principal
from app.core.catalog.repository.catalog import CatalogStore
from app.core.catalog.service import GrantedDatasets
from app.core.catalog.values import Dataset
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
        *,
        page_size: int,
        page_token: str | None,
        labels: Sequence[tuple[str, str]],
        name: str | None = None,
    ) -> tuple[Page, dict[str, DatasetNumbers]]:
        """Dataset items by name, and numbers by id. Numbers would count the rows that a filter or a mask hides.

        `name`: a pattern that the names match.
        """
        page = self.catalog.list(
            principal.tenant_id,
            page_size=page_size,
            page_token=page_token,
            patterns=principal.patterns(KeyScope.READ),
            labels=labels,
            name=name,
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
            page = self.catalog.list(
                principal.tenant_id,
                page_size=_PAGE_SIZE,
                page_token=token,
                patterns=principal.patterns(KeyScope.READ),
            )
            ids += [each.id for each in page.items if _is_whole(principal, each)]
            token = page.next_token
            if token is None:
                break
        return ids


def _is_whole(principal: Principal, dataset: Dataset) -> bool:
    return not principal.access(dataset.definition.name).restricted
