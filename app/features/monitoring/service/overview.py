"""All datasets of a tenant with their numbers, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.access.tenants.values import KeyScope, Principal
from app.core.catalog.repository.catalog import CatalogStore
from app.core.catalog.values import Dataset
from app.features.monitoring.repository.dataset_numbers import DatasetNumberStore
from app.features.monitoring.values import DatasetNumbers
from app.kernel.paging import Page


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
    ) -> tuple[Page, dict[str, DatasetNumbers]]:
        """Dataset items by name, and numbers by id. Numbers would count the rows that a filter or a mask hides."""
        page = self.catalog.list(
            principal.tenant_id,
            page_size=page_size,
            page_token=page_token,
            patterns=principal.patterns(KeyScope.READ),
            labels=labels,
        )
        whole = [each.id for each in page.items if _is_whole(principal, each)]
        return page, dict(self.numbers.of(principal.tenant_id, whole)) if whole else {}


def _is_whole(principal: Principal, dataset: Dataset) -> bool:
    return not principal.access(dataset.definition.name).restricted
